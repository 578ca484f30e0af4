"""What ASGI leaves to its applications: where one is mounted, which headers every answer has, when the client has left.

By ASGI, `root_path` is the prefix and `path` has it too; some servers and frameworks cut it off. Both are understood, in
the way in which Starlette's router does. `ABORT` and `WRITE` are extensions of the service's own server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

ABORT = "jobpipe.abort"
"""Cuts a connection without waiting for what is not sent yet."""
WRITE = "jobpipe.write"
"""Writes a chunk of the body as it is, or says that it would have to wait."""
SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""On every answer, so that a browser makes no more of it than the data that it is."""


def root_of(scope: Scope) -> str:
    """The prefix under which the application is mounted; empty where it is not."""
    root: str = scope.get("root_path", "")
    return root.rstrip("/")


def path_of(scope: Scope) -> str:
    """The path below the prefix."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        return path[len(root) :]
    return path


def safely(send: Send) -> Send:
    """A way to send that adds the safe headers which an answer, such as a page, does not have of its own."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            own = {name for name, _ in headers}
            message["headers"] = [*headers, *(each for each in SAFE_HEADERS if each[0] not in own)]
        await send(message)

    return send_safely


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
