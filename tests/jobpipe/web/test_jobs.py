"""The calls on jobs, row by row of the contract."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobpipe import Jobpipe, JobRequest

from .conftest import Caller, calling, problem, run

FIELDS = {
    *("id", "type", "queue", "payload", "result", "status", "attempts", "max_retries", "priority", "run_at"),
    *("deadline", "error", "progress", "created_at", "started_at", "finished_at", "history"),
    *("expires_at", "unique", "on_duplicate", "max_wait", "tags", "steps"),
}


async def finish(pipe: Jobpipe, *, is_failed: bool = False) -> None:
    """Run one queued job as a worker would, by hand."""
    from jobpipe.model.job import JobError, Move
    from jobpipe.stores.base import Outcome, Settlement

    (claim,) = pipe.store.claim("w", ["echo"], 1, 30).claims
    error = JobError(type="E", message="no")
    outcome = (
        Outcome(move=Move.FAIL, error=error) if is_failed else Outcome(move=Move.SUCCEED, result=b'"out"')
    )
    assert pipe.store.settle([Settlement(claim.lease, outcome)]) == [True]


def test_a_job_is_accepted_and_shown_with_every_field(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        sent = {"id": "t1", "payload": {"a": [1, "ä"]}, "max_retries": 5, "priority": -3, "deadline": 2.5}
        sent |= {"unique": "n", "on_duplicate": "replace", "max_wait": 9.0, "tags": ["b", "a"]}
        sent |= {"expires_at": "2100-01-01T00:00:00Z"}
        accepted = await call("POST", "/enqueue", json=sent)
        assert (accepted.status_code, accepted.json()) == (202, {"id": "t1", "status": "queued"})
        job = (await call("GET", "/jobs/t1")).json()
        assert job.keys() == FIELDS
        assert job | sent == job
        assert (job["type"], job["queue"], job["attempts"], job["history"]) == ("echo", "default", 0, [])
        assert job["created_at"].endswith("Z")

    on_each_store(scenario)


def test_the_same_again_is_the_same_job_and_other_content_a_conflict(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "t1", "payload": {"a": 1, "b": 2}})
        again = await call(
            "POST", "/enqueue", json={"payload": {"b": 2, "a": 1}, "id": "t1", "max_retries": 10}
        )
        assert again.status_code == 200
        assert again.json().keys() == FIELDS
        await call.refused(409, "POST", "/enqueue", json={"id": "t1", "payload": "other"})
        await call.refused(
            409, "POST", "/enqueue", json={"id": "t1", "payload": {"a": 1, "b": 2}, "priority": 1}
        )

    on_each_store(scenario)


def test_a_job_without_an_id_gets_one_and_one_with_a_delay_is_scheduled(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        first = (await call("POST", "/enqueue", json={})).json()
        second = (await call("POST", "/enqueue", json={"delay": 60})).json()
        assert first["id"][:13] <= second["id"][:13], "ids sort by the millisecond"
        assert (first["status"], second["status"]) == ("queued", "scheduled")
        third = await call("POST", "/enqueue", json={"run_at": "2999-01-01T00:00:00+02:00"})
        assert third.json()["status"] == "scheduled"

    on_memory(scenario)


def test_a_batch_goes_in_whole_or_not_at_all(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        batch = {"jobs": [{"id": "a"}, {"id": "b", "payload": 1}]}
        expected = {"jobs": [{"id": "a", "status": "queued"}, {"id": "b", "status": "queued"}]}
        first = await call("POST", "/enqueue/batch", json=batch)
        assert (first.status_code, first.json()) == (202, expected)
        again = await call("POST", "/enqueue/batch", json=batch)
        assert (again.status_code, again.json()) == (200, expected)
        mixed = await call("POST", "/enqueue/batch", json={"jobs": [{"id": "a"}, {"id": "c"}]})
        assert mixed.status_code == 202
        assert [each.headers["jobpipe-new"] for each in (first, again, mixed)] == ["2", "0", "1"]
        await call.refused(
            409, "POST", "/enqueue/batch", json={"jobs": [{"id": "d"}, {"id": "a", "payload": 2}]}
        )
        await call.refused(409, "POST", "/enqueue/batch", json={"jobs": [{"id": "e"}, {"id": "e"}]})
        wrong = await call.refused(
            422, "POST", "/enqueue/batch", json={"jobs": [{"id": "f"}, {"priority": 1001}]}
        )
        assert wrong["field"] == "jobs[1].priority"
        for id in "def":
            await call.refused(404, "GET", f"/jobs/{id}")

    on_each_store(scenario)


@pytest.mark.parametrize("number", [0, 1_001])
def test_a_batch_has_1_to_1000_jobs(on_memory: Any, number: int) -> None:
    async def scenario(call: Caller) -> None:
        found = await call.refused(422, "POST", "/enqueue/batch", json={"jobs": [{}] * number})
        assert found["field"] == "jobs"

    on_memory(scenario)


def test_a_batch_of_1000_goes_in() -> None:
    async def scenario(call: Caller) -> None:
        answer = await call("POST", "/enqueue/batch", json={"jobs": [{"payload": "x" * 1_000}] * 1_000})
        assert answer.status_code == 202
        assert len(answer.json()["jobs"]) == 1_000

    run(scenario, Jobpipe("memory://", queue_size=0))


def test_ready_and_scheduled_jobs_have_bounds_of_their_own_at_the_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QUEUE_SIZE", "2")
    monkeypatch.setenv("JOBPIPE_SCHEDULED_SIZE", "3")

    async def scenario(call: Caller) -> None:
        later: list[dict[str, Any]] = [{"delay": 60, "queue": queue} for queue in "abb"]
        assert (await call("POST", "/enqueue/batch", json={"jobs": [*later, {}, {}]})).status_code == 202
        full = await call("POST", "/enqueue", json={})
        assert "queue-full" in problem(full, 503)["type"]
        assert "2 of 2 jobs" in full.json()["detail"]
        assert "QUEUE_SIZE" in full.json()["detail"]
        for path, body in [("/enqueue", later[0]), ("/enqueue/batch", {"jobs": [later[0]]})]:
            full = await call("POST", path, json=body)
            assert "too-many-scheduled" in problem(full, 503)["type"]
            assert "3 of 3 jobs" in full.json()["detail"]
            assert "JOBPIPE_SCHEDULED_SIZE" in full.json()["detail"]
            assert int(full.headers["retry-after"]) >= 1
        await call.pipe.enqueue_many([JobRequest(), JobRequest(delay=60)])
        stats = (await call("GET", "/stats")).json()
        assert (stats["queued"], stats["scheduled"]) == (3, 4), "a program is not at the door"

    run(scenario, Jobpipe("memory://"))


def test_the_number_of_names_is_bounded_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBPIPE_MAX_NAMES", "2")

    async def scenario(call: Caller) -> None:
        for body in ({"queue": "a"}, {"type": "b"}, {"queue": "a"}):
            assert (await call("POST", "/enqueue", json=body)).status_code == 202
        for body in ({"queue": "c"}, {"type": "c"}):
            refused = await call.refused(422, "POST", "/enqueue", json=body)
            assert refused["field"] == "queue"
            assert "2 pairs" in refused["detail"]
            assert "JOBPIPE_MAX_NAMES" in refused["detail"]
        await call.refused(422, "POST", "/enqueue/batch", json={"jobs": [{"queue": "a"}, {"queue": "c"}]})
        for name in "abb":
            assert (await call("POST", f"/queues/{name}/pause")).status_code == 200
        assert "JOBPIPE_MAX_NAMES" in (await call.refused(422, "POST", "/queues/c/pause"))["detail"]
        every = {"type": "echo", "every": 60}
        for name in "abb":
            assert (await call("PUT", f"/schedules/{name}", json=every)).status_code == 200
        assert "JOBPIPE_MAX_NAMES" in (await call.refused(422, "PUT", "/schedules/c", json=every))["detail"]
        await call.pipe.enqueue("new", queue="new")

    run(scenario, Jobpipe("memory://"))


def test_a_full_queue_says_when_to_come_back() -> None:
    async def scenario(call: Caller) -> None:
        assert (await call("POST", "/enqueue", json={})).status_code == 202
        calls: list[tuple[str, Any]] = [("/enqueue", {}), ("/enqueue/batch", {"jobs": [{}, {}]})]
        for path, body in calls:
            full = await call("POST", path, json=body)
            problem(full, 503)
            assert int(full.headers["retry-after"]) >= 1
        assert (await call("GET", "/stats")).json()["queued"] == 1

    run(scenario, Jobpipe("memory://", queue_size=1))


def test_lists_are_newest_first_filtered_and_without_payload(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for number in range(5):
            body = {"id": f"j{number}", "queue": "even" if number % 2 == 0 else "odd", "payload": 1}
            await call("POST", "/enqueue", json=body)
        first = (await call("GET", "/jobs?limit=2")).json()
        assert [job["id"] for job in first["jobs"]] == ["j4", "j3"]
        assert first["jobs"][0].keys() == FIELDS - {
            "payload",
            "result",
            "history",
            "on_duplicate",
            "max_wait",
            "steps",
        }
        second = (await call("GET", f"/jobs?limit=3&cursor={first['next_cursor']}")).json()
        assert [job["id"] for job in second["jobs"]] == ["j2", "j1", "j0"]
        assert second["next_cursor"] is None
        odd = (await call("GET", "/jobs?queue=odd&status=queued&type=echo")).json()
        assert [job["id"] for job in odd["jobs"]] == ["j3", "j1"]

    on_each_store(scenario)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/jobs?limit=0", "limit"),
        ("/jobs?limit=501", "limit"),
        ("/jobs?limit=1.5", "limit"),
        ("/jobs?limit=nan", "limit"),
        ("/jobs?limit=5&limit=6", "limit"),
        ("/jobs?status=sleeping", "status"),
        ("/jobs?type=%27%3B--", "type"),
        ("/jobs?queue=a%00b", "queue"),
        ("/jobs?queue=a%0A", "queue"),
        ("/jobs?tag=", "tag"),
        ("/jobs?tag=a%00", "tag"),
        (f"/jobs?tag={'a' * 51}", "tag"),
        ("/jobs?error=", "error"),
        ("/jobs?text=", "text"),
        (f"/jobs?text={'a' * 201}", "text"),
        ("/failures?limit=5", "limit"),
        ("/jobs?cursor=x", "cursor"),
        ("/jobs?cursor=", "cursor"),
        ("/jobs?colour=red", "colour"),
        ("/jobs/t1/wait?timeout=nan", "timeout"),
        ("/jobs/t1/wait?timeout=inf", "timeout"),
        ("/jobs/t1/wait?timeout=-1", "timeout"),
        ("/jobs/t1/wait?timeout=300.1", "timeout"),
        ("/jobs/t1?x=1", "x"),
        ("/stats?x=1", "x"),
        ("/events?x=1", "x"),
    ],
)
def test_a_wrong_query_is_refused_by_its_name(on_memory: Any, path: str, field: str) -> None:
    async def scenario(call: Caller) -> None:
        assert (await call.refused(422, "GET", path))["field"] == field

    on_memory(scenario)


def test_waiting_ends_with_the_job_or_with_the_time(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "t1"})
        late = await call("GET", "/jobs/t1/wait?timeout=0.01")
        assert (late.status_code, late.json()["status"]) == (200, "queued")
        waiting = asyncio.create_task(call("GET", "/jobs/t1/wait?timeout=20"))
        await asyncio.sleep(0)
        await finish(call.pipe)
        job = (await waiting).json()
        assert (job["status"], job["result"], len(job["history"])) == ("done", "out", 1)
        await call.refused(404, "GET", "/jobs/none/wait")

    on_each_store(scenario)


def test_a_wait_ends_when_the_streams_do(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "t1"})
        waiting = asyncio.create_task(call("GET", "/jobs/t1/wait?timeout=300"))
        await asyncio.sleep(0)
        call.app.end_streams()
        assert (await waiting).json()["status"] == "queued"

    on_memory(scenario)


def test_an_explanation_says_why_it_waits(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "t1"})
        assert (await call("GET", "/jobs/t1/explain")).json()["reason"] == "no_worker"
        await call("POST", "/queues/default/pause")
        found = (await call("GET", "/jobs/t1/explain")).json()
        assert found.keys() == {"reason", "until", "text", "blockers"}
        assert found["reason"] == "paused"
        await call.refused(404, "GET", "/jobs/none/explain")

    on_each_store(scenario)


def test_cancel_and_retry_follow_the_table(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for id in ("done", "failed", "waits"):
            await call("POST", "/enqueue", json={"id": id})
        await finish(call.pipe)
        await finish(call.pipe, is_failed=True)
        assert (await call("POST", "/jobs/waits/cancel")).json()["status"] == "cancelled"
        assert (await call("POST", "/jobs/waits/cancel")).json()["status"] == "cancelled"
        for id in ("done", "failed"):
            await call.refused(409, "POST", f"/jobs/{id}/cancel")
        revived = (await call("POST", "/jobs/failed/retry")).json()
        assert (revived["status"], revived["attempts"], len(revived["history"])) == ("queued", 0, 1)
        assert (await call("POST", "/jobs/waits/retry")).json()["status"] == "queued"
        for id in ("done", "waits"):
            await call.refused(409, "POST", f"/jobs/{id}/retry")
        for verb in ("cancel", "retry"):
            await call.refused(404, "POST", f"/jobs/none/{verb}")

    on_each_store(scenario)


def test_a_job_that_has_expired_is_accepted_and_never_run(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        sent: dict[str, dict[str, Any]] = {
            "a": {"expires_at": "1970-01-01T00:00:00Z"},
            "b": {"expires_in": 0},
        }
        for id, more in sent.items():
            answer = await call("POST", "/enqueue", json={"id": id, **more})
            assert (answer.status_code, answer.json()["status"]) == (202, "queued")
            await call.refused(409, "POST", f"/jobs/{id}/cancel")
            await call.refused(409, "POST", f"/jobs/{id}/retry")
        listed = (await call("GET", "/jobs?status=expired")).json()["jobs"]
        assert [(job["id"], job["status"], job["attempts"]) for job in listed] == [
            ("b", "expired", 0),
            ("a", "expired", 0),
        ]
        assert listed[1]["expires_at"] == "1970-01-01T00:00:00Z"
        assert (await call("GET", "/stats")).json()["expired"] == 2
        assert (await call("GET", "/jobs/a/wait")).json()["finished_at"] is not None
        assert 'jobpipe_jobs_total{status="expired",type="echo"} 2.0' in (await call("GET", "/metrics")).text

    on_each_store(scenario)


def test_a_duplicate_of_a_unique_name_is_answered_with_the_job_that_waits(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        named = {"unique": "report:17"}
        accepted = await call("POST", "/enqueue", json={"id": "a", "payload": 1, **named})
        assert (accepted.status_code, accepted.json()) == (202, {"id": "a", "status": "queued"})
        kept = await call("POST", "/enqueue", json={"id": "b", "payload": 2, **named})
        assert (kept.status_code, kept.json()["id"], kept.json()["payload"]) == (200, "a", 1)
        assert (await call("GET", "/jobs/b")).status_code == 404
        new = {"payload": 3, "on_duplicate": "replace", "delay": 60, **named}
        replaced = await call("POST", "/enqueue", json=new)
        assert replaced.status_code == 200
        assert replaced.json() | {"id": "a", "payload": 3, "status": "scheduled"} == replaced.json()
        refused = await call.refused(409, "POST", "/enqueue", json={**new, "queue": "other"})
        assert refused["type"] == "urn:jobpipe:problem:duplicate"
        assert "'a'" in refused["detail"]
        jobs = [{"id": "x"}, {"id": "y", **named}]
        batch = await call("POST", "/enqueue/batch", json={"jobs": jobs})
        assert (batch.status_code, batch.headers["jobpipe-new"]) == (202, "1")
        assert [job["id"] for job in batch.json()["jobs"]] == ["x", "a"]
        known = await call("POST", "/enqueue/batch", json={"jobs": jobs[1:]})
        assert known.status_code == 200
        await call.refused(409, "POST", "/enqueue/batch", json={"jobs": [{"id": "z"}, {**new, "type": "t"}]})
        assert (await call("GET", "/jobs/z")).status_code == 404

    on_each_store(scenario)


def test_a_retry_is_refused_while_another_of_the_unique_name_waits(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a", "unique": "n"})
        await finish(call.pipe, is_failed=True)
        await call("POST", "/enqueue", json={"id": "b", "unique": "n"})
        refused = await call.refused(409, "POST", "/jobs/a/retry")
        assert refused["type"] == "urn:jobpipe:problem:duplicate"
        assert (await call("POST", "/jobs/retry", json={"all": True})).json() == {"count": 0}
        await finish(call.pipe)
        assert (await call("POST", "/jobs/a/retry")).json()["status"] == "queued"

    on_each_store(scenario)


def test_many_are_cancelled_and_retried_at_once(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for number in range(4):
            await call("POST", "/enqueue", json={"queue": "a" if number else "b"})
        assert (await call("POST", "/jobs/cancel", json={"queue": "a"})).json() == {"count": 3}
        assert (await call("POST", "/jobs/cancel", json={"all": True})).json() == {"count": 1}
        assert (await call("POST", "/jobs/retry", json={"status": "failed"})).json() == {"count": 0}
        assert (await call("POST", "/jobs/retry", json={"status": "cancelled", "queue": "b"})).json() == {
            "count": 1
        }

    on_each_store(scenario)


def test_a_finished_job_is_deleted_and_its_id_free_again(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a", "payload": 1})
        await call.refused(409, "DELETE", "/jobs/a")
        await call("POST", "/jobs/a/cancel")
        deleted = await call("DELETE", "/jobs/a")
        assert (deleted.status_code, deleted.content) == (204, b"")
        await call.refused(404, "DELETE", "/jobs/a")
        assert (await call("POST", "/enqueue", json={"id": "a", "payload": 2})).status_code == 202

    on_each_store(scenario)


def test_failures_are_grouped_and_deleted_by_error(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for id in ("a", "b", "c"):
            await call("POST", "/enqueue", json={"id": id})
            await finish(call.pipe, is_failed=id != "c")
        answer = (await call("GET", "/failures")).json()
        job = (await call("GET", "/jobs/b")).json()
        (group,) = answer["failures"]
        assert answer == {"failures": [group], "counted": 2, "is_complete": True}
        assert group.keys() == {"type", "error", "count", "first_at", "last_at", "last_id"}
        assert (group["type"], group["error"], group["count"], group["last_id"]) == ("echo", "E", 2, "b")
        assert group["last_at"] == job["finished_at"]
        assert [each["id"] for each in (await call("GET", "/jobs?error=E")).json()["jobs"]] == ["b", "a"]
        assert [each["id"] for each in (await call("GET", "/jobs?text=B")).json()["jobs"]] == ["b"]
        assert (await call("POST", "/jobs/retry", json={"error": "E", "queue": "x"})).json() == {"count": 0}
        chosen = {"type": "echo", "error": "E", "status": "failed"}
        assert (await call("POST", "/jobs/delete", json=chosen)).json() == {"count": 2}
        assert (await call("GET", "/failures")).json()["failures"] == []
        await call.refused(404, "GET", "/jobs/a")
        assert (await call("POST", "/jobs/delete", json={"all": True})).json() == {"count": 1}

    on_each_store(scenario)


def test_a_retry_may_have_another_payload(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a", "payload": 1})
        for body, payload in (({}, 1), ({"payload": {"b": 2}}, {"b": 2}), ({"from": "start"}, {"b": 2})):
            await finish(call.pipe, is_failed=True)
            answer = await call("POST", "/jobs/a/retry", json=body)
            assert (answer.status_code, answer.json()["payload"]) == (200, payload)
        await finish(call.pipe, is_failed=True)
        answer = await call("POST", "/jobs/a/retry", json={"payload": None})
        assert answer.json()["payload"] is None
        await call.refused(409, "POST", "/jobs/a/retry", json={"payload": 3})
        wrong: list[Any] = [{"from": "end"}, {"payloads": 1}, [], {"payload": "\0"}]
        for each in wrong:
            await call.refused(422, "POST", "/jobs/a/retry", json=each)
        await call.refused(415, "POST", "/jobs/a/retry", content="{}")
        await call.refused(404, "POST", "/jobs/nobody/retry", json={"payload": 1})

    on_each_store(scenario)


def test_jobs_are_found_cancelled_and_retried_by_tag(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for id, tags in {"a": ["x&y", "z"], "b": ["z"], "c": []}.items():
            await call("POST", "/enqueue", json={"id": id, "tags": tags})
        listed = (await call("GET", "/jobs?tag=x%26y")).json()["jobs"]
        assert [(job["id"], job["tags"]) for job in listed] == [("a", ["x&y", "z"])]
        assert [job["id"] for job in (await call("GET", "/jobs?tag=z&limit=1")).json()["jobs"]] == ["b"]
        assert (await call("POST", "/jobs/cancel", json={"tag": "z"})).json() == {"count": 2}
        retry = {"tag": "x&y", "status": "cancelled"}
        assert (await call("POST", "/jobs/retry", json=retry)).json() == {"count": 1}
        statuses = {job["id"]: job["status"] for job in (await call("GET", "/jobs")).json()["jobs"]}
        assert statuses == {"a": "queued", "b": "cancelled", "c": "queued"}

    on_each_store(scenario)


@pytest.mark.parametrize(
    "body", [{}, {"all": False}, {"all": True, "queue": "a"}, {"status": "x"}, {"ids": []}, []]
)
def test_a_selection_says_what_it_means(on_memory: Any, body: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call.refused(422, "POST", "/jobs/cancel", json=body)
        await call.refused(422, "POST", "/jobs/retry", json=body)
        await call.refused(422, "POST", "/jobs/delete", json=body)

    on_memory(scenario)


@pytest.mark.parametrize("id", ["none", "%00", "a%0Ab", "%F0%9F", "x" * 300, "-", "'%20OR%201=1"])
def test_an_id_that_no_job_has_is_not_found(on_each_store: Any, id: str) -> None:
    async def scenario(call: Caller) -> None:
        await call.refused(404, "GET", f"/jobs/{id}")
        await call.refused(404, "POST", f"/jobs/{id}/cancel")

    on_each_store(scenario)


def test_jobs_may_be_named_like_the_bulk_calls(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "cancel"})
        assert (await call("GET", "/jobs/cancel")).json()["id"] == "cancel"

    on_memory(scenario)


def test_a_payload_that_does_not_fit_its_model_names_the_place() -> None:
    pipe = Jobpipe("memory://")

    @pipe.job("mail")
    async def mail(to: dict[str, int]) -> None: ...

    async def scenario() -> None:
        async with calling(pipe) as call:
            found = await call.refused(422, "POST", "/enqueue", json={"type": "mail", "payload": {"a": "b"}})
            assert found["field"].startswith("payload")
            unknown = await call("POST", "/enqueue", json={"type": "nobody-knows", "payload": {"a": "b"}})
            assert unknown.status_code == 202

    asyncio.run(scenario())
