"""An HTTP/1.1 server for one ASGI application, made for strangers: everything that a client can hold on to has a bound.

Bytes become requests (`parser`), requests and their answers take turns on a connection (`connection`, `exchange`), and the
server accepts connections, looks at their timers, and ends them (`server`). No TLS, no websockets, no lifespan.
"""
