"""What a look at a PostgreSQL server says about how well it keeps the promises."""

from __future__ import annotations

import time

from ...errors import StoreRefusedError
from .connection import Connection
from .migrate import checked_version, refuse_unfit
from .statements import Statements, migrations

_SKEWED = 1.0
"""Seconds between two clocks that are worth a remark."""
_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
_DURABLE = {
    "fsync": "a crash of the machine may lose jobs, or the whole database",
    "full_page_writes": "a crash of the machine may spoil the database",
    "synchronous_commit": "a crash of the server may lose jobs that were accepted a moment before",
}
"""Settings that should be on, and what it means if they are off."""


def remarks(connection: Connection, statements: Statements, url: str) -> list[str]:
    """One remark a line; StoreRefusedError if it cannot be used."""
    refuse_unfit(connection, url)
    version = checked_version(connection, statements, url)
    if version is None:
        raise StoreRefusedError(f"the store {url} has no tables of jobpipe: run `jobpipe migrate`")
    newest = migrations()[-1][0]
    if version < newest:
        raise StoreRefusedError(
            f"the store {url} has the schema {version}, {newest} is needed: run `jobpipe migrate`"
        )
    found = dict.fromkeys(_DURABLE, "")
    for name in found:
        ((found[name],),) = connection.execute("SELECT current_setting(%s)", [name]).fetchall()
    ((is_replica,),) = connection.execute("SELECT pg_is_in_recovery()").fetchall()
    if is_replica:
        raise StoreRefusedError(f"the store {url} is a replica that only reads: name the primary")
    table = f'"{statements.schema}".jobs'
    rights = [right for right in _RIGHTS if not _may(connection, table, right)]
    if rights:
        raise StoreRefusedError(
            f"the store {url} does not let its user {' and '.join(rights)} in {table}: grant it, or use another user"
        )
    said = connection.info.parameter_status("server_version") or "?"
    weak = [f"{name} = {value}: {_DURABLE[name]}" for name, value in found.items() if value == "off"]
    durable = "every accepted job and every outcome is on disk before it is acknowledged (fsync, synchronous_commit)"
    return [
        f"PostgreSQL {said}, schema {statements.schema!r}, version {version}",
        *(weak or [durable]),
        _skew(connection),
    ]


def _may(connection: Connection, table: str, right: str) -> bool:
    ((is_granted,),) = connection.execute("SELECT has_table_privilege(%s, %s)", [table, right]).fetchall()
    return bool(is_granted)


def _skew(connection: Connection) -> str:
    before = time.time()
    ((server,),) = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
    skew = server - (before + time.time()) / 2
    if abs(skew) < _SKEWED:
        return "its clock and that of this machine agree; its own decides"
    return f"its clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} that of this machine; its own decides"
