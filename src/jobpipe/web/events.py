"""Server-sent events: one subscription to the pipe's feed for all clients, and a bounded backlog for each.

What happens is gathered and passed on in rounds, the same bytes to all: a round costs a little for each client, so the
more there are, the rarer it is. A client that reads too slowly is cut off: it comes back with Last-Event-ID, and gets
from the store what it has missed. Everything but `heed` runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..errors import BadInputError
from ..job import JobStatus
from . import problems
from .call import Call, Stream, encode
from .pulse import Pulses
from .query import EventsQuery, read_query
from .site import Site

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from ..stores.base import JobEvent

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0
MOST_CLIENTS = 1_000
LONGEST_BACKLOG = 8_000
"""Events that may wait for one client; they are in memory once for all."""
_AT_ONCE = 500
_MOST_GATHERED = LONGEST_BACKLOG // 4
"""Events that wait for a round until it comes early."""
_REST = 0.002
"""Seconds from one round to the next, for each client: several times what a round takes."""
_LONGEST_REST = 1.0
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]
_PIECE = 16_384
"""Bytes that are written at once: so many are copied for each client, however long a round is."""
_LAST_WORD = 0.5
"""Seconds that a client has to take what is left, and the end of its stream."""
ABORT = "jobpipe.abort"
"""The extension of the ASGI scope that cuts a connection without waiting for what is not sent yet."""


class EventData(Struct, frozen=True):
    """One change of a job's status."""

    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int


class SentEvent(Struct, frozen=True, kw_only=True):
    """One as it is sent. Of a job: its number, and as data id, type, queue, status and attempts; of a pulse, no number."""

    id: str | UnsetType = UNSET
    event: Literal["job", "pulse"]
    data: Annotated[str, Meta(extra_json_schema={"contentMediaType": "application/json"})]


LastEventId = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]{0,18}$"})]
Frame = tuple[int, bytes]


def frame_of(event: JobEvent) -> Frame:
    """The number of an event, and how it goes over the wire."""
    data = encode(EventData(event.id, event.type, event.queue, event.status, event.attempts))
    return event.number, b"id: %d\nevent: job\ndata: %b\n\n" % (event.number, data)


class _Round:
    """Events that go to all clients together."""

    __slots__ = ("body", "first", "frames", "last")

    def __init__(self, frames: list[Frame]) -> None:
        self.frames = frames
        self.first = frames[0][0]
        self.last = frames[-1][0]
        self.body = b"".join(frame for _, frame in frames)

    def since(self, after: int) -> bytes:
        """What is new to who has seen all up to `after`."""
        if after < self.first:
            return self.body
        return b"".join(frame for number, frame in self.frames if number > after)


class _Client:
    """What waits for one reader."""

    __slots__ = ("after", "backlog", "bell", "is_live", "is_over", "pulse", "waiting", "writer")

    def __init__(self) -> None:
        self.pulse = b""
        """The last one, if it was not sent yet: older ones are of no use to anybody."""
        self.after = 0
        """The number of the last event that was sent."""
        self.backlog: deque[_Round] = deque()
        self.waiting = 0
        """Events in the backlog."""
        self.bell = asyncio.Event()
        self.is_live = False
        """Does it get what is new, or does it still catch up from the store?"""
        self.is_over = False
        """Does its stream end after the backlog?"""
        self.writer: asyncio.Task[None] | None = None

    def take(self, round: _Round) -> None:
        if not self.is_live:
            return
        self.backlog.append(round)
        self.waiting += len(round.frames)
        self.bell.set()
        if self.waiting > LONGEST_BACKLOG and self.writer is not None:
            self.writer.cancel()

    def feel(self, pulse: bytes) -> None:
        """Take the newest pulse."""
        self.pulse = pulse
        self.bell.set()

    def finish(self) -> None:
        """Have the writer return when all is written."""
        self.is_over = True
        self.bell.set()

    def drain(self) -> Iterator[bytes]:
        """All that is new to it, in pieces."""
        self.bell.clear()
        while self.backlog:
            round = self.backlog.popleft()
            self.waiting -= len(round.frames)
            body = round.since(self.after)
            self.after = max(self.after, round.last)
            for at in range(0, len(body), _PIECE):
                yield body[at : at + _PIECE]
        if self.pulse:
            pulse, self.pulse = self.pulse, b""
            yield pulse


class Events:
    """`GET /events`."""

    def __init__(self, site: Site, heartbeat: float = HEARTBEAT) -> None:
        self._site = site
        self._pipe = site.pipe
        self._heartbeat = heartbeat
        self._clients: set[_Client] = set()
        self._subscription: asyncio.Task[Callable[[], None]] | None = None
        self._gathered: list[Frame] = []
        """What the next round passes on."""
        self._next_round: asyncio.TimerHandle | None = None
        """It is there if and only if something is gathered."""
        self._rests_until = 0.0
        self._pulses = Pulses(site)

    def calls(self) -> list[Call]:
        """The row of the table."""
        summary = "Every change of a job's status, as it happens; Last-Event-ID reaches back; with pulse, also the numbers, every second"
        return [
            Call(
                method="GET",
                path="/events",
                handler=self,
                is_asgi=True,
                summary=summary,
                answers={200: Stream(MEDIA_TYPE, SentEvent)},
                headers={"Last-Event-ID": LastEventId},
                query=EventsQuery,
                refusals=frozenset({422}),
            )
        ]

    @property
    def clients(self) -> int:
        """How many there are."""
        return len(self._clients)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _Client()
        try:
            wanted = read_query(scope["query_string"], EventsQuery)
            ends = self._site.ending
            asked = _last_event_id(scope)
            if len(self._clients) >= MOST_CLIENTS:
                raise problems.TooManyStreamsError(
                    f"{MOST_CLIENTS:,} streams are open already: try again later"
                )
            if scope["method"] != "HEAD":
                self._clients.add(client)
            await self._begin(client, asked)
        except Exception as error:
            self._leave(client)
            await problems.answer(error, scope)(scope, receive, send)
            return
        except BaseException:
            self._leave(client)
            raise
        if wanted.pulse and client in self._clients:
            self._pulses.join(client.feel)
        await self._stream(client, ends, scope, receive, send)

    async def _begin(self, client: _Client, asked: int | None) -> None:
        """Have the feed subscribed to, and find out what the client has seen."""
        if client in self._clients:
            if self._subscription is None:
                self._subscription = asyncio.create_task(self._subscribe())
            await asyncio.shield(self._subscription)
        last = await self._pipe.courier.call(self._pipe.store.last_event)
        # Why from 0: a number that is not there yet is that of a store that is gone; all of this one is new.
        client.after = last if asked is None else asked if asked <= last else 0

    async def _stream(
        self, client: _Client, ends: asyncio.Event, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body"})
                return
            client.writer = asyncio.create_task(self._write(client, send))
            gone = asyncio.create_task(_until_gone(receive))
            ending = asyncio.create_task(ends.wait())
            watched = [client.writer, gone, ending]
            try:
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if ending.done():
                    self._pass_on()
                    client.finish()
                    await asyncio.wait(
                        [client.writer, gone], timeout=_LAST_WORD, return_when=asyncio.FIRST_COMPLETED
                    )
            finally:
                is_gone, is_told = gone.done(), client.writer.done()
                for task in watched:
                    task.cancel()
                await asyncio.gather(*watched, return_exceptions=True)
        finally:
            self._leave(client)
        if not is_gone:
            await _end(scope, receive, send, _LAST_WORD if is_told else 0)

    async def _write(self, client: _Client, send: Send) -> None:
        async def write(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        await write(b": connected\n\n")
        # Why twice: what comes between the last look into the store and `is_live` would be missed.
        await self._catch_up(client, write)
        client.is_live = True
        await self._catch_up(client, write)
        while True:
            try:
                async with asyncio.timeout(self._heartbeat):
                    await client.bell.wait()
            except TimeoutError:
                await write(b": heartbeat\n\n")
            else:
                for piece in client.drain():
                    await write(piece)
                    await asyncio.sleep(0)  # Why: only then it is known whether the connection takes more
            if client.is_over:
                return

    async def _catch_up(self, client: _Client, write: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
        while events := await self._pipe.courier.call(self._pipe.store.events, client.after, _AT_ONCE):
            client.after = events[-1].number
            await write(b"".join(frame for _, frame in map(frame_of, events)))

    # The feed

    async def _subscribe(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def heed(events: list[JobEvent]) -> None:
            frames = [frame_of(event) for event in events]
            try:
                loop.call_soon_threadsafe(self._tell, frames)
            except RuntimeError:
                pass  # the loop has ended, and with it all clients

        return await self._pipe.courier.call(self._pipe.feed.subscribe, heed)

    def _tell(self, frames: list[Frame]) -> None:
        if not self._clients:
            return
        self._gathered += frames
        if len(self._gathered) >= _MOST_GATHERED:
            self._pass_on()
        elif self._next_round is None:
            loop = asyncio.get_running_loop()
            self._next_round = loop.call_at(max(self._rests_until, loop.time()), self._pass_on)

    def _pass_on(self) -> None:
        """Give all clients what is gathered."""
        if self._gathered:
            round = _Round(self._gathered)
            for client in self._clients:
                client.take(round)
            self._rests_until = asyncio.get_running_loop().time() + min(
                _REST * len(self._clients), _LONGEST_REST
            )
        self._forget()

    def _forget(self) -> None:
        self._gathered = []
        if self._next_round is not None:
            self._next_round.cancel()
            self._next_round = None

    def _leave(self, client: _Client) -> None:
        self._clients.discard(client)
        self._pulses.leave(client.feel)
        if not self._clients:
            self._forget()
        subscription = self._subscription
        if not self._clients and subscription is not None and subscription.done():
            self._subscription = None
            if not subscription.cancelled() and subscription.exception() is None:
                subscription.result()()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(scope: Scope, receive: Receive, send: Send, patience: float) -> None:
    """Say that it is over; cut the connection of one that does not listen."""
    try:
        async with asyncio.timeout(patience):
            await send({"type": "http.response.body"})
    except TimeoutError:
        abort = scope.get("extensions", {}).get(ABORT)
        if abort is not None:
            abort()
            await _until_gone(receive)


def _last_event_id(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"last-event-id" and value:
            if not (value.isdigit() and len(value) <= 18):
                raise BadInputError("Last-Event-ID", "must be the id of an event")
            return int(value)
    return None
