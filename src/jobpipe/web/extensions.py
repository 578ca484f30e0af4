"""Extensions of the ASGI scope by which the service's own server gives more than ASGI has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

ABORT = "jobpipe.abort"
"""Cuts a connection without waiting for what is not sent yet."""
WRITE = "jobpipe.write"
"""Writes a chunk of the body as it is, or says that it would have to wait."""


async def cut(scope: Scope, receive: Receive) -> bool:
    """Cut the connection, and return when it is gone; False where the server cannot."""
    abort = scope.get("extensions", {}).get(ABORT)
    if abort is None:
        return False
    abort()
    await until_gone(receive)
    return True


async def until_gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
