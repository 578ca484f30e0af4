"""Migrations: each file once, in order, all of them in one transaction that nobody else can be in."""

from __future__ import annotations

from psycopg import errors as pg
from psycopg import sql

from ...errors import StoreRefusedError
from .connection import Connection
from .statements import Statements, migrations

OLDEST = 130_000
"""The first with incremental sorting and gen_random_uuid()."""

# Why not to_regclass: it may remember that there was none, though another has made it meanwhile.
HAS_TABLE = b"""
SELECT 1 FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname = %(schema)s AND relname = %(name)s
"""


def migrate(connection: Connection, statements: Statements, url: str) -> list[str]:
    """Bring the schema up to date; the names of the steps that it took."""
    newest = migrations()[-1][0]
    refuse_unfit(connection, url)
    if checked_version(connection, statements, url) == newest:
        return []
    schema = statements.schema
    with connection.transaction():
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtext('jobpipe.migrations'), hashtext(%s))", [schema]
        )
        # Why again: another may have migrated while this one waited for the lock
        version = checked_version(connection, statements, url)
        if version is None:
            _make_schema(connection, schema)
        steps = [(number, name, file) for number, name, file in migrations() if number > (version or 0)]
        for number, name, file in steps:
            connection.execute(statements.migration(file), prepare=False)
            connection.execute(
                sql.SQL("INSERT INTO {}.migrations (number, name) VALUES (%s, %s)").format(
                    sql.Identifier(schema)
                ),
                [number, name],
            )
        return [name for _, name, _ in steps]


def checked_version(connection: Connection, statements: Statements, url: str) -> int | None:
    """The number of the newest migration that was done; StoreRefusedError if this program does not know it."""
    version = _version(connection, statements.schema)
    newest = migrations()[-1][0]
    if version is not None and version > newest:
        raise StoreRefusedError(
            f"the store {url} has the schema {version}, this program knows {newest} at most: use a newer program"
        )
    return version


def refuse_unfit(connection: Connection, url: str) -> None:
    """StoreRefusedError for a server that cannot keep the promises."""
    version = connection.info.server_version
    if version < OLDEST:
        raise StoreRefusedError(
            f"the store {url} is PostgreSQL {version // 10_000}: at least {OLDEST // 10_000} is needed"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreRefusedError(f"the database of {url} has the encoding {encoding}: one with UTF8 is needed")


def _version(connection: Connection, schema: str) -> int | None:
    if not connection.execute(HAS_TABLE, {"schema": schema, "name": "migrations"}).fetchall():
        return None
    query = sql.SQL("SELECT coalesce(max(number), 0) FROM {}.migrations").format(sql.Identifier(schema))
    ((number,),) = connection.execute(query).fetchall()
    return int(number)


def _make_schema(connection: Connection, schema: str) -> None:
    # Why asked first: who may not make schemas can still be given one.
    found = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s", [schema]
    ).fetchall()
    try:
        if not found:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute(
            sql.SQL(
                "CREATE TABLE {}.migrations"
                " (number integer PRIMARY KEY, name text NOT NULL, done_at timestamptz NOT NULL DEFAULT now())"
            ).format(sql.Identifier(schema))
        )
    except pg.InsufficientPrivilege as error:
        raise StoreRefusedError(
            f"the schema {schema} cannot be made: {error.diag.message_primary}; as the owner of the database, run"
            f' CREATE SCHEMA "{schema}" AUTHORIZATION "{connection.info.user}"'
        ) from error
