"""An answer that is a stream of events, from its head to its end, whoever ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ..asgi import cut, until_gone
from ..site import is_cancelled

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0
LAST_WORD = 1.0
"""Seconds that a client has to take what is left, and the end of its stream."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]

Write = Callable[[bytes], Awaitable[None]]
Task = asyncio.Task[None]


async def stream(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    ends: asyncio.Event,
    tell: Callable[[Write], Coroutine[Any, Any, None]],
    finish: Callable[[Task, Task], Awaitable[None]] | None = None,
) -> float | None:
    """Have `tell` write until it returns, the client leaves, or the service ends; the seconds for which to `end` it.

    When the service ends, `finish` gets the tasks that write and that wait for the client to leave.
    """
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body"})
        return None

    async def write(body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})

    writer = asyncio.create_task(tell(write))
    gone = asyncio.create_task(until_gone(receive))
    ending = asyncio.create_task(ends.wait())
    watched: list[asyncio.Task[Any]] = [writer, gone, ending]
    try:
        is_stopped = await is_cancelled(asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED))
        if finish is not None and (is_stopped or ending.done()):
            await finish(writer, gone)
    finally:
        is_gone, is_told = gone.done(), writer.done()
        for task in watched:
            task.cancel()
        await asyncio.gather(*watched, return_exceptions=True)
    if is_gone:
        return None
    return LAST_WORD if is_told else 0


async def end(scope: Scope, receive: Receive, send: Send, patience: float | None) -> None:
    """Say that it is over, if somebody is there; cut the connection of one that does not listen."""
    if patience is None:
        return
    try:
        async with asyncio.timeout(patience):
            await send({"type": "http.response.body"})
    except TimeoutError:
        await cut(scope, receive)
