"""Extensions of the ASGI scope by which the service's own server gives streams more than ASGI has."""

from __future__ import annotations

ABORT = "jobpipe.abort"
"""Cuts a connection without waiting for what is not sent yet."""
WRITE = "jobpipe.write"
"""Writes a chunk of the body as it is, or says that it would have to wait."""
