"""URLs, the list of targets, and addresses: what is the same, what is allowed, and what is public."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from jobpipe.errors import SettingsError
from jobpipe.jobtypes.http.address import is_public
from jobpipe.model.url import BadUrlError, Targets, read_target, read_url
from jobpipe.settings import Settings

# URLs


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://api.example.com", "https://api.example.com", "/"),
        ("HTTPS://API.Example.COM.:443/a/B?c=D#e", "https://api.example.com", "/a/B?c=D"),
        ("http://example.com:80?q", "http://example.com", "/?q"),
        ("http://example.com:443/", "http://example.com:443", "/"),
        ("http://Bücher.example/ä?ö=%20", "http://xn--bcher-kva.example", "/%C3%A4?%C3%B6=%20"),
        ("http://xn--BCHER-kva.example/", "http://xn--bcher-kva.example", "/"),
        ("http://127.0.0.1.:9000/", "http://127.0.0.1:9000", "/"),
        ("http://\uff11\uff12\uff17.0\u30020.1/", "http://127.0.0.1", "/"),
        ("http://[0:0::0:1]:9000/", "http://[::1]:9000", "/"),
        ("http://my_host-1/{x}", "http://my_host-1", "/%7Bx%7D"),
    ],
)
def test_a_url_has_one_spelling(text: str, origin: str, target: str) -> None:
    url = read_url(text)
    assert (str(url.origin), url.path + url.query) == (origin, target)


@pytest.mark.parametrize(
    "text",
    [
        *("", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "https:example.com"),
        *("http://", "http:///path", "http://:80/", "http://.", "http://a..b", "http://.a", "http://a b/"),
        *("http://user@example.com", "http://user:password@example.com", "http://good.example@evil.example"),
        *("http://example.com:", "http://example.com:0", "http://example.com:65536", "http://example.com:8o"),
        *("http://example.com:٣", "http://example.com:80:80", "http://exa%6dple.com", "http://*.example.com"),
        *(
            "http://a\\@b/",
            "http://a\r\nb/",
            "http://a/\x00",
            "http://a/\ud800",
            "http://a/\u2028",
            "\thttp://a",
        ),
        *(
            "http://-a.example",
            "http://a-.example",
            "http://a,b",
            f"http://{'a' * 64}",
            f"http://{'a.' * 127}b",
        ),
        *("http://2130706433", "http://0x7f000001", "http://0x7f.1", "http://127.1", "http://0177.0.0.1"),
        *("http://127.0.0.01", "http://1.2.3.4.5", "http://256.0.0.1", "http://a.1", "http://0x"),
        *("http://[::1", "http://[::1%25lo]", "http://[fe80::1%lo]/", "http://[::g]", "http://[127.0.0.1]"),
        *("http://[::1]a", "http://::1/", f"http://a/{'b' * 9000}"),
    ],
    ids=ascii,
)
def test_what_could_be_taken_for_another_place_is_no_url(text: str) -> None:
    with pytest.raises(BadUrlError):
        read_url(text)


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("/c", "https://a.example/c"),
        ("c?d", "https://a.example/b/c"),
        ("?d", "https://a.example/b/"),
        ("//B.example:443/", "https://b.example/"),
        ("HTTP://b.example", "http://b.example/"),
    ],
)
def test_a_reference_is_joined(location: str, found: str) -> None:
    assert str(read_url("https://a.example/b/?secret").join(location)) == found


@pytest.mark.parametrize(
    "location", ["ftp://b/", "http://[", "//u@b/", "/\r\nX: y", "\\\\b\\c", "javascript:1"]
)
def test_a_reference_that_leads_nowhere_is_refused(location: str) -> None:
    with pytest.raises(BadUrlError):
        read_url("https://a.example/b/").join(location)


# The list


@pytest.mark.parametrize(
    ("target", "url", "is_allowed"),
    [
        ("https://api.example.com", "https://API.example.com.:443/x", True),
        ("https://api.example.com:443", "https://api.example.com", True),
        ("https://api.example.com", "http://api.example.com", False),
        ("https://api.example.com", "https://api.example.com:8443", False),
        ("https://api.example.com", "https://api.example.com.evil.example", False),
        ("https://api.example.com", "https://x.api.example.com", False),
        ("https://*.example.com", "https://a.example.com", True),
        ("https://*.example.com", "https://a.b.c.example.com", True),
        ("https://*.example.com", "https://example.com", False),
        ("https://*.example.com", "https://evilexample.com", False),
        ("https://*.example.com", "http://a.example.com", False),
        ("https://*.example.com", "https://a.example.com:444", False),
        ("https://*.example.com:444", "https://a.example.com:444", True),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000/x", True),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9001", False),
        ("http://127.0.0.1:9000", "http://127.0.0.2:9000", False),
        ("http://127.0.0.1:9000", "http://localhost:9000", False),
        ("http://127.0.0.1:9000", "http://[::ffff:127.0.0.1]:9000", False),
        ("http://localhost:9000", "http://127.0.0.1:9000", False),
        ("http://[::1]:9000", "http://[0::1]:9000", True),
        ("https://bücher.example", "https://xn--bcher-kva.example", True),
    ],
)
def test_a_target_allows_its_own_origins_alone(target: str, url: str, is_allowed: bool) -> None:
    assert Targets([target]).allow(read_url(url).origin) is is_allowed
    assert Targets(["https://other.example", target]).allow(read_url(url).origin) is is_allowed
    assert not Targets(["https://other.example"]).allow(read_url(url).origin)


def test_an_empty_list_allows_nothing() -> None:
    assert not Targets()
    assert not Targets().allow(read_url("https://api.example.com").origin)


WRONG = [
    *(
        "*",
        "api.example.com",
        "https://",
        "https://*",
        "https://*.",
        "https://a.*.example",
        "ftp://a.example",
    ),
    *("https://a.example/", "https://a.example/path", "https://a.example?q", "https://a.example#f"),
    *("https://*.127.0.0.1", "https://*.[::1]", "https://*a.example", "https://127.1", "https://a.example:x"),
    *("null", "https://a.example b.example", "*.example.com", "https://**.example.com"),
]


@pytest.mark.parametrize("entry", WRONG)
def test_a_wrong_entry_stops_the_start_with_a_line_that_names_it(entry: str) -> None:
    with pytest.raises(BadUrlError):
        read_target(entry)
    with pytest.raises(SettingsError) as caught:
        Settings.load(environ={"JOBPIPE_HTTP_TARGETS": f"https://fine.example, {entry}"}, env_file="/nowhere")
    assert caught.value.name == "JOBPIPE_HTTP_TARGETS"
    assert repr(entry.partition("?")[0]) in str(caught.value)
    assert "fine" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_entry_does_not_give_its_secrets_away() -> None:
    for entry in (
        "https://me:hunter2@a.example",
        "https://me:hunter2@b@a.example",
        "https://a.example?hunter2",
    ):
        with pytest.raises(SettingsError) as caught:
            Settings.load({"http_targets": entry}, environ={}, env_file="/nowhere")
        assert str(caught.value).startswith("--http-targets must be a comma-separated list of origins")
        assert "hunter2" not in str(caught.value)


# Addresses


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_what_anybody_can_reach_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
        ),
        *(
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
        ),
        *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1", "168.63.129.16"),
        *(
            "::",
            "::1",
            "fe80::1",
            "fe80::1%1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "ff0e::1",
            "2001:db8::1",
        ),
        *("2001::1", "3fff::1", "5f00::1", "100::1", "64:ff9b:1::1", "fd00:ec2::254"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "2002:e000:1::"),
    ],
)
def test_what_leads_to_somewhere_within_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))
