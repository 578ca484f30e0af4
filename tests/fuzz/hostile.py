"""What somebody sends who means harm, as strategies: names, numbers, instants, bodies, queries and paths.

Most of it is wrong, and some of it is right, so that there is something in the store to do harm to.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from hypothesis import strategies as st

JSON = "application/json"
NAMES = ("a", "b", "A", "a.b", "x:y@z", "echo", "sleep", "default", "cancel", "0")
"""Names that are allowed, few, so that they meet again."""
EVIL = (
    *("", " ", "a ", "-a", ".", "..", "../../etc/passwd", "a/b", "%00", "a\0b", "\ud800", "\udfff\ud800"),
    *("'; DROP TABLE jobs; --", '" OR ""="', "a' OR '1'='1", "a);DELETE FROM jobs;--", "$$;COMMIT;"),
    *("*", "jobpipe:*", "a\r\nFLUSHALL\r\n", "{a}b", "return redis.call('FLUSHALL')", "a\nb", "a\tb"),
    *(
        "<script>alert(1)</script>",
        "\x1b[31mred",
        "\u202eabc",
        "é",
        "\uff41",
        "İ",
        "漢",
        "😀",
        "x" * 101,
        "x" * 201,
    ),
    *(
        "null",
        "true",
        "NaN",
        "1e999",
        "${jndi:ldap://x}",
        "{{7*7}}",
        "os.system",
        "__class__",
        "%s%n",
        ":memory:",
    ),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 100, 101, 1000, 1001, -1000, -1001, 86_400, 86_401, 2**31, 2**53 + 1, 2**63 - 1, 2**63),
    *(
        2**64,
        -(2**63),
        -(2**63) - 1,
        10**299,
        0.0,
        -0.0,
        0.1,
        0.5,
        1e-9,
        5e-324,
        1e22,
        1.7976931348623157e308,
    ),
    *(0.1 + 0.2, 1 / 3, 1.0, 3.0, 86_400.0, 316_224_000.0, 316_224_001.0),
)
RAW_NUMBERS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "9" * 301,
    "01",
    "+1",
    "1.",
    ".5",
    "0x10",
    "--1",
)
INSTANTS = (
    *(
        "2030-01-01T00:00:00Z",
        "2030-01-01T00:00:00+14:00",
        "2030-01-01T00:00:00.123456789Z",
        "1970-01-01T00:00:00Z",
    ),
    *(
        "2000-02-30T00:00:00Z",
        "2030-01-01T00:00:00",
        "2030-01-01",
        "2030-01-01 00:00:00Z",
        "2030-01-01t00:00:00z",
    ),
    *(
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59Z",
    ),
    *(
        "10000-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2016-12-31T23:59:60Z",
        "2030-01-01T24:00:00Z",
        "tomorrow",
    ),
    *("2030-01-01T00:00:00+25:00", "-2030-01-01T00:00:00Z", "2030-01-01T00:00:00-00:00", "20300101T000000Z"),
)
CRONS = (
    "0 3 * * *",
    "*/5 * * * *",
    "* * * *",
    "0 0 30 2 *",
    "61 * * * *",
    "0 0 * * 8",
    "@reboot",
    "* * * * * *",
    "x",
)
ZONES = (
    "UTC",
    "Europe/Berlin",
    "../../etc/passwd",
    "/etc/localtime",
    "Nowhere/At_All",
    "europe/berlin",
    "localtime",
)
DEEP = (
    "[" * 63 + "]" * 63,
    "[" * 64 + "]" * 64,
    "[" * 2_000 + "]" * 2_000,
    '{"a":' * 65 + "1" + "}" * 65,
    "[" * 900,
)

good_names = st.sampled_from(NAMES)
names = st.one_of(good_names, good_names, good_names, st.sampled_from(EVIL), st.text(max_size=12))
numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
texts = st.one_of(st.sampled_from(EVIL), st.text(st.characters(codec=None), max_size=20))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, good_names),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
_safe_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
payloads = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        _safe_texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_safe_texts, inner, max_size=4)),
    max_leaves=8,
)
_instants = st.datetimes().map(lambda at: at.isoformat() + "Z")


class Fields(NamedTuple):
    """An object to be sent: what fits, for each field that must or may be there, and what does not."""

    right: dict[str, Any]
    wrong: dict[str, Any]
    needed: tuple[str, ...] = ()

    def objects(self) -> Any:
        """What fits, mostly; the rest has a field that does not."""
        needed = {name: self.right[name] for name in self.needed}
        may = {name: strategy for name, strategy in self.right.items() if name not in self.needed}
        good = st.fixed_dictionaries(needed, optional=may)
        one_wrong = st.sampled_from(sorted(self.wrong)).flatmap(
            lambda name: st.tuples(good, st.one_of(self.wrong[name], anything)).map(
                lambda both: {**both[0], name: both[1]}
            )
        )
        unknown = st.tuples(good, texts, anything).map(lambda each: {**each[0], each[1]: each[2]})
        return st.one_of(good, good, good, one_wrong, one_wrong, unknown)


jobs = Fields(
    right={
        "id": good_names,
        "type": st.one_of(st.just("echo"), good_names.filter(lambda name: name != "sleep")),
        "queue": good_names,
        "payload": payloads,
        "max_retries": st.integers(0, 100),
        "priority": st.integers(-1000, 1000),
        "delay": st.one_of(st.floats(0, 10_000), st.integers(0, 200)),
        "deadline": st.floats(0.001, 86_400),
    },
    wrong={
        "id": names,
        "type": names,
        "queue": names,
        "payload": anything,
        "max_retries": numbers,
        "priority": numbers,
        "delay": numbers,
        "deadline": numbers,
        "run_at": st.one_of(st.sampled_from(INSTANTS), _instants),
    },
    needed=("id",),
).objects()
_STATUSES = ("queued", "scheduled", "running", "done", "failed", "cancelled", "expired")
selections = Fields(
    right={
        "status": st.sampled_from(_STATUSES),
        "type": good_names,
        "queue": good_names,
        "error": good_names,
    },
    wrong={
        "status": st.sampled_from(["QUEUED", "'", ""]),
        "type": names,
        "queue": names,
        "error": names,
        "all": st.booleans(),
    },
).objects()
renewals = Fields(right={"payload": payloads}, wrong={"from": names}).objects()
schedules = Fields(
    right={
        "type": good_names,
        "payload": payloads,
        "queue": good_names,
        "every": st.one_of(st.sampled_from([0.1, 1, 60, 3_600.5]), st.floats(0.1, 366 * 86_400)),
        "missed": st.sampled_from(["one", "none"]),
    },
    wrong={
        "type": names,
        "payload": anything,
        "queue": names,
        "every": numbers,
        "cron": st.sampled_from(CRONS),
        "tz": st.sampled_from(ZONES),
        "missed": texts,
    },
    needed=("type", "every"),
).objects()
crons = st.fixed_dictionaries(
    {"type": good_names, "cron": st.sampled_from(CRONS)}, optional={"tz": st.sampled_from(ZONES)}
)


def _raw(text: str, encoding: str = "utf-8") -> bytes:
    return text.encode(encoding, "surrogatepass")


def _spoilt(text: str) -> Any:
    """Spellings that are no JSON, or such as is not taken."""
    twice = text[:-1] + (", " if len(text) > 2 else "") + '"id": "a", "id": "a"}'
    return st.one_of(
        st.just(_raw(twice)),
        st.sampled_from((*RAW_NUMBERS, *DEEP)).map(lambda each: _raw(f'{{"id": "a", "payload": {each}}}')),
        st.integers(0, len(text)).map(lambda end: _raw(text[:end])),
        st.sampled_from([" ", "\n", "x", "{}", "\0", ",", "]"]).map(lambda end: _raw(text + end)),
        st.sampled_from(["utf-16", "utf-32", "utf-8-sig"]).map(lambda encoding: _raw(text, encoding)),
        st.binary(max_size=40),
    )


def _spelt(objects: Any) -> Any:
    """An object as bytes, in some spelling, and now and then spoilt."""
    fine = st.tuples(objects, st.booleans()).map(lambda both: json.dumps(both[0], ensure_ascii=both[1]))
    return st.one_of(*[fine.map(_raw)] * 4, fine.flatmap(_spoilt))


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    query: bytes = b""
    body: bytes = b""
    kind: str = JSON

    @property
    def decoded(self) -> str:
        """The path as a server hands it on."""
        return unquote(self.path)


_kinds = st.one_of(
    *[st.just(JSON)] * 9,
    st.sampled_from(["application/json; charset=utf-8", "text/plain", "", "application/json;a=b"]),
)


def _post(path: Any, objects: Any, method: str = "POST") -> Any:
    paths = st.just(path) if isinstance(path, str) else path
    return st.tuples(paths, _spelt(objects), _kinds).map(
        lambda each: Call(method, each[0], body=each[1], kind=each[2])
    )


def _quoted(name: str) -> str:
    return quote(name.encode("utf-8", "surrogatepass"), safe="")


def _at(path: str, *methods: str) -> Any:
    """A call on something that is named in the path."""
    named = names.map(lambda name: path.format(_quoted(name)))
    return st.builds(
        Call, st.sampled_from(methods), named, query=st.one_of(*[st.just(b"")] * 9, st.just(b"x=1"))
    )


_limits = st.one_of(
    st.integers(1, 5).map(str),
    st.sampled_from(
        ["0", "-1", "501", "1e1", "1.0", "nan", "inf", " 5", "+5", "5 ", "٣", "0x5", "9" * 400, "", "true"]
    ),
)
_times = st.sampled_from(
    ["0", "0.001", "-0", "-1", "301", "nan", "-nan", "inf", "1e-3", "1_0", "", " ", "٣", "0x1", "'"]
)
_cursors = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(
        ["-1", "0", "9" * 18, "9" * 19, "1 OR 1=1", "1;", "٣", "²", "", "0x1", "1.0", "a", "\0", "NULL"]
    ),
)
_statuses = st.sampled_from([*_STATUSES, "QUEUED", "'", ""])
_pairs = st.one_of(
    st.tuples(st.just("limit"), _limits),
    st.tuples(st.just("cursor"), _cursors),
    st.tuples(st.just("status"), _statuses),
    st.tuples(st.sampled_from(["type", "queue"]), names),
    st.tuples(texts, texts),
)
_queries = st.one_of(
    st.lists(_pairs, max_size=3).map(
        lambda pairs: "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs).encode()
    ),
    st.sampled_from(
        [b"&&&", b"=", b"limit", b"%", b"%ff=%fe", b"limit=%zz", b"a=1;limit=2", b"&".join([b"a=1"] * 30)]
    ),
)

calls = st.one_of(
    _post("/enqueue", jobs),
    _post("/enqueue", jobs),
    _post("/enqueue", jobs),
    _post("/enqueue/batch", st.fixed_dictionaries({"jobs": st.lists(jobs, max_size=4)})),
    _post("/enqueue/batch", anything),
    _post("/jobs/cancel", selections),
    _post("/jobs/retry", selections),
    _post("/jobs/delete", selections),
    _post(names.map(lambda name: f"/jobs/{_quoted(name)}/retry"), renewals),
    st.builds(Call, st.just("GET"), st.just("/failures")),
    _post(names.map(lambda name: f"/schedules/{_quoted(name)}"), schedules, "PUT"),
    _post(names.map(lambda name: f"/schedules/{_quoted(name)}"), crons, "PUT"),
    st.builds(Call, st.just("GET"), st.just("/jobs"), query=_queries),
    st.builds(Call, st.just("GET"), st.just("/jobs"), query=_queries),
    _at("/jobs/{}", "GET", "HEAD", "DELETE"),
    _at("/jobs/{}/explain", "GET"),
    _at("/jobs/{}/cancel", "POST"),
    _at("/jobs/{}/retry", "POST"),
    _at("/queues/{}/pause", "POST"),
    _at("/queues/{}/resume", "POST"),
    _at("/schedules/{}", "GET", "DELETE"),
    _at("/schedules/{}/run", "POST"),
    _at("/schedules/{}/pause", "POST"),
    _at("/schedules/{}/resume", "POST"),
    _at("/{}", "GET", "POST"),
    st.sampled_from([Call("GET", path) for path in ("/queues", "/stats", "/schedules", "/health")]),
    _times.map(lambda text: Call("GET", "/jobs/a/wait", b"timeout=" + _quoted(text).encode())),
)
