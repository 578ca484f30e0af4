"""Address: what a `postgresql://` URL says, as psycopg takes it, and the same without its secrets."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...errors import SettingsError

DEFAULT_SCHEMA = "jobpipe"
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,47}")
_SECRETS = ("password", "sslpassword")
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

    @classmethod
    def parse(cls, url: str) -> Self:
        """SettingsError, which shows nothing of the URL, for one that is none."""
        try:
            parts = urlsplit(url)
            options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            own = [value for name, value in options if name == "schema"]
            rest = [(name, value) for name, value in options if name != "schema"]
            plain = parts._replace(query=urlencode(rest, quote_via=quote))
            parameters = conninfo_to_dict(urlunsplit(plain))
            shown = _shown(plain, rest)
        except (ValueError, psycopg.Error):
            raise SettingsError(
                "JOBPIPE_STORE",
                "must be a URL like postgresql://user:password@host:5432/database?schema=jobpipe",
            ) from None
        schema = own[-1] if own else DEFAULT_SCHEMA
        if not _SCHEMA.fullmatch(schema):
            raise SettingsError(
                "JOBPIPE_STORE", f"must name a schema of letters, digits and underscores, got {schema!r}"
            )
        return cls(
            {**_HABITS, **parameters},
            schema,
            shown + ("" if schema == DEFAULT_SCHEMA else _mark(shown, schema)),
        )


def _shown(parts: SplitResult, options: list[tuple[str, str]]) -> str:
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    kept = [(option, "***" if option in _SECRETS else value) for option, value in options]
    netloc = f"{name}{':***' if colon else ''}{at}{host}"
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(kept, safe="*/", quote_via=quote)))


def _mark(shown: str, schema: str) -> str:
    return f"{'&' if '?' in shown else '?'}schema={schema}"
