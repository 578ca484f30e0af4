"""What is said of a URL, and what is not."""

from __future__ import annotations

import re
import traceback
from contextlib import closing

import pytest
from redis.exceptions import NoPermissionError

from jobpipe.errors import SettingsError, StoreError
from jobpipe.model.text import Mask, masked
from jobpipe.stores import open_store
from jobpipe.stores.redis.address import address_of
from jobpipe.stores.redis.server import Server


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite:////tmp/jobs.db?key=hunter2", "sqlite:////tmp/jobs.db?***"),
        ("postgresql://me:hunter2@host:5432/db", "postgresql://***@host:5432/db"),
        ("postgresql://hunter2@host/db#hunter2", "postgresql://***@host/db?***"),
        ("postgresql://me:a@hunter2/b@host/db", "postgresql://***"),
        ("redis://:hunter2@[::1/0", "redis://***@[::1/0"),
        ("redis://host?password=a@hunter2", "redis://***"),
        ("hunter2", "***"),
        ("://hunter2", "***"),
        ("", "***"),
    ],
)
def test_only_what_is_no_secret_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        *(
            "hunter2",
            "hunter2:x",
            "sqlite://me:hunter2@host/x",
            "sqlite:///:memory:?key=hunter2",
        ),
        *("mysql://me:hunter2@host", "mysql://me:hunter2@[host", "mysql://me:hunter2@h\u2100st/x"),
    ],
)
def test_a_wrong_store_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingsError, match="JOBPIPE_STORE must") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


def test_what_a_driver_repeats_of_a_secret_is_masked() -> None:
    mask = Mask(["hunter2", "a/b@c", None], "redis://***@host/0")
    assert mask('no user "hunter2" with a%2Fb%40c, a/b@c') == 'no user "***" with ***, ***'
    assert mask("hunter22 is another word") == "hunter22 is another word"


def test_what_the_masked_url_shows_stays_readable() -> None:
    mask = Mask(["postgres", "hunter2"], "postgresql://***@host/postgres")
    assert mask('database "postgres" refuses hunter2') == 'database "postgres" refuses ***'
    assert Mask([], "")("as it was") == "as it was"


def test_errors_are_masked_with_those_that_led_to_them() -> None:
    def fail() -> None:
        try:
            raise LookupError("hunter2 there")
        except LookupError as error:
            raise KeyError("hunter2 here", 5) from error

    with pytest.raises(KeyError) as caught:
        fail()
    mask = Mask(["hunter2"], "")
    assert mask.scrub(caught.value, LookupError) == str(caught.value)
    assert caught.value.args == ("*** here", 5)
    assert str(caught.value.__cause__) == "*** there"


def test_secrets_in_odd_places_of_the_url_are_shown_nowhere(postgres: str) -> None:
    """Fault 46: the server says which user it does not know; with the error it came from, as logs show it."""
    with (
        closing(open_store(re.sub("//[^@/]*@", "//hunter2@", postgres))) as store,
        pytest.raises(StoreError, match=r'role "\*\*\*" does not exist') as caught,
    ):
        store.migrate()
    text = "".join(traceback.format_exception(caught.value))
    assert "psycopg.OperationalError" in text
    assert "hunter2" not in text


def test_what_a_redis_server_says_of_the_user_is_masked() -> None:
    server = Server(address_of("redis://hunter2:hunter3@localhost:1"))
    for error in (NoPermissionError("User hunter2 has no permissions"), ConnectionError("hunter3")):
        with pytest.raises(StoreError) as caught, server.mapped_errors():
            raise error
        assert "hunter" not in str(caught.value)
