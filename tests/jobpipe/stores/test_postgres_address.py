"""URLs of PostgreSQL stores: what they say, and that their secrets are never shown."""

from __future__ import annotations

import pytest

from jobpipe import SettingsError
from jobpipe.stores import open_store
from jobpipe.stores.postgres.address import Address


def test_url_names_host_database_and_schema() -> None:
    address = Address.parse("postgresql://me:secret@db.example:6432/orders?sslmode=require&schema=jobs")
    parameters = address.parameters
    assert (parameters["host"], parameters["port"], parameters["dbname"]) == ("db.example", "6432", "orders")
    assert (parameters["user"], parameters["password"], parameters["sslmode"]) == ("me", "secret", "require")
    assert "schema" not in parameters
    assert address.schema == "jobs"


def test_url_may_say_what_else_would_be_habit() -> None:
    assert Address.parse("postgres:///orders").parameters["connect_timeout"] == 5
    assert Address.parse("postgres:///orders?connect_timeout=30").parameters["connect_timeout"] == "30"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@db/orders", "postgresql://***@db/orders"),
        ("postgresql://me:a%40s3cret@db:1/orders?schema=x", "postgresql://***@db:1/orders?schema=x"),
        ("postgres://s3cret@db/orders", "postgres://***@db/orders"),
        ("postgres:///orders?user=s3cret", "postgres:///orders?user=***"),
        (
            "postgresql:///orders?password=s3cret&host=/run/pg",
            "postgresql:///orders?password=***&host=/run/pg",
        ),
        (
            "postgresql://db/orders?sslpassword=s3cret&schema=x",
            "postgresql://db/orders?sslpassword=***&schema=x",
        ),
        ("postgresql://me:s3cret@one:1,two:2/orders", "postgresql://***@one:1,two:2/orders"),
    ],
)
def test_secrets_are_masked(url: str, shown: str) -> None:
    with_store = open_store(url)
    assert with_store.url == shown
    assert with_store.sibling().url == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@db:port/orders",
        "postgresql://me:s3cret@[::1/orders",
        "postgresql://me:s3cret@db/orders?nonsense=1",
        "postgresql://me:s3cret@db/orders?schema=a-b",
        "postgresql://me:s3cret@db/orders?schema=a%22%3B%20DROP",
        "postgresql://me:s3cret@db/orders?=",
        "postgresql://me:a@s3cret@db/orders",
        "postgresql://me:s3cret/a@db/orders",
        "postgresql://me:12/s3cret@db/orders",
        "postgresql://me:12?s3cret@db/orders",
        "postgresql://me:12?s3cret=@db/orders",
        "postgresql://me:12?schema=s3cret@db/orders",
    ],
)
def test_url_that_is_none_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_store(url)
    assert caught.value.name == "JOBPIPE_STORE"
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_special_characters_in_a_password_are_asked_to_be_escaped() -> None:
    with pytest.raises(SettingsError, match="write %40 for @"):
        open_store("postgresql://me:a@b@db/orders")
