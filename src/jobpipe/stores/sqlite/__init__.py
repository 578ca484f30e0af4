"""The store in a SQLite file: one writer with group commit, readers beside it; several processes may share it."""

from .store import SqliteStore, open_sqlite

__all__ = ["SqliteStore", "open_sqlite"]
