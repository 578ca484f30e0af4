"""URLs of Redis servers: what they lead to, what is refused, and that no secret is shown."""

from __future__ import annotations

import sys

import pytest
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection

from jobpipe import SettingsError, open_store
from jobpipe.stores.redis import RedisStore
from jobpipe.stores.redis.address import address_of, masked


@pytest.mark.parametrize(
    ("url", "kind", "options"),
    [
        ("redis://", Connection, {"host": "localhost", "port": 6379, "db": 0}),
        ("redis://example.com", Connection, {"host": "example.com", "port": 6379, "db": 0}),
        ("redis://10.0.0.1:7000/3", Connection, {"host": "10.0.0.1", "port": 7000, "db": 3}),
        ("redis://[::1]:7000/", Connection, {"host": "::1", "port": 7000, "db": 0}),
        ("redis://me:p%40ss@h/1", Connection, {"username": "me", "password": "p@ss", "db": 1}),
        ("redis://:secret@h", Connection, {"password": "secret"}),
        ("redis://h?socket_timeout=1.5", Connection, {"socket_timeout": 1.5}),
        ("rediss://h?ssl_check_hostname=false", SSLConnection, {"host": "h", "ssl_check_hostname": False}),
        ("unix:///run/redis.sock?db=2", UnixDomainSocketConnection, {"path": "/run/redis.sock", "db": 2}),
        ("redis+unix:///run/redis.sock", UnixDomainSocketConnection, {"path": "/run/redis.sock"}),
        (
            "unix://me:secret@/run/r.sock",
            UnixDomainSocketConnection,
            {"username": "me", "password": "secret"},
        ),
    ],
)
def test_url_leads_to_a_server(url: str, kind: type, options: dict[str, object]) -> None:
    address = address_of(url)
    assert address.connection_class is kind
    assert {name: address.options[name] for name in options} == options
    assert address.root == "{jobpipe}"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://h/abc", "number of a database"),
        ("redis://h/0/1", "number of a database"),
        ("redis://h:99999", "port"),
        ("redis://h:x", "port"),
        ("redis://h?prefix=", "prefix"),
        ("redis://h?prefix={x}", "prefix"),
        ("redis://h?prefix=a%20b", "prefix"),
        ("redis://h?decode_responses=1", "'decode_responses'"),
        ("redis://h?socket_timeout=soon", "'socket_timeout'"),
        ("rediss://h?ssl_check_hostname=perhaps", "'ssl_check_hostname'"),
        ("unix://", "socket"),
        ("http://h", "redis://"),
    ],
)
def test_wrong_url_is_refused_with_a_word_about_it(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        address_of(url)


def test_prefix_names_the_keys() -> None:
    assert address_of("redis://h/1?prefix=my-app").root == "{my-app}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/2?prefix=x", "redis://h:1/2?prefix=x"),
        ("redis://me:secret@h/2", "redis://***@h/2"),
        ("redis://:secret@h", "redis://***@h"),
        ("redis://secret@h", "redis://***@h"),
        ("redis://:a@secret@h", "redis://***@h"),
        ("redis://h?username=secret", "redis://h?username=***"),
        ("redis://h?password=secret&db=1", "redis://h?password=***&db=1"),
        ("rediss://h?ssl_password=secret", "rediss://h?ssl_password=***"),
        ("unix:///run/redis.sock?password=secret", "unix:///run/redis.sock?password=***"),
    ],
)
def test_secrets_are_not_shown(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert RedisStore(url).url == shown


@pytest.mark.parametrize(
    "url",
    [
        "redis://me:secret@h/x?password=secret",
        "redis://me:12/secret@h/0",
        "redis://me:12?secret@h/0",
        "redis://me:12?secret=@h/0",
        "redis://me:12?prefix=secret!@h/0",
        "redis://me:12#secret@h/0",
        "unix://me:12/secret@/run/redis.sock",
    ],
)
def test_error_about_a_url_does_not_show_its_secret(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        address_of(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["redis", "rediss", "unix", "redis+unix"])
def test_store_is_had_for_its_schemes(scheme: str) -> None:
    assert isinstance(open_store(f"{scheme}:///0" if "unix" in scheme else f"{scheme}://h/0"), RedisStore)


def test_missing_driver_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("jobpipe.stores.redis")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(SettingsError, match=r"pip install 'rate-envelope-queue\[redis\]'.*redis"):
        open_store("redis://localhost")
