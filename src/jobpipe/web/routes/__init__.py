"""The calls of the API, one module a noun."""
