"""Attacks on the real program from outside: injection, foreign callers, log lines, floods, and a hunt for secrets."""

from __future__ import annotations

import json
import re
import resource
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ..support.waiting import LIMIT, eventually
from .programs import Program, Start, jobpipe, script

JSON = {"Content-Type": "application/json"}
EVIL_NAMES = (
    *(
        "'; DROP TABLE jobs; --",
        '" OR ""="',
        "a' OR '1'='1",
        "a'); DELETE FROM jobs; --",
        "a UNION SELECT 1",
        "%",
    ),
    *(
        "*",
        "a*",
        "jobpipe:*",
        "{a}b",
        "a\r\nFLUSHALL\r\n",
        "return redis.call('FLUSHALL')",
        "a|b",
        "../jobs.db",
    ),
    *("a\0b", "<script>alert(1)</script>", "\x1b[31ma", "$(touch pwned)", "`touch pwned`", ":a", "@a", "-a"),
)
EVIL_TEXT = (
    "first\r\n2026-01-01T00:00:00.000Z ERROR jobpipe forged\n\x1b[31mred\x1b]0;title\x07\u2028\u202e\x85"
)


def dump(start: Start) -> list[Any]:
    """All tables of the file but that of the workers, which changes by itself."""
    with closing(connect(start.database, timeout=LIMIT)) as connection:
        schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [
            name for name, sql in schema if (sql or "").startswith("CREATE TABLE") and name != "workers"
        ]
        rows = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables]  # ours
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert "jobs" in tables
    return [schema, *rows]


def test_injection_is_refused_or_bound_and_the_dump_is_unchanged(start: Start) -> None:
    """Fault 30: through id, type, queue, filters and cursors."""
    service = start.serve("--workers", "0")
    for id in ("a", "b"):
        service.enqueue("mark", id, id=id, delay=60)
    service.post("/queues/held/pause")
    service.call("PUT", "/schedules/daily", {"type": "mark", "cron": "0 3 * * *"})
    before = dump(start)
    for evil in EVIL_NAMES:
        path = quote(evil, safe="")
        sent: list[tuple[str, str, Any]] = [
            *(("POST", "/enqueue", {field: evil}) for field in ("id", "type", "queue")),
            *(
                ("POST", "/enqueue/batch", {"jobs": [{"id": "ok"}, {field: evil}]})
                for field in ("id", "type", "queue")
            ),
            *(
                ("GET", f"/jobs?{field}={path}", None)
                for field in ("type", "queue", "status", "cursor", "limit")
            ),
            *(
                ("POST", f"/jobs/{verb}", {field: evil})
                for verb in ("cancel", "retry")
                for field in ("type", "queue", "status")
            ),
            *(("POST", f"/jobs/{path}/{verb}", None) for verb in ("cancel", "retry")),
            *(("GET", f"/jobs/{path}{rest}", None) for rest in ("", "/explain", "/wait?timeout=0")),
            *(("POST", f"/queues/{path}/{verb}", None) for verb in ("pause", "resume")),
            ("PUT", f"/schedules/{path}", {"type": "mark", "every": 60}),
            ("PUT", "/schedules/daily", {"type": "mark", "cron": evil}),
            ("PUT", "/schedules/daily", {"type": "mark", "cron": "0 3 * * *", "tz": evil}),
            *(
                (method, f"/schedules/{path}{rest}", None)
                for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/run"))
            ),
        ]
        for method, target, body in sent:
            answer = service.call(method, target, body)
            assert answer.status_code in (404, 405, 422), (method, target, body, answer.text)
    assert dump(start) == before
    for number, evil in enumerate(EVIL_NAMES):  # in a payload it is data
        if "\0" not in evil:
            id = service.enqueue("mark", {evil: [evil]}, id=f"p{number}", delay=60)
            assert service.job(id)["payload"] == {evil: [evil]}
    assert dump(start)[0] == before[0]
    assert not (start.folder / "pwned").exists()
    assert "ERROR" not in service.output


def raw(service: Program, request: bytes) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to these bytes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT) as connection:
        connection.sendall(request)
        head = b""
        while b"\r\n\r\n" not in head and (data := connection.recv(65_536)):
            head += data
    first, *lines = head.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return int(first.split()[1]), {
        name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
    }


def test_every_answer_is_data_for_a_browser(start: Start) -> None:
    """Fault 31, on this side: no answer is a page, may be taken for one, framed, or kept."""
    service = start.serve("--queue-size", "2")
    script_id = quote("<script>alert(1)</script>", safe="")
    service.finished(service.enqueue("mark", "<script>", id="t1"))

    def ask(method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
        return head.encode() + b"\r\n\r\n" + body

    expected: list[tuple[int, bytes]] = [
        *(
            (200, ask("GET", path))
            for path in ("/health", "/readyz", "/jobs", "/jobs/t1", "/stats", "/queues")
        ),
        *((200, ask("GET", path)) for path in ("/metrics", "/openapi.json", "/schedules", "/events")),
        (202, ask("POST", "/enqueue", b'{"delay": 60}')),
        (200, ask("PUT", "/schedules/s", b'{"type": "mark", "every": 60}')),
        (204, ask("DELETE", "/schedules/s")),
        (400, ask("POST", "/enqueue", b"<script>")),
        (400, b"GET /jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        (400, b"<script>alert(1)</script>\r\n\r\n"),
        (404, ask("GET", f"/jobs/{script_id}")),
        (404, ask("GET", f"/{script_id}")),
        (405, ask("PUT", "/enqueue")),
        (409, ask("POST", "/jobs/t1/retry")),
        (
            413,
            b"POST /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n".replace(
                b"Host: a", b"Host: localhost\r\nContent-Type: application/json"
            ),
        ),
        (415, ask("POST", "/enqueue", b"{}", "text/html")),
        (422, ask("POST", "/enqueue", b'{"id": "<script>"}')),
        (503, ask("POST", "/enqueue/batch", b'{"jobs": [{}, {}, {}]}')),
    ]
    for status, request in expected:
        found, headers = raw(service, request)
        assert found == status, (request, found)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["cache-control"] == "no-store"
        kind = headers.get("content-type", "none").partition(";")[0]
        if status >= 400:
            assert kind == "application/problem+json", request
        else:
            assert kind in ("application/json", "text/plain", "text/event-stream", "none"), request


FOREIGN = "https://evil.example"


@pytest.mark.parametrize(
    ("token", "method", "headers", "status"),
    [
        (None, "GET", {}, 401),
        (None, "POST", {}, 401),
        ("wrong", "GET", {}, 401),
        ("wrong", "POST", {}, 401),
        ("lesen", "GET", {}, 200),
        ("lesen", "POST", {}, 403),
        ("geheim", "GET", {}, 200),
        ("geheim", "POST", {}, 202),
        ("geheim", "GET", {"Origin": FOREIGN}, 200),
        ("geheim", "POST", {"Origin": FOREIGN}, 403),
        ("geheim", "POST", {"Origin": "null"}, 403),
        ("geheim", "POST", {"Origin": "http://localhost:8080", "Host": "localhost:8080"}, 202),
        ("geheim", "POST", {"Origin": "http://localhost:3000", "Host": "localhost:8080"}, 403),
        ("geheim", "GET", {"Host": "evil.example"}, 400),
        ("geheim", "POST", {"Host": "evil.example"}, 400),
    ],
)
def test_who_may_call(
    guarded: Program, token: str | None, method: str, headers: dict[str, str], status: int
) -> None:
    """Fault 32."""
    given = headers if token is None else {**headers, "Authorization": f"Bearer {token}"}
    for path in (
        ("/jobs", "/stats", "/metrics", "/openapi.json", "/queues") if method == "GET" else ("/enqueue",)
    ):
        answer = guarded.http.request(method, path, json={} if method == "POST" else None, headers=given)
        assert answer.status_code == status, (path, answer.text)
    for probe in ("/health", "/livez", "/readyz"):
        assert guarded.http.get(probe, headers=headers).status_code == 200


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    start = Start(tmp_path_factory.mktemp("guarded"))
    start.env = {"JOBPIPE_TOKEN": "geheim", "JOBPIPE_READ_TOKEN": "lesen"}
    try:
        yield start.plain("--store", "memory://", "--queue-size", "0")
    finally:
        start.close()


def test_who_can_be_reached_by_others_wants_a_token(start: Start) -> None:
    """Fault 32: beyond loopback only with a token, or with --insecure."""
    for host in ("0.0.0.0", "::"):
        refused = start.command(jobpipe("serve", "--port", "0", "--store", "memory://", "--host", host))
        assert refused.code() == 2
        assert re.fullmatch(
            r"error: JOBPIPE_HOST '.*' can be reached from other machines: .*--insecure.*\n", refused.output
        )
    token = "x" * 16
    for flags in (["--insecure"], ["--token", token]):
        service = start.plain("--store", "memory://", "--host", "0.0.0.0", *flags)
        answer = httpx.get(
            f"http://127.0.0.1:{service.port}/jobs", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200
        assert ("--insecure: everyone who can reach this address" in service.output) == (
            flags == ["--insecure"]
        )
        assert "fewer than 16 characters" not in service.output


def test_a_short_token_is_warned_of(guarded: Program) -> None:
    """Fault 41; the token is not shown."""
    assert guarded.output.count("a token has fewer than 16 characters") == 1
    assert "geheim" not in guarded.output


EVIL_APP = f"""
from jobpipe import Cancel, Jobpipe, Retry, current_job
pipe = Jobpipe("sqlite:///jobs.db", port=0)
EVIL = {EVIL_TEXT!r}
Evil = type(EVIL.replace("\\x00", ""), (Exception,), {{}})

@pipe.job("raises", max_retries=0)
async def raises():
    current_job().progress(0.5, EVIL)
    raise Evil(EVIL)

@pipe.job("retries", max_retries=1)
def retries():
    raise Retry(after=0.01, reason=EVIL)

@pipe.job("cancels")
async def cancels():
    raise Cancel(EVIL)

@pipe.job("logs")
def logs():
    import logging, threading, warnings
    logging.getLogger(EVIL).warning("%s", EVIL, extra={{EVIL.strip(): EVIL}})
    warnings.warn(EVIL)
    def die():
        raise Evil(EVIL)
    thread = threading.Thread(target=die, name=EVIL)
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("style", ["text", "json"])
def test_one_event_is_one_escaped_line(start: Start, style: str) -> None:
    """Fault 33: whatever is in the strings of handlers, requests and settings."""
    (start.folder / "evil.py").write_text(EVIL_APP, encoding="utf-8")
    start.env = {"JOBPIPE_LOG": style, "JOBPIPE_NO\nSUCH\x1b[31m": "x"}
    service = start("serve", "evil:pipe")
    for type in ("raises", "retries", "cancels", "logs"):
        assert service.finished(service.enqueue(type))["status"] in ("failed", "cancelled", "done")
    evil = quote(EVIL_TEXT.encode())
    for path in (f"/jobs/{evil}", f"/{evil}", f"/jobs?type={evil}", f"/jobs?{evil}=1"):
        assert service.http.get(path).status_code in (404, 422)
    for header in ("Host", "Origin", "Last-Event-ID", "User-Agent"):
        service.http.get("/jobs", headers=[(header.encode(), b"a\x1b[31m\xff")])
    raw(service, b"GET /\x1b[31m\r\nHost: x\n\n HTTP/1.1\r\n\r\n")
    service.line("thread")
    service.signal(15)
    assert service.code() == 0
    lines = service.output.split("\n")
    assert lines.pop() == ""
    for line in lines:
        assert line.isprintable(), repr(line)
        if style == "json":
            assert json.loads(line).keys() >= {"time", "level", "logger", "message"}
        else:
            assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) ", line), line
    told = [line for line in lines if "first" in line]
    assert len(told) == 7, told  # raises, retries twice, cancels; of logs: the line, the warning, the thread
    assert sum("forged" in line for line in lines) == len(told)


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--workers", EVIL_TEXT],
        ["serve", "--log", EVIL_TEXT],
        ["serve", "--host", EVIL_TEXT],
        ["serve", "--store", EVIL_TEXT],
        ["serve", "--store", f"sqlite:///{EVIL_TEXT}/x/jobs.db"],
        ["serve", "--token-file", EVIL_TEXT],
        ["serve", EVIL_TEXT],
        ["job", EVIL_TEXT, "--store", "sqlite:///jobs.db"],
        ["enqueue", EVIL_TEXT, "1", "--store", "sqlite:///jobs.db"],
        ["jobs", "--type", EVIL_TEXT, "--store", "sqlite:///jobs.db"],
        ["jobs", "--url", EVIL_TEXT],
    ],
    ids=lambda arguments: " ".join(arguments[:2])[:16],
)
def test_what_is_wrong_with_an_argument_is_one_escaped_line(start: Start, arguments: list[str]) -> None:
    """Fault 33, on the command line."""
    start.command(jobpipe("enqueue", "echo", "1", "--store", "sqlite:///jobs.db")).code()
    program = start.command(jobpipe(*arguments))
    assert program.code() in (1, 2)
    text, end = program.output[:-1], program.output[-1:]
    assert end == "\n"
    assert text.startswith("error: ")
    assert text.isprintable(), repr(text)


IMPATIENT = """
import sys
from functools import partial
from jobpipe.web import serve
from jobpipe.web.server.limits import Limits
serve.Limits = partial(Limits, head=1.0, body=1.0, sweep=0.1)
from jobpipe.cli.main import main
sys.argv[0] = "jobpipe"
main()
"""


def test_slow_connections_are_closed_and_others_are_served(start: Start) -> None:
    """Fault 35: two hundred that never come to an end, while probes and jobs go on."""
    service = start.command(script(IMPATIENT, "serve", "--port", "0", "--store", "memory://"))
    head = b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    begun = [b"", b"GET /he", head, head + b"X-A: b\r\n", head + b"Content-Length: 100\r\n\r\n{"]
    slow = [socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT) for _ in range(200)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall(begun[number % len(begun)])
        assert service.get("/health") == {"status": "ok"}
        assert service.finished(service.enqueue("echo", 1))["status"] == "done"
        for connection in slow:
            try:
                assert connection.recv(100)[9:12] in (b"", b"408")
            except ConnectionResetError:
                pass
        assert service.get("/health") == {"status": "ok"}
    finally:
        for connection in slow:
            connection.close()


def test_idle_sockets_do_not_lock_others_out_where_files_are_few(start: Start) -> None:
    """Fault 38: 1,100 of them, of a service that may open 1,024 files."""
    few = f"ulimit -n 1024 && exec {sys.executable} -m jobpipe serve --port 0 --store memory:// --workers 1"
    service = start.command(["bash", "-c", few])
    service.get("/health")
    begun = [
        b"\r\n",
        b"",
        b"GET /he",
        b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
    ]
    held: list[socket.socket] = []
    try:
        with many_files(1_500):
            for number in range(1_100):
                held.append(socket.create_connection(("127.0.0.1", service.port), timeout=LIMIT))
                held[-1].sendall(begun[number % len(begun)])
            with httpx.Client(verify=False, base_url=service.url, timeout=LIMIT) as other:
                assert other.get("/health").status_code == 200
                assert other.post("/enqueue", json={}).status_code == 202
            assert service.output.count("connections at once") == 1
            assert "ERROR" not in service.output
    finally:
        for each in held:
            each.close()


@contextmanager
def many_files(number: int) -> Iterator[None]:
    """More files than usual for this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, number)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_flood_of_wrong_tokens_is_slowed_down_and_a_right_one_is_not(start: Start) -> None:
    """Fault 35."""
    service = start.plain("--store", "memory://", "--token", "geheim", "--read-token", "lesen")

    def ask(token: str) -> int:
        return service.http.get("/jobs", headers={"Authorization": f"Bearer {token}"}).status_code

    with ThreadPoolExecutor(24) as pool:  # Why so many: each wrong one too many takes up to a second
        wrong = list(pool.map(ask, (f"wrong-{number}" for number in range(44))))
        right = list(pool.map(ask, ["geheim", "wrong", "lesen"] * 8))
    assert wrong.count(401) == 20
    assert wrong.count(429) == 24
    assert right == [200, 429, 200] * 8
    assert service.output.count("refused a wrong token") == 1
    assert ask("wrong") == 429
    assert service.http.get("/health").status_code == 200
    answer = service.http.get("/jobs", headers={"Authorization": "Bearer wrong"})
    assert 1 <= int(answer.headers["Retry-After"]) <= 60


SECRET = "hunter2"
TYPED_APP = """
import enum
from dataclasses import dataclass
from jobpipe import Jobpipe
pipe = Jobpipe(port=0)

class Kind(enum.Enum):
    A = "a"

@dataclass
class Mail:
    to: str
    kind: Kind = Kind.A

@pipe.job("mail", max_retries=0)
async def mail(mail: Mail):
    return None
"""


@pytest.mark.real  # with the command line of a process
def test_secrets_are_nowhere_to_be_seen(start: Start) -> None:
    """Fault 36: not in logs, lists, numbers, descriptions, errors, or the command lines of processes."""
    (start.folder / "typed.py").write_text(TYPED_APP)
    (start.folder / "token").write_text(f"{SECRET}-token\n")
    start.env = {
        "JOBPIPE_STORE": f"sqlite:///jobs.db?key={SECRET}",
        "JOBPIPE_TOKEN_FILE": "token",
        "JOBPIPE_READ_TOKEN": f"{SECRET}-read",
    }
    service = start("serve", "typed:pipe")
    service.http.headers["Authorization"] = f"Bearer {SECRET}-token"
    good = service.enqueue("mail", {"to": SECRET})
    assert service.finished(good)["status"] == "done"
    planted = {"wrong-kind": {"to": "x", "kind": SECRET}, "wrong-type": [SECRET]}
    for id, payload in planted.items():  # as an older program may have left it
        start.sql(
            "INSERT INTO jobs (id, type, queue, status, max_retries, priority, run_at, created_at, fingerprint, payload)"
            " VALUES (?, 'mail', 'default', 'queued', 0, 0, 1, 1, 'x', ?)",
            *(id, json.dumps(payload)),
        )
        assert service.finished(id)["status"] == "failed"
    seen = [
        service.http.get(path).text
        for path in ("/stats", "/metrics", "/openapi.json", "/queues", "/jobs", "/health")
    ]
    seen += [service.http.get(f"/jobs/{id}/explain").text for id in planted]
    seen += [json.dumps(service.job(id)["error"]) for id in planted]
    for token in (f"{SECRET}-x", f"{SECRET}-read"):
        answer = service.http.post("/enqueue", json={}, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code in (401, 403)
        seen.append(answer.text)
    answer = service.http.post("/enqueue", json={"type": "mail", "payload": {"to": "x", "kind": SECRET}})
    assert answer.status_code == 422
    seen.append(answer.text)
    for pid in (service.pid, *service.children()):
        seen.append(Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/comm").read_text())
    service.kill_child()
    eventually(
        lambda: service.http.get("/readyz").status_code == 200 if service.children() else None, service.output
    )
    service.signal(15)
    assert service.code() == 0
    assert "failed at attempt 1" in service.output
    for text in (*seen, service.output):
        assert SECRET not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["jobs", "--store", f"mysql://me:{SECRET}@localhost/db"],
        ["jobs", "--store", f"sqlite://me:{SECRET}@localhost/db"],
        ["jobs", "--store", SECRET],
        ["serve", "--store", f"mysql://me:{SECRET}@localhost/db?password={SECRET}"],
        ["serve", "--store", f"mysql://me:{SECRET}@[localhost/db"],
        ["jobs", "--url", f"http://me:{SECRET}@localhost:1/"],
        ["jobs", "--url", f"http://localhost:1/?token={SECRET}"],
        ["jobs", "--url", f"http://me:{SECRET}@[localhost"],
        ["jobs", "--url", "http://localhost:1", "--token", SECRET],
        ["serve", "--token", f"{SECRET} b"],
        ["serve", "--token-file", "token"],
        ["serve", "--token", SECRET, "--read-token", SECRET],
        ["serve", "--token", SECRET, "--port", "x"],
    ],
    ids=lambda arguments: " ".join(arguments[:3])[:40].replace(SECRET, "secret"),
)
def test_an_error_line_shows_no_secret(start: Start, arguments: list[str]) -> None:
    """Fault 36, on the command line."""
    (start.folder / "token").write_text(f"{SECRET} and more\n")
    program = start.command(jobpipe(*arguments))
    assert program.code() in (1, 2)
    assert program.output.startswith("error: ")
    assert program.output.count("\n") == 1
    assert SECRET not in program.output
