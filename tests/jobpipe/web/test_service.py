"""Probes, numbers, queues and the description of the API."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import jsonschema_rs

from jobpipe import Jobpipe
from jobpipe.web.app import make_app

from .conftest import Caller, calling, problem


def test_the_probes_answer(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/health", "/livez", "/readyz"):
            response = await call("GET", path)
            assert (response.status_code, response.json()) == (200, {"status": "ok"})

    on_memory(scenario)


def test_names_without_jobs_leave_the_metrics() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://", keep=0)
        pipe.job("gone")(lambda: None)
        service = pipe.make_service()
        async with calling(pipe, service=service) as call:
            await service.start()
            await call("POST", "/enqueue", json={"id": "a", "type": "gone", "queue": "old"})
            await call("POST", "/enqueue", json={"id": "b", "queue": "old"})
            await call("POST", "/enqueue", json={"id": "c", "delay": 3600})
            for id in "ab":
                await call("GET", f"/jobs/{id}/wait")
            before = (await call("GET", "/metrics")).text
            maintenance = service.maintenance(pipe.store)
            for moment in (0.0, 120.0):
                maintenance.do(moment)
            after = (await call("GET", "/metrics")).text
            for name in ('type="gone"', 'queue="old"'):
                assert name in before
                assert name not in after
            total = 'jobpipe_jobs_total{status="done",type="echo"} 1.0'
            assert total in before
            assert total in after, "the type has a job in another queue: its total never falls"
            assert [queue["name"] for queue in (await call("GET", "/queues")).json()["queues"]] == ["default"]
            await service.stop()

    asyncio.run(main())


def test_a_service_is_ready_between_start_and_stop_and_reads_go_on_after() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://")
        service = pipe.make_service()
        async with calling(pipe, service=service) as call:
            await call.refused(503, "GET", "/readyz")
            await call.refused(503, "GET", "/jobs")
            assert (await call("GET", "/health")).status_code == 200
            await service.start()
            assert (await call("GET", "/readyz")).status_code == 200
            assert (await call("POST", "/enqueue", json={"id": "t1", "payload": 5})).status_code == 202
            job = (await call("GET", "/jobs/t1/wait")).json()
            assert (job["status"], job["result"]) == ("done", 5)
            metrics = (await call("GET", "/metrics")).text
            assert 'jobpipe_jobs_total{status="done",type="echo"} 1.0' in metrics
            assert 'jobpipe_jobs{queue="default",status="done"} 1.0' in metrics
            assert 'jobpipe_run_seconds_count{type="echo"} 1.0' in metrics
            assert 'jobpipe_wait_seconds_bucket{le="+Inf",queue="default"} 1.0' in metrics
            assert re.search(r"^workqueue_adds_total\{name=", metrics, re.MULTILINE)
            service.begin_stop()
            writes: list[tuple[str, Any]] = [
                ("/enqueue", {}),
                ("/enqueue/batch", {"jobs": [{}]}),
                ("/jobs/t1/retry", {}),
            ]
            for path, body in writes:
                response = await call("POST", path, json=body)
                assert "stopping" in problem(response, 503)["type"]
            await call.refused(503, "GET", "/readyz")
            for path in ("/health", "/livez", "/jobs/t1", "/stats"):
                assert (await call("GET", path)).status_code == 200
            await service.stop()

    asyncio.run(main())


def test_queues_are_listed_and_held_up(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"queue": "a"})
        await call("POST", "/enqueue", json={"queue": "a", "delay": 60})
        paused = await call("POST", "/queues/new/pause")
        assert (paused.status_code, paused.json()["paused"]) == (200, True)
        assert (await call("GET", "/queues")).json() == {
            "queues": [
                {"name": "a", "paused": False, "scheduled": 1, "waiting": 0, "queued": 1, "running": 0},
                {"name": "new", "paused": True, "scheduled": 0, "waiting": 0, "queued": 0, "running": 0},
            ]
        }
        assert (await call("POST", "/queues/new/resume")).json()["paused"] is False
        await call.refused(422, "POST", "/queues/a%20b/pause")

    on_each_store(scenario)


def test_the_numbers_add_up(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for body in ({}, {}, {"delay": 60}):
            await call("POST", "/enqueue", json=body)
        found = (await call("GET", "/stats")).json()
        speeds = found.pop("per_second")
        assert found == {
            "scheduled": 1,
            "waiting": 0,
            "queued": 2,
            "running": 0,
            "done": 0,
            "failed": 0,
            "cancelled": 0,
            "expired": 0,
        }
        assert speeds.keys() == found.keys()

    on_each_store(scenario)


def _check(document: dict[str, Any], method: str, path: str, response: Any) -> None:
    """The answer is one that the document knows, and of the form that it says."""
    described = document["paths"][path][method.lower()]["responses"][str(response.status_code)]
    if response.status_code == 204:
        assert "content" not in described
        assert response.content == b""
        return
    content = described["content"]
    schema = content[response.headers["content-type"].partition(";")[0]]["schema"]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "components": document["components"],
    }
    jsonschema_rs.validator_for(whole).validate(response.json())


def test_real_answers_are_those_that_the_document_describes(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        document = (await call("GET", "/openapi.json")).json()
        assert document["openapi"].startswith("3.1")
        assert set(document["paths"]) == {each.path for each in call.app.calls}
        tried = [
            ("POST", "/enqueue", {}, {"id": "t1", "payload": [1]}),
            ("POST", "/enqueue", {}, {"id": "t1", "payload": [1]}),
            ("POST", "/enqueue", {}, {"id": "t1"}),
            ("POST", "/enqueue", {}, {"id": ""}),
            ("POST", "/enqueue/batch", {}, {"jobs": [{"id": "t2"}]}),
            ("POST", "/enqueue/batch", {}, {"jobs": [{"id": "t2"}]}),
            ("POST", "/enqueue/batch", {}, {}),
            ("GET", "/jobs", {}, None),
            ("GET", "/jobs/{id}", {"id": "t1"}, None),
            ("GET", "/jobs/{id}", {"id": "none"}, None),
            ("GET", "/jobs/{id}/explain", {"id": "t1"}, None),
            ("POST", "/jobs/{id}/cancel", {"id": "t1"}, None),
            ("GET", "/jobs/{id}/wait", {"id": "t1"}, None),
            ("POST", "/jobs/{id}/retry", {"id": "t1"}, None),
            ("POST", "/jobs/{id}/retry", {"id": "t1"}, None),
            ("POST", "/jobs/cancel", {}, {"all": True}),
            ("POST", "/jobs/retry", {}, {}),
            ("GET", "/queues", {}, None),
            ("POST", "/queues/{name}/pause", {"name": "q"}, None),
            ("POST", "/queues/{name}/resume", {"name": "q"}, None),
            ("PUT", "/schedules/{name}", {"name": "s"}, {"type": "echo", "every": 60}),
            (
                "PUT",
                "/schedules/{name}",
                {"name": "c"},
                {"type": "echo", "cron": "0 3 * * *", "payload": [1]},
            ),
            ("PUT", "/schedules/{name}", {"name": "s"}, {"type": "echo"}),
            ("GET", "/schedules", {}, None),
            ("GET", "/schedules/{name}", {"name": "s"}, None),
            ("GET", "/schedules/{name}", {"name": "none"}, None),
            ("POST", "/schedules/{name}/run", {"name": "s"}, None),
            ("POST", "/schedules/{name}/run", {"name": "none"}, None),
            ("DELETE", "/schedules/{name}", {"name": "s"}, None),
            ("DELETE", "/schedules/{name}", {"name": "s"}, None),
            ("GET", "/stats", {}, None),
            ("GET", "/stats/history", {}, None),
            ("GET", "/stats/tallies", {}, None),
            ("GET", "/workers", {}, None),
            ("GET", "/health", {}, None),
            ("GET", "/readyz", {}, None),
        ]
        for method, path, parameters, body in tried:
            response = await call(
                method, path.format(**parameters), **({} if body is None else {"json": body})
            )
            _check(document, method, path, response)

    on_memory(scenario)


def test_the_document_names_the_parameters_with_their_bounds(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        paths = (await call("GET", "/openapi.json")).json()["paths"]
        limit = next(each for each in paths["/jobs"]["get"]["parameters"] if each["name"] == "limit")
        assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 50}
        names = [each["name"] for each in paths["/jobs/{id}/wait"]["get"]["parameters"]]
        assert names == ["id", "timeout"]
        for status in ("400", "401", "403", "409", "413", "415", "422", "429", "500", "503"):
            assert status in paths["/enqueue"]["post"]["responses"]

    on_memory(scenario)


def test_a_lifespan_may_run_the_service() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://")
        app = make_app(pipe, lifespan=True)
        inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        outbox: asyncio.Queue[Any] = asyncio.Queue()
        task = asyncio.create_task(app({"type": "lifespan"}, inbox.get, outbox.put))
        inbox.put_nowait({"type": "lifespan.startup"})
        assert (await outbox.get())["type"] == "lifespan.startup.complete"
        await pipe.enqueue("echo", 1, id="a")
        assert (await pipe.wait("a")).status == "done"
        inbox.put_nowait({"type": "lifespan.shutdown"})
        assert (await outbox.get())["type"] == "lifespan.shutdown.complete"
        await task

    asyncio.run(main())
