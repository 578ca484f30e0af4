"""Steps and signals over HTTP, and the job that waits in every answer that counts or lists."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobpipe import Jobpipe, JobStatus
from jobpipe.model.durable import MOST_SIGNALS
from jobpipe.model.job import Move
from jobpipe.model.lease import Claim
from jobpipe.testing.durable.tools import sleep, step, wait
from jobpipe.testing.tools import BOOM, finish, take
from jobpipe.web.app import make_app

from ...support.jobs import lead_to
from .conftest import Caller, calling, problem, run

SIGNAL = "/jobs/a/signals/go"


async def begun(call: Caller, id: str = "a", **results: Any) -> Claim:
    """The job, running, after steps that had these results."""
    await call("POST", "/enqueue", json={"id": id})
    return claimed(call, **results)


def claimed(call: Caller, **results: Any) -> Claim:
    (claim,) = take(call.pipe.store, types=["echo"])
    steps = [(claim.lease, step(name.replace("_", "-"), result)) for name, result in results.items()]
    assert all(call.pipe.store.write_steps(steps))
    return claim


def test_a_signal_is_taken_once_and_wakes_the_job(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert wait(call.pipe.store, await begun(call))
        assert (await call("GET", "/jobs/a")).json()["status"] == "waiting"
        sent = await call("POST", SIGNAL, json={"b": [1, "ä"], "c": None})
        assert (sent.status_code, sent.json()) == (202, {"id": "a", "name": "go"})
        assert (await call("GET", "/jobs/a")).json()["status"] == "queued"
        again = await call("POST", SIGNAL, json={"c": None, "b": [1, "ä"]})
        assert (again.status_code, again.json()) == (200, {"id": "a", "name": "go"})
        other = await call.refused(409, "POST", SIGNAL, json={"b": [2, "ä"], "c": None})
        assert other["type"] == "urn:jobpipe:problem:signal-refused"
        assert other["about"] == {"id": "a", "name": "go"}
        assert "other content" in other["detail"]

    on_each_store(scenario)


def test_a_signal_before_the_wait_is_kept(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call("POST", SIGNAL, json=1)).status_code == 202
        assert wait(call.pipe.store, claimed(call))
        assert (await call("GET", "/jobs/a")).json()["status"] == "queued"

    on_each_store(scenario)


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, "text", 1.5, {"a": {"b": []}}])
def test_the_body_of_a_signal_is_any_json_value(on_memory: Any, value: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call("POST", SIGNAL, json=value)).status_code == 202
        state = call.pipe.store.durable("a")
        assert state is not None
        assert (await call.pipe.signal("a", "go", value)).is_new is False
        assert len(state.signals) == 1

    on_memory(scenario)


def test_an_empty_body_is_null_and_needs_no_content_type(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call("POST", SIGNAL)).status_code == 202
        assert (await call.post(SIGNAL, b"null")).status_code == 200
        assert (await call.post(SIGNAL, b"")).status_code == 200
        assert (await call.post(SIGNAL, b"", content_type="text/plain")).status_code == 200
        problem(await call.post(SIGNAL, b"null", content_type="text/plain"), 415)
        await call.refused(415, "POST", SIGNAL, content="1")

    on_memory(scenario)


def test_a_body_counts_whether_it_is_announced_or_not() -> None:
    """Over HTTP/2 no header need say that there is one; and chunks may come to nothing."""

    async def post(app: Any, name: str, *chunks: bytes, headers: Any = ()) -> int:
        messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
        messages.append({"type": "http.request", "body": b"", "more_body": False})
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        scope = {"type": "http", "method": "POST", "path": f"/jobs/a/signals/{name}", "query_string": b""}
        await app({**scope, "headers": [(b"host", b"localhost"), *headers]}, receive, send)
        return statuses[0]

    async def main() -> None:
        pipe = Jobpipe("memory://", max_payload=10)
        app = make_app(pipe)
        await pipe.enqueue("echo", id="a")
        kind = (b"content-type", b"application/json")
        assert await post(app, "go", b"", b"[1", b",2]", headers=[kind]) == 202
        assert (await pipe.signal("a", "go", [1, 2])).is_new is False
        assert await post(app, "none", b"", headers=[(b"transfer-encoding", b"chunked")]) == 202
        assert (await pipe.signal("a", "none", None)).is_new is False
        assert await post(app, "odd", b"1") == 415
        assert await post(app, "long", *[b" " * 40_000] * 9, headers=[kind]) == 413
        pipe.close()

    asyncio.run(main())


def test_what_a_job_does_not_take_is_a_conflict(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert (await call.refused(404, "POST", SIGNAL, json=1))[
            "type"
        ] == "urn:jobpipe:problem:job-not-found"
        claim = await begun(call)
        for number in range(MOST_SIGNALS):
            assert (await call("POST", f"/jobs/a/signals/s{number}", json=number)).status_code == 202
        assert "at most 100" in (await call.refused(409, "POST", SIGNAL, json=1))["detail"]
        assert finish(call.pipe.store, claim)
        assert (await call("POST", "/jobs/a/signals/s0", json=0)).status_code == 200, (
            "the same, also afterwards"
        )
        done = await call.refused(409, "POST", SIGNAL, json=1)
        assert done["type"] == "urn:jobpipe:problem:wrong-status"
        assert done["about"] == {"id": "a", "status": "done"}

    on_each_store(scenario)


def test_a_signal_after_the_timeout_is_a_conflict(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert wait(call.pipe.store, await begun(call), seconds=0)
        call.pipe.store.receive(claimed(call).lease, "go")
        late = await call.refused(409, "POST", SIGNAL, json=1)
        assert late["type"] == "urn:jobpipe:problem:signal-refused"
        assert "timed out" in late["detail"]

    on_each_store(scenario)


@pytest.mark.parametrize(
    "name", ["-a", "a%20b", "%00", "a%00b", "a%0A", "%F0%9F", "x" * 201, "'%20OR%201=1", "ä"]
)
def test_a_bad_name_is_refused_by_its_field(on_memory: Any, name: str) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call.refused(422, "POST", f"/jobs/a/signals/{name}", json=1))["field"] == "name"
        assert (await call("POST", f"/jobs/a/signals/{'x' * 200}", json=1)).status_code == 202

    on_memory(scenario)


def test_the_payload_of_a_signal_has_the_limits_of_others() -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call.refused(413, "POST", SIGNAL, json="x" * 999))["field"] == "payload"
        problem(await call.post(SIGNAL, b" " * (1_001 + 65_536)), 413)
        for raw in (b"{", b"NaN", b'{"a":1,"a":1}', b"[" * 65 + b"]" * 65, b" "):
            problem(await call.post(SIGNAL, raw), 400)
        for raw in (b'"\\u0000"', b'"\\ud800"'):
            assert problem(await call.post(SIGNAL, raw), 422)["field"] == "payload"
        await call.refused(422, "POST", f"{SIGNAL}?x=1", json=1)
        await call.refused(405, "GET", SIGNAL)
        assert (await call("POST", SIGNAL, json="x" * 998)).status_code == 202

    run(scenario, Jobpipe("memory://", max_payload=1_000))


def test_a_signal_takes_a_token_that_may_write() -> None:
    async def scenario(call: Caller) -> None:
        await call.pipe.enqueue("echo", id="a")
        reads = {"authorization": "Bearer only-for-reading"}
        writes = {"authorization": "Bearer for-writing-too"}
        await call.refused(401, "POST", SIGNAL, json=1)
        assert "read-only-token" in (await call.refused(403, "POST", SIGNAL, json=1, headers=reads))["type"]
        foreign = {**writes, "origin": "http://evil.example"}
        assert "foreign-origin" in (await call.refused(403, "POST", SIGNAL, json=1, headers=foreign))["type"]
        state = call.pipe.store.durable("a")
        assert state is not None
        assert state.signals == ()
        assert (await call("POST", SIGNAL, json=1, headers=writes)).status_code == 202
        await call.refused(401, "GET", "/jobs/a/steps")
        assert (await call("GET", "/jobs/a/steps", headers=reads)).status_code == 200

    run(scenario, Jobpipe("memory://", token="for-writing-too", read_token="only-for-reading"))


def test_a_job_has_its_first_steps_and_lists_have_none(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await begun(call, small={"a": 1}, fits="x" * 4_094, large="ä" * 4_000)
        job = (await call("GET", "/jobs/a")).json()
        small, fits, large = job["steps"]
        assert small == {
            "name": "small",
            "began_at": "2027-01-15T08:00:00.250000Z",
            "ended_at": "2027-01-15T08:00:00.750000Z",
            "result": {"a": 1},
        }
        assert (fits["result"], "cut" in fits) == ("x" * 4_094, False)
        assert (large["cut"], large["result"]) == (True, '"' + "ä" * 2_047)
        assert "steps" not in (await call("GET", "/jobs")).json()["jobs"][0]
        assert len((await call("GET", "/jobs/a/wait?timeout=0")).json()["steps"]) == 3

    on_each_store(scenario)


def test_all_steps_are_paged_with_their_whole_results(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        results: dict[str, Any] = {f"page_{number}": number for number in range(119)}
        await begun(call, **results, last="ä" * 4_000)
        assert len((await call("GET", "/jobs/a")).json()["steps"]) == 50
        seen: list[dict[str, Any]] = []
        sizes, path = [], "/jobs/a/steps"
        while path:
            page = (await call("GET", path)).json()
            assert page.keys() == {"steps", "next_cursor"}
            seen += page["steps"]
            sizes.append(len(page["steps"]))
            path = f"/jobs/a/steps?cursor={page['next_cursor']}" if page["next_cursor"] else ""
        assert sizes == [50, 50, 20]
        assert [each["result"] for each in seen] == [*range(119), "ä" * 4_000]
        assert {frozenset(each) for each in seen} == {frozenset({"name", "began_at", "ended_at", "result"})}
        whole = (await call("GET", "/jobs/a/steps?limit=120")).json()
        assert whole == {"steps": seen, "next_cursor": None}
        assert (await call("GET", "/jobs/a/steps?cursor=999999999999999999")).json()["steps"] == []
        await call.refused(404, "GET", "/jobs/nobody/steps")

    on_each_store(scenario)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=", "cursor"),
        ("a=1", "a"),
    ],
)
def test_a_wrong_query_for_steps_is_refused_by_its_name(on_memory: Any, query: str, field: str) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "a"})
        assert (await call.refused(422, "GET", f"/jobs/a/steps?{query}"))["field"] == field

    on_memory(scenario)


def test_a_retry_keeps_the_steps_unless_it_is_from_the_start(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        bodies: list[tuple[Any, int]] = [(None, 1), ({}, 1), ({"from": "start"}, 0), ({"payload": 2}, 0)]
        await call("POST", "/enqueue", json={"id": "a"})
        for body, kept in bodies:
            claim = claimed(call, charge=1)
            assert finish(call.pipe.store, claim, Move.FAIL, error=BOOM)
            options = {} if body is None else {"json": body}
            answer = await call("POST", "/jobs/a/retry", **options)
            assert (answer.status_code, len(answer.json()["steps"])) == (200, kept), body
        for wrong in ("end", "", None, 1, "Start"):
            refused = await call.refused(422, "POST", "/jobs/a/retry", json={"from": wrong})
            assert refused["field"] == "from"

    on_each_store(scenario)


def test_many_that_are_retried_keep_their_steps(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert finish(call.pipe.store, await begun(call, charge=1), Move.FAIL, error=BOOM)
        assert (await call.refused(422, "POST", "/jobs/retry", json={"all": True, "from": "start"}))[
            "field"
        ] == "from"
        assert (await call("POST", "/jobs/retry", json={"status": "failed"})).json() == {"count": 1}
        assert len((await call("GET", "/jobs/a")).json()["steps"]) == 1

    on_each_store(scenario)


def test_a_job_that_waits_is_counted_listed_and_explained(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await lead_to(call.pipe, JobStatus.WAITING, "a")
        assert (await call("GET", "/stats")).json()["waiting"] == 1
        assert (await call("GET", "/queues")).json()["queues"] == [
            {"name": "default", "paused": False, "scheduled": 0, "waiting": 1, "queued": 0, "running": 0}
        ]
        (listed,) = (await call("GET", "/jobs?status=waiting")).json()["jobs"]
        assert (listed["id"], listed["attempts"]) == ("a", 0)
        metrics = (await call("GET", "/metrics")).text
        assert 'jobpipe_jobs{queue="default",status="waiting"} 1.0' in metrics
        assert 'jobpipe_jobs_total{status="waiting",type="echo"} 1.0' in metrics
        why = (await call("GET", "/jobs/a/explain")).json()
        assert (why["reason"], why["blockers"]) == ("signal", ["go"])
        assert why["until"] is not None
        assert (await call("POST", "/jobs/a/cancel")).json()["status"] == "cancelled"

    on_each_store(scenario)


def test_a_job_that_sleeps_is_explained(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert sleep(call.pipe.store, await begun(call), "cool-off")
        job = (await call("GET", "/jobs/a")).json()
        why = (await call("GET", "/jobs/a/explain")).json()
        assert (job["status"], why["reason"], why["until"]) == ("scheduled", "sleep", job["run_at"])
        assert "cool-off" in why["text"]

    on_each_store(scenario)


def test_a_signal_wakes_a_handler_at_once_and_while_the_service_stops() -> None:
    async def main() -> None:
        from jobpipe import current_job

        pipe = Jobpipe("memory://")

        @pipe.job("order")
        async def order() -> Any:
            return await current_job().wait_for("approved")

        service = pipe.make_service()
        async with calling(pipe, service=service) as call:
            await service.start()
            for id in ("a", "b"):
                await call("POST", "/enqueue", json={"id": id, "type": "order"})
            assert (await call("POST", "/jobs/a/signals/approved", json={"by": "ada"})).status_code == 202
            job = (await call("GET", "/jobs/a/wait")).json()
            assert (job["status"], job["result"], job["attempts"]) == ("done", {"by": "ada"}, 1)
            service.begin_stop()
            assert (await call("POST", "/jobs/b/signals/approved", json=1)).status_code == 202
            await service.stop()

    asyncio.run(main())


def test_the_document_describes_signals_and_steps(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        api = (await call("GET", "/openapi.json")).json()
        schemas = api["components"]["schemas"]
        signal = api["paths"]["/jobs/{id}/signals/{name}"]["post"]
        assert signal["requestBody"] == {"required": False, "content": {"application/json": {"schema": {}}}}
        assert {"200", "202", "403", "404", "409", "413", "415", "422"} <= signal["responses"].keys()
        assert [each["schema"]["maxLength"] for each in signal["parameters"]] == [200, 200]
        assert "cut" in schemas["StepInfo"]["properties"]
        assert set(schemas["StepInfo"]["required"]) == {"name", "began_at", "ended_at", "result"}
        assert "waiting" in schemas["JobStatus"]["enum"]
        assert {"sleep", "signal"} <= set(schemas["Reason"]["enum"])
        assert "waiting" in schemas["Stats"]["required"]
        assert "waiting" in schemas["QueueInfo"]["required"]

    on_memory(scenario)
