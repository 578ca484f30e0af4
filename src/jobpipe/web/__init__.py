"""The HTTP API: an ASGI application around a pipe, and the server that runs it."""
