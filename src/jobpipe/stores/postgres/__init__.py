"""The store in a PostgreSQL database: any number of processes on any number of machines."""

from .store import PostgresStore, open_postgres

__all__ = ["PostgresStore", "open_postgres"]
