"""The store in a PostgreSQL database: any number of processes on any number of machines."""

from ...errors import SettingsError

try:
    import psycopg as _
except ImportError as error:
    raise SettingsError(
        "JOBPIPE_STORE", f"needs a driver: pip install 'rate-envelope-queue[postgres]' ({error})"
    ) from None

from .store import PostgresStore, open_postgres

__all__ = ["PostgresStore", "open_postgres"]
