"""What is sent, or planted in the store, to do harm; and more than fits."""

from __future__ import annotations

import gzip
import json
import pickle
import select
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .programs import Program, Start, memory

MEGABYTE = 1024 * 1024
JSON = {"Content-Type": "application/json"}

pytestmark = pytest.mark.real  # with the memory of one process


def send_raw(service: Program, head: str, body: Iterator[bytes]) -> tuple[int, int]:
    """Send for as long as the server takes it; the status that it answered, and how many bytes it took."""
    text = f"POST {head}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(text.encode())
        for piece in body:
            if select.select([connection], [], [], 0)[0]:
                break
            try:
                connection.sendall(piece)
            except OSError:
                break
            sent += len(piece)
        answer = connection.recv(65_536)
    return int(answer.split()[1]), sent


def with_length(count: int) -> Iterator[bytes]:
    yield b"Content-Length: %d\r\n\r\n" % (count * MEGABYTE)
    for _ in range(count):
        yield b"x" * MEGABYTE


def in_chunks(count: int) -> Iterator[bytes]:
    yield b"Transfer-Encoding: chunked\r\n\r\n"
    for _ in range(count):
        yield b"%x\r\n%s\r\n" % (MEGABYTE, b"x" * MEGABYTE)


def test_bombs_are_refused_and_take_little_memory(start: Start) -> None:
    """Fault 28."""
    service = start.serve()
    service.all_done([service.enqueue("mark", 1)])
    before = memory(service.child())

    for path in ("/enqueue", "/enqueue/batch"):
        for body in (with_length(100), in_chunks(100)):
            status, sent = send_raw(service, f"{path} HTTP/1.1", body)
            assert status == 413
            assert sent < 40 * MEGABYTE  # the limit of a batch, and what lies in buffers

    deep = b'{"payload":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    bodies: list[tuple[str, bytes, int]] = [
        ("/enqueue", deep, 400),
        ("/enqueue/batch", b'{"jobs":[' + deep + b"]}", 400),
        ("/enqueue/batch", b'{"jobs":' + b"[" * (10 * MEGABYTE), 400),
        ("/enqueue/batch", b"[" * 60 + b"[]" * 100 + b'"' + b"x" * (10 * MEGABYTE), 400),
        ("/enqueue", b'{"payload":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}", 400),
        ("/enqueue", b'{"payload":NaN}', 400),
        ("/enqueue", b'{"payload":-Infinity}', 400),
        ("/enqueue", b'{"payload":1e999}', 400),
        ("/enqueue", b'{"id":"a","id":"b"}', 400),
        ("/enqueue", b'{"payload":{"a":1,"a":2}}', 400),
        ("/enqueue", b'{"payload":' + b"9" * 100_000 + b"}", 400),
        ("/enqueue", b'{"payload":"' + b"x" * 262_145 + b'"}', 413),
        ("/enqueue", b"", 400),
    ]
    for path, content, expected in bodies:
        answer = service.http.post(path, content=content, headers=JSON)
        assert answer.status_code == expected, (content[:40], answer.text)
        assert answer.headers["Content-Type"] == "application/problem+json"

    bomb = gzip.compress(b'{"payload":"') + gzip.compress(b"x" * MEGABYTE) * 100 + gzip.compress(b'"}')
    answer = service.http.post("/enqueue", content=bomb, headers={**JSON, "Content-Encoding": "gzip"})
    assert answer.status_code == 415

    grown = memory(service.child()) - before
    assert grown < 50 * MEGABYTE, f"{grown / MEGABYTE:.0f} MiB"
    assert service.get("/stats")["done"] == 1
    assert len(service.get("/jobs")["jobs"]) == 1
    assert service.output.count("\n") == 1, service.output


def test_trailers_and_unfinished_bodies_take_little_memory(start: Start) -> None:
    """Faults 37 and 40."""
    service = start.serve("--workers", "0")
    service.enqueue("mark", 1)
    before = memory(service.child())
    for trailers in ([b"X-A: %s\r\n" % (b"y" * 1_000) * 1_000] * 20, [b"X-A: ", *[b"y" * MEGABYTE] * 20]):
        body = iter([b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", *trailers])
        status, sent = send_raw(service, "/enqueue HTTP/1.1", body)
        assert (status, sent < 20 * MEGABYTE) == (431, True)
    assert memory(service.child()) - before < 10 * MEGABYTE

    held: list[socket.socket] = []
    head = b"POST /enqueue/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    statuses: list[bytes] = []
    try:
        for _ in range(60):
            connection = socket.create_connection(("127.0.0.1", service.port), timeout=30)
            held.append(connection)
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % (16 * MEGABYTE))
            for _ in range(15):
                connection.sendall(b" " * MEGABYTE)
            if select.select([connection], [], [], 0)[0]:
                statuses.append(connection.recv(100)[9:12])
        assert service.get("/health") == {"status": "ok"}
        assert service.enqueue("mark", 2)
    finally:
        for connection in held:
            connection.close()
    assert len(statuses) > 45
    assert set(statuses) == {b"503"}
    assert memory(service.child()) - before < 200 * MEGABYTE


class Bomb:
    """Executes a command when it is unpickled."""

    def __reduce__(self) -> Any:
        import os

        return (os.system, ("touch pwned",))


def plant(start: Start, id: str, type: str, payload: object) -> None:
    start.sql(
        "INSERT INTO jobs (id, type, queue, status, max_retries, priority, run_at, created_at, fingerprint, payload)"
        " VALUES (?, ?, 'default', 'queued', 1, 0, ?, ?, 'x', ?)",
        *(id, type, time.time(), time.time(), payload),
    )


def test_what_is_planted_in_the_store_is_data(start: Start) -> None:
    """Fault 29: nothing is imported or executed."""
    service = start.serve()
    (start.folder / "evil.py").write_text("open('pwned', 'w')\n")
    types = ["os.system", "evil", "evil:pipe", "evil.run", "builtins.eval", "__import__"]
    for type in types:
        plant(start, f"planted-{type}", type, b'"touch pwned"')
    plant(start, "pickled", "mark", pickle.dumps(Bomb()))
    plant(start, "pickled-text", "mark", "cos\nsystem\n(S'touch pwned'\ntR.")
    plant(start, "yaml", "mark", json.dumps("!!python/object/apply:os.system ['touch pwned']"))
    honest = service.enqueue("mark", "honest")

    assert service.finished(honest)["result"] == "honest"
    assert service.finished("yaml")["result"].startswith("!!python")
    for type in types:
        job = service.job(f"planted-{type}")
        assert (job["status"], job["attempts"]) == ("queued", 0)
        assert service.get(f"/jobs/planted-{type}/explain")["reason"] == "no_worker"
    for id in ("pickled", "pickled-text"):
        assert service.finished(id)["status"] == "failed"
        assert not start.runs(id)
    listed = service.get("/jobs?limit=500")["jobs"]
    assert len(listed) == len(types) + 4
    assert not (start.folder / "pwned").exists()
    assert len(service.children()) == 1


@pytest.mark.parametrize("store", ["sqlite:///jobs.db", "memory://"])
def test_a_full_queue_refuses_and_runs_all_that_it_accepted(start: Start, store: str) -> None:
    """More than fits: 503 with Retry-After."""
    service = start.serve("--store", store, "--queue-size", "10")
    service.post("/queues/default/pause")
    accepted, refused = [], 0
    for n in range(20):
        answer = service.http.post("/enqueue", json={"id": f"j{n}", "type": "mark"})
        if answer.status_code == 202:
            accepted.append(f"j{n}")
        else:
            assert answer.status_code == 503, answer.text
            assert answer.json()["title"] == "The queue is full"
            assert int(answer.headers["Retry-After"]) >= 1
            refused += 1
    assert (len(accepted), refused) == (10, 10)
    again = {"id": accepted[0], "type": "mark"}
    assert service.http.post("/enqueue", json=again).status_code == 200  # it is there, and takes no place
    batch = {"jobs": [{"id": f"b{n}", "type": "mark"} for n in range(2)]}
    assert service.http.post("/enqueue/batch", json=batch).status_code == 503
    other = service.enqueue("mark", queue="other")
    assert service.finished(other)["status"] == "done"
    service.post("/queues/default/resume")
    service.all_done(accepted)
    assert sorted(id for id, _, _ in start.runs()) == sorted([*accepted, other])
    assert service.http.post("/enqueue/batch", json=batch).status_code == 202
    service.all_done(["b0", "b1"])
