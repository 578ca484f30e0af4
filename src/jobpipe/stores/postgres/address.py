"""Address: what a `postgresql://` URL says, as psycopg takes it, and the same without its secrets."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from ...errors import SettingsError
from ...model.text import ESCAPES, HIDDEN, Mask

DEFAULT_SCHEMA = "jobpipe"
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
_USER = re.compile(r"//[^/@]*@")
"""With the password, up to the first @, as libpq reads it."""
_SECRETS = {"user", *(each.keyword.decode() for each in Conninfo.get_defaults() if each.dispchar == b"*")}
"""Options: those that libpq itself would not show, and the user, in whose place many a password stands."""
_HABITS: dict[str, Any] = {
    "application_name": "jobpipe",
    "connect_timeout": 5,
    # Why: a peer that vanished without a word is noticed in some twenty seconds, not in two hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
"""Where the URL says nothing else."""


class Address(NamedTuple):
    """Which database, and which schema in it."""

    parameters: dict[str, Any]
    """Of a connection, as libpq names them."""
    schema: str
    url: str
    """Without secrets."""
    mask: Mask
    """For what the driver and the server say."""

    @classmethod
    def parse(cls, url: str) -> Self:
        """SettingsError, which shows nothing of the URL, for one that is none."""
        whole, _, query = url.partition("?")
        if "@" in _USER.sub("", whole):
            raise SettingsError("JOBPIPE_STORE", ESCAPES)
        try:
            options = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
            own = [value for name, value in options if name == "schema"]
            rest = [(name, value) for name, value in options if name != "schema"]
            parameters = conninfo_to_dict(_joined(whole, rest))
            for port in str(parameters.get("port", "")).split(","):
                int(port or 0)
        except (ValueError, psycopg.Error):
            raise SettingsError(
                "JOBPIPE_STORE",
                "must be a URL like postgresql://user:password@host:5432/database?schema=jobpipe",
            ) from None
        schema = own[-1] if own else DEFAULT_SCHEMA
        if not _SCHEMA.fullmatch(schema):
            got = HIDDEN if "@" in query else repr(schema)  # the end of a password may be taken for a query
            raise SettingsError(
                "JOBPIPE_STORE", f"must name a schema of letters, digits and underscores, got {got}"
            )
        shown = [(name, HIDDEN if name in _SECRETS else value) for name, value in rest]
        named = [] if schema == DEFAULT_SCHEMA else [("schema", schema)]
        url = _joined(_USER.sub(f"//{HIDDEN}@", whole), [*shown, *named])
        mask = Mask([parameters.get(name) for name in _SECRETS], url)
        return cls({**_HABITS, **parameters}, schema, url, mask)


def _joined(whole: str, options: list[tuple[str, str]]) -> str:
    return f"{whole}?{urlencode(options, safe='*/', quote_via=quote)}" if options else whole
