"""Safety: headers on every answer, so that a browser makes no more of it than the data that it is.

A page that needs more, or that may be kept, says so in headers of its own, which stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message, Send

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


def safely(send: Send) -> Send:
    """A way to send that adds the headers which an answer does not have."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            own = {name for name, _ in headers}
            message["headers"] = [*headers, *(each for each in HEADERS if each[0] not in own)]
        await send(message)

    return send_safely
