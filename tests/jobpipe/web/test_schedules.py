"""The calls on schedules."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import Jobpipe

from .conftest import Caller, calling, problem

EVERY = {"type": "echo", "payload": {"x": 1}, "queue": "q", "every": 60}


def test_a_schedule_is_made_seen_and_forgotten(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert (await call("GET", "/schedules")).json() == {"schedules": []}
        made = await call("PUT", "/schedules/tidy", json=EVERY)
        assert made.status_code == 200
        info = made.json()
        next_at = [datetime.fromisoformat(each) for each in info.pop("next_at")]
        assert info == {
            "name": "tidy",
            **EVERY,
            "cron": None,
            "tz": None,
            "missed": "one",
            "last_at": None,
            "last_job": None,
            "paused": False,
        }
        assert [after - next_at[0] for after in next_at] == [timedelta(minutes=n) for n in range(5)]
        assert all(each.utcoffset() == timedelta() for each in next_at)
        assert (await call("GET", "/schedules/tidy")).json() == made.json()
        await call(
            "PUT", "/schedules/nightly", json={"type": "echo", "cron": "0 3 * * *", "tz": "Asia/Tokyo"}
        )
        listed = (await call("GET", "/schedules")).json()["schedules"]
        assert [each["name"] for each in listed] == ["nightly", "tidy"]
        assert [each[11:19] for each in listed[0]["next_at"]] == ["18:00:00"] * 5
        gone = await call("DELETE", "/schedules/tidy")
        assert (gone.status_code, gone.content) == (204, b"")
        assert [each["name"] for each in (await call("GET", "/schedules")).json()["schedules"]] == ["nightly"]

    on_each_store(scenario)


def test_a_change_that_leaves_the_timing_keeps_the_ticks(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        first = (await call("PUT", "/schedules/s", json=EVERY)).json()
        second = (await call("PUT", "/schedules/s", json={**EVERY, "payload": 2, "missed": "none"})).json()
        assert second == {**first, "payload": 2, "missed": "none"}
        third = (await call("PUT", "/schedules/s", json={**EVERY, "every": 90.5})).json()
        assert third["every"] == 90.5
        assert third["next_at"][0] > second["next_at"][0]

    on_each_store(scenario)


def test_a_run_by_hand_is_accepted(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        before = (await call("PUT", "/schedules/s", json=EVERY)).json()
        run = await call("POST", "/schedules/s/run")
        assert run.status_code == 202
        assert run.json().keys() == {"id", "status"}
        assert run.json()["status"] == "queued"
        job = (await call("GET", f"/jobs/{run.json()['id']}")).json()
        assert (job["type"], job["queue"], job["payload"]) == ("echo", "q", {"x": 1})
        assert (await call("GET", "/schedules/s")).json() == before

    on_each_store(scenario)


def test_a_schedule_is_paused_and_resumed(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        before = (await call("PUT", "/schedules/s", json=EVERY)).json()
        paused = {**before, "paused": True, "next_at": []}
        for _ in range(2):
            answer = await call("POST", "/schedules/s/pause")
            assert (answer.status_code, answer.json()) == (200, paused)
        assert (await call("GET", "/schedules")).json() == {"schedules": [paused]}
        assert (await call("PUT", "/schedules/s", json=EVERY)).json() == paused
        assert (await call("POST", "/schedules/s/run")).status_code == 202
        for _ in range(2):
            answer = await call("POST", "/schedules/s/resume")
            assert (answer.status_code, answer.json()) == (200, before)
        assert (await call("GET", "/schedules/s")).json() == before

    on_each_store(scenario)


def test_what_was_read_can_be_put_back_with_a_change(on_each_store: Any) -> None:
    """Also when it was paused, and with what an answer alone tells: its ticks stay those that they were."""

    async def scenario(call: Caller) -> None:
        cron = {"type": "echo", "cron": "0 3 * * *", "tz": "Asia/Tokyo"}
        for wanted in (EVERY, cron):
            await call("PUT", "/schedules/s", json=wanted)
            for verb in ("pause", "resume"):
                read = (await call("POST", f"/schedules/s/{verb}")).json()
                again = await call("PUT", "/schedules/s", json=read)
                assert (again.status_code, again.json()) == (200, read)
                changed = {**read, "payload": verb, "missed": "none"}
                assert (await call("PUT", "/schedules/s", json=changed)).json() == changed
                await call("DELETE", "/schedules/s")
                remade = (await call("PUT", "/schedules/s", json=changed)).json()
                assert remade == {**changed, "next_at": remade["next_at"]}

    on_each_store(scenario)


def test_a_schedule_is_paused_and_resumed_by_its_field(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        made = (await call("PUT", "/schedules/s", json={**EVERY, "paused": True})).json()
        assert (made["paused"], made["next_at"]) == (True, [])
        assert (await call("PUT", "/schedules/s", json=EVERY)).json() == made
        resumed = (await call("PUT", "/schedules/s", json={**made, "paused": False})).json()
        assert resumed == {**made, "paused": False, "next_at": resumed["next_at"]}
        assert len(resumed["next_at"]) == 5
        assert (await call("PUT", "/schedules/s", json={**resumed, "paused": True})).json() == made

    on_each_store(scenario)


def test_what_follows_from_a_schedule_cannot_be_set(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        read = (await call("PUT", "/schedules/s", json=EVERY)).json()
        first, *others = read["next_at"]
        past = ["2020-01-01T00:00:00Z", first, *others[:3]]
        assert (await call("PUT", "/schedules/s", json={**read, "next_at": past})).json() == read
        sooner = [(datetime.now(UTC) + timedelta(seconds=30)).isoformat(), first]
        later = [*others, "2200-01-01T00:00:00Z"]
        for ticks in (sooner, later):
            told = await call.refused(422, "PUT", "/schedules/s", json={**read, "next_at": ticks})
            assert told["detail"] == "next_at cannot be set, it follows from every, cron and tz: leave it out"
        moved = (await call("PUT", "/schedules/s", json={**read, "every": 90.5, "next_at": later})).json()
        assert moved["next_at"] != read["next_at"]
        told = await call.refused(422, "PUT", "/schedules/s", json={**read, "name": "other"})
        assert told["detail"] == "name must be the name in the path, 's', got 'other'"

    on_memory(scenario)


def test_an_unknown_schedule_is_404(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        for method, path in [
            ("GET", "/schedules/none"),
            ("DELETE", "/schedules/none"),
            ("POST", "/schedules/none/run"),
            ("POST", "/schedules/none/pause"),
            ("POST", "/schedules/none/resume"),
            ("GET", "/schedules/a%20b%00"),
        ]:
            found = await call.refused(404, method, path)
            assert found["type"] == "urn:jobpipe:problem:schedule-not-found"

    on_each_store(scenario)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"every": 60}, "type"),
        ({"type": "echo"}, "every"),
        ({"type": "echo", "every": 60, "cron": "* * * * *"}, "every"),
        ({"type": "echo", "every": 0}, "every"),
        ({"type": "echo", "every": "60"}, "every"),
        ({"type": "echo", "every": True}, "every"),
        ({"type": "echo", "every": 1e9}, "every"),
        ({"type": "echo", "every": 60, "tz": "UTC"}, "tz"),
        ({"type": "echo", "cron": "61 * * * *"}, "cron"),
        ({"type": "echo", "cron": "0 0 30 2 *"}, "cron"),
        ({"type": "echo", "cron": "1," * 50_000}, "cron"),
        ({"type": "echo", "cron": "* * * * *", "tz": "Mars/Base"}, "tz"),
        ({"type": "echo", "cron": "* * * * *", "tz": ""}, "tz"),
        ({"type": "echo", "cron": "* * * * *", "tz": "\0"}, "tz"),
        ({"type": "echo", "every": 60, "missed": "all"}, "missed"),
        ({"type": "a b", "every": 60}, "type"),
        ({"type": "echo", "every": 60, "queue": ""}, "queue"),
        ({"type": "echo", "every": 60, "priority": 1}, "priority"),
        ({"type": "echo", "every": None, "cron": None}, "every"),
        ({"type": "echo", "every": 60, "paused": "yes"}, "paused"),
        ({"type": "echo", "every": 60, "next_at": "soon"}, "next_at"),
        ({"type": "echo", "every": 60, "last_at": 5}, "last_at"),
        ({"type": "echo", "every": 60, "last_job": "a b"}, "last_job"),
        ({"type": "sleep", "payload": "long", "every": 60}, "payload"),
        ([], "the body"),
    ],
)
def test_a_wrong_schedule_is_refused_with_its_field(on_memory: Any, body: Any, field: str) -> None:
    async def scenario(call: Caller) -> None:
        found = await call.refused(422, "PUT", "/schedules/s", json=body)
        assert found["field"] == field
        assert len(found["detail"]) < 400
        assert (await call("GET", "/schedules")).json() == {"schedules": []}

    on_memory(scenario)


def test_what_is_no_schedule_at_all_is_refused_like_any_body(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        assert (await call.refused(422, "PUT", "/schedules/a%20b", json=EVERY))["field"] == "name"
        await call.refused(413, "PUT", "/schedules/s", json={**EVERY, "payload": "x" * 262_144})
        await call.refused(413, "PUT", "/schedules/s", json={**EVERY, "payload": "x" * 1_000_000})
        problem(await call.client.put("/schedules/s", content=b"{}"), 415)
        json = {"content-type": "application/json"}
        for raw in (b"", b"{", b'{"type":"echo","every":NaN}', b'{"every":1,"every":2}'):
            problem(await call.client.put("/schedules/s", content=raw, headers=json), 400)
        await call.refused(422, "GET", "/schedules?limit=5")

    on_memory(scenario)


def test_other_methods_are_refused_and_head_is_answered(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("PUT", "/schedules/s", json=EVERY)
        for method, path, allowed in [
            ("POST", "/schedules", {"GET", "HEAD"}),
            ("PATCH", "/schedules/s", {"GET", "HEAD", "PUT", "DELETE"}),
            ("GET", "/schedules/s/run", {"POST"}),
            ("GET", "/schedules/s/pause", {"POST"}),
            ("PUT", "/schedules/s/resume", {"POST"}),
        ]:
            response = await call(method, path, json={})
            problem(response, 405)
            assert set(response.headers["allow"].split(", ")) == allowed
        for path in ("/schedules", "/schedules/s"):
            response = await call("HEAD", path)
            assert response.status_code == 200

    on_memory(scenario)


def test_a_token_for_reading_changes_no_schedule() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://", token="write-" * 4, read_token="read-" * 4)
        async with calling(pipe, headers={"authorization": f"Bearer {'read-' * 4}"}) as call:
            assert (await call("GET", "/schedules")).status_code == 200
            await call.refused(403, "PUT", "/schedules/s", json=EVERY)
            await call.refused(403, "DELETE", "/schedules/s")
            for verb in ("run", "pause", "resume"):
                await call.refused(403, "POST", f"/schedules/s/{verb}")

    asyncio.run(main())


def test_a_full_queue_and_a_stop_refuse_a_run_by_hand() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://", queue_size=1)
        service = pipe.make_service(workers=0)
        async with calling(pipe, service=service) as call:
            await service.start()
            await call("PUT", "/schedules/s", json=EVERY)
            assert (await call("POST", "/schedules/s/run")).status_code == 202
            full = await call("POST", "/schedules/s/run")
            assert "queue-full" in problem(full, 503)["type"]
            assert int(full.headers["retry-after"]) >= 1
            service.begin_stop()
            assert "stopping" in (await call.refused(503, "POST", "/schedules/s/run"))["type"]
            assert (await call("GET", "/schedules/s")).status_code == 200
            await service.stop()

    asyncio.run(main())
