"""Server-sent events: one subscription to the pipe's feed for all clients, which are told in rounds.

A client that reads too slowly is cut off: it comes back with Last-Event-ID, and gets from the store what it has missed.
Everything but `on_events` runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request

from ...errors import BadInputError
from ...model.job import JobStatus
from ..asgi import WRITE
from ..operation import Operation, Stream, encode
from ..problems import TooManyStreamsError
from ..query import EventsQuery
from ..site import Site, is_cancelled
from .client import StreamClient
from .piece import SIGN_OF_LIFE, Frame, Piece
from .polls import Poll, look_for_progress, look_for_pulses
from .rounds import Rounds
from .stream import HEARTBEAT, LAST_WORD, MEDIA_TYPE, Task, Write, end, stream

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ...model.counts import JobEvent

MOST_CLIENTS = 1_000
_AT_ONCE = 500
_FEED_REST = 0.02
"""Seconds that clients can wait for what happens right after something else: the feed looks less often then."""
_MOST_DIGITS = 18


class EventData(Struct, frozen=True):
    """One change of a job's status."""

    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int


class SentEvent(Struct, frozen=True, kw_only=True):
    """An event: of a job, with a number, and id, type, queue, status and attempts as data; of a job's progress, with id,
    value and note, and of a pulse, both without a number."""

    id: str | UnsetType = UNSET
    event: Literal["job", "progress", "pulse"]
    data: Annotated[str, Meta(extra_json_schema={"contentMediaType": "application/json"})]


LastEventId = Annotated[str, Meta(extra_json_schema={"pattern": "^(-?[0-9]+)?$"})]


def frame_of(event: JobEvent) -> Frame:
    """The number of an event, and how it goes over the wire."""
    data = encode(EventData(event.id, event.type, event.queue, event.status, event.attempts))
    return event.number, b"id: %d\nevent: job\ndata: %b\n\n" % (event.number, data)


class Events:
    """`GET /events`."""

    def __init__(self, site: Site, heartbeat: float = HEARTBEAT) -> None:
        self._site = site
        self._pipe = site.pipe
        self._heartbeat = heartbeat
        self._clients: set[StreamClient] = set()
        self._subscription: asyncio.Task[Callable[[], None]] | None = None
        self._rounds = Rounds(self._clients)
        self._told = 0
        """The number of the newest event that clients are told of."""
        self._last_look: asyncio.Task[None] | None = None
        self._next_beat: asyncio.TimerHandle | None = None
        """There as long as there are clients."""
        self._pulses = Poll(partial(look_for_pulses, site), self._tell_pulse, "the pulse raised an error")
        self._progress = Poll(
            partial(look_for_progress, site), self._tell_progress, "the progress of jobs could not be told"
        )

    @property
    def clients(self) -> int:
        """How many there are."""
        return len(self._clients)

    @Operation(
        "GET",
        "/events",
        "Stream every change of a job's status, and progress; Last-Event-ID resumes a stream; with pulse, also the counts every second",
        answers={200: Stream(MEDIA_TYPE, SentEvent)},
        headers={"Last-Event-ID": LastEventId},
        query=EventsQuery,
    )
    async def events(self, request: Request) -> ASGIApp:
        ends, asked = self._site.ending, _last_event_id(request.scope)
        if len(self._clients) >= MOST_CLIENTS:
            raise TooManyStreamsError(f"{MOST_CLIENTS:,} streams are already open: try again later")
        client = StreamClient(request.scope.get("extensions", {}).get(WRITE))
        try:
            if request.method != "HEAD":
                await self._join(client)
            await self._begin(client, asked)
        except BaseException:
            self._leave(client)
            raise
        return partial(self._stream, client, ends)

    async def _begin(self, client: StreamClient, asked: int | None) -> None:
        """Find out what the client has seen."""
        last = await self._pipe.async_store.call(self._pipe.store.last_event)
        # Why from 0: a number that is not there yet is that of a store that is gone; all of this one is new.
        client.after = last if asked is None else asked if asked <= last else 0
        self._told = max(self._told, last)

    async def _stream(
        self, client: StreamClient, ends: asyncio.Event, scope: Scope, receive: Receive, send: Send
    ) -> None:
        async def tell(write: Write) -> None:
            client.writer = asyncio.current_task()
            if scope["query"].pulse:
                client.wants_pulse = True
                self._pulses.start()
            await write(b": connected\n\n")
            # Why twice: what comes between the last look into the store and `is_live` would be missed.
            await self._catch_up(client, write)
            client.is_live = True
            await self._catch_up(client, write)
            await client.write(write)

        async def finish(writer: Task, gone: Task) -> None:
            """Wait until all is written; no longer than a moment for a client that takes nothing."""
            await is_cancelled(self._look_a_last_time())
            self._rounds.flush()
            client.finish()
            told = -1
            while told < client.after and not (writer.done() or gone.done()):
                told = client.after
                await is_cancelled(
                    asyncio.wait([writer, gone], timeout=LAST_WORD, return_when=asyncio.FIRST_COMPLETED)
                )

        try:
            patience = await stream(scope, receive, send, ends=ends, tell=tell, finish=finish)
        finally:
            self._leave(client)
        await end(scope, receive, send, patience)

    async def _catch_up(self, client: StreamClient, write: Write) -> None:
        while events := await self._pipe.async_store.call(self._pipe.store.events, client.after, _AT_ONCE):
            client.after = events[-1].number
            await write(b"".join(frame for _, frame in map(frame_of, events)))

    # The feed

    async def _subscribe(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def on_events(events: list[JobEvent]) -> None:
            frames = [frame_of(event) for event in events]
            try:
                loop.call_soon_threadsafe(self._tell, frames)
            except RuntimeError:
                pass  # the loop has ended, and with it all clients

        return await self._pipe.async_store.call(self._pipe.feed.subscribe, on_events, _FEED_REST)

    def _tell(self, frames: list[Frame]) -> None:
        if self._clients:
            self._rounds.gather(frames)
            self._told = max(self._told, frames[-1][0])

    def _tell_progress(self, piece: Piece | None) -> None:
        if piece is not None:
            for client in self._clients:
                client.on_progress(piece)

    def _tell_pulse(self, piece: Piece | None) -> None:
        for client in self._clients:
            if client.wants_pulse:
                client.on_pulse(piece or SIGN_OF_LIFE)

    async def _look_a_last_time(self) -> None:
        """Once for all clients: what happened right before the end may not have come through the feed yet."""
        if self._last_look is None:
            self._last_look = asyncio.create_task(self._look())
        await asyncio.wait([self._last_look], timeout=LAST_WORD)

    async def _look(self) -> None:
        while events := await self._pipe.async_store.call(self._pipe.store.events, self._told, _AT_ONCE):
            self._tell([frame_of(event) for event in events])

    # Who is there

    async def _join(self, client: StreamClient) -> None:
        self._clients.add(client)
        self._progress.start()
        if self._next_beat is None:
            self._next_beat = asyncio.get_running_loop().call_later(self._heartbeat, self._beat)
        if self._subscription is None:
            self._subscription = asyncio.create_task(self._subscribe())
        await asyncio.shield(self._subscription)

    def _beat(self) -> None:
        self._next_beat = asyncio.get_running_loop().call_later(self._heartbeat, self._beat)
        for client in self._clients:
            client.beat(SIGN_OF_LIFE)

    def _leave(self, client: StreamClient) -> None:
        client.is_live = False
        self._clients.discard(client)
        if not any(each.wants_pulse for each in self._clients):
            self._pulses.stop()
        if self._clients:
            return
        self._rounds.forget()
        self._progress.stop()
        if self._next_beat is not None:
            self._next_beat.cancel()
            self._next_beat = None
        if self._subscription is not None:
            self._subscription.add_done_callback(self._unsubscribe)

    def _unsubscribe(self, subscription: asyncio.Task[Callable[[], None]]) -> None:
        """Unless somebody has come meanwhile."""
        if self._clients or subscription is not self._subscription:
            return
        self._subscription = None
        if not subscription.cancelled() and subscription.exception() is None:
            subscription.result()()


def _last_event_id(scope: Scope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"last-event-id" and value:
            digits = value.removeprefix(b"-")
            if not digits.isdigit():
                raise BadInputError("Last-Event-ID", "must be the number of an event")
            # Why 0: no event has such a number, so all events are new.
            is_possible = digits == value and len(digits) <= _MOST_DIGITS
            return int(digits) if is_possible else 0
    return None
