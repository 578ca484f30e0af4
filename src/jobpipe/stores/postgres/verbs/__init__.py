"""The verbs of the store, by noun, each a generator of what it asks of the server."""
