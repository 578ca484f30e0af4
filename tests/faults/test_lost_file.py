"""Fault 43: the SQLite file is taken away under a running service, and comes back."""

from __future__ import annotations

from ..support.waiting import eventually
from .programs import Start


def test_a_file_that_is_gone_is_a_store_that_is_away(start: Start) -> None:
    service = start.serve()
    service.all_done([service.enqueue("mark", "early")])
    files = list(start.folder.glob("jobs.db*"))
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    away = start.folder / "away"
    away.mkdir()
    for file in files:
        file.rename(away / file.name)
    answer = service.http.post("/enqueue", json={"id": "new", "type": "mark", "payload": ""})
    assert (answer.status_code, answer.json()["title"]) == (503, "The store is unavailable")
    for _ in range(5):
        assert service.http.get("/readyz").status_code == 503
    assert service.http.get("/health").status_code == 200
    line = service.line("not ready: .*jobs.db was deleted or moved away while this process had it open")
    assert service.output.count("not ready:") == 1, line
    for file in files:
        (away / file.name).rename(file)
    eventually(lambda: service.http.get("/readyz").status_code == 200)
    service.line("ready again")
    service.all_done([service.enqueue("mark", "late")])
