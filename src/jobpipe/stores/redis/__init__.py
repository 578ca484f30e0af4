"""The store on a Redis or Valkey server: one script a verb, any number of processes on any number of machines."""

from .store import RedisStore, open_redis

__all__ = ["RedisStore", "open_redis"]
