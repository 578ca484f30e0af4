"""The files of the dashboard and of /docs: open to everybody under the service's own name, safe, and kept by browsers."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe
from jobpipe.model.job import TRANSITIONS, JobStatus, Move

from .conftest import Caller, calling, problem, run

FOLDER = Path(str(files("jobpipe.web").joinpath("dashboard")))
SCRIPTS = sorted(FOLDER.glob("*.js"))
PAGES = ["/", "/docs", "/ui/jobs", "/ui/jobs/t1", "/ui/schedules", "/ui/limits", "/ui/workers"]


def assets_of(text: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"]*/assets/[^"]+)"', text)


def test_every_page_is_served_with_a_strict_policy(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in PAGES:
            response = await call("GET", path)
            assert response.status_code == 200
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            policy = response.headers["content-security-policy"]
            for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"):
                assert part in policy
            for part in ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
                assert part in policy
            assert "unsafe" not in policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["referrer-policy"] == "no-referrer"
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", response.text)
            assert not re.search(r'(?:href|src)="(?:https?:)?//', response.text), (
                "nothing comes from elsewhere"
            )

    on_memory(scenario)


def test_links_lead_to_the_files_from_wherever_the_page_is(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in PAGES:
            page = await call("GET", path)
            found = assets_of(page.text)
            assert len(found) >= 4
            for link in found:
                assert not link.startswith("/"), "a prefix would be lost"
                file = await call("GET", str(page.url.join(link)))
                assert file.status_code == 200
                assert "immutable" in file.headers["cache-control"]
                assert file.headers["x-content-type-options"] == "nosniff"

    on_memory(scenario)


def test_files_have_their_types_and_old_ones_are_gone(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        base = str((await call("GET", "/")).url.join(assets_of((await call("GET", "/")).text)[0]))
        folder = base.rpartition("/")[0]
        for file in FOLDER.iterdir():
            response = await call("GET", f"{folder}/{file.name}")
            assert response.content == file.read_bytes()
            expected = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
            assert response.headers["content-type"].startswith(expected.get(file.suffix, "text/html"))
        for path in (f"{folder}/nope.js", "/ui/assets/0/app.js", f"{folder}/..%2f..%2fapp.py"):
            problem(await call("GET", path), 404)

    on_memory(scenario)


def test_what_has_not_changed_is_not_sent_again(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/", "/docs", "/ui/meta.json"):
            first = await call("GET", path)
            assert first.headers["cache-control"] == "no-cache"
            again = await call("GET", path, headers={"if-none-match": first.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            other = await call("GET", path, headers={"if-none-match": '"other"'})
            assert other.status_code == 200
            assert (await call("HEAD", path)).content == b""

    on_memory(scenario)


def test_they_need_no_token_but_the_services_own_name() -> None:
    async def scenario(call: Caller) -> None:
        for path in (*PAGES, "/ui/meta.json"):
            assert (await call("GET", path)).status_code == 200
            problem(await call("GET", path, headers={"host": "evil.example"}), 400)
        problem(await call("GET", "/openapi.json"), 401)
        problem(await call("GET", "/workers"), 401)

    run(scenario, Jobpipe("memory://", token="s3cret"))


def test_they_are_there_while_the_service_still_waits_for_its_store() -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://")
        async with calling(pipe, service=pipe.make_service()) as call:
            assert (await call("GET", "/")).status_code == 200
            problem(await call("GET", "/stats"), 503)

    asyncio.run(main())


def test_an_unknown_page_is_a_404_with_the_page_that_says_so(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/ui/", "/ui/nope", "/ui/jobs/a/b", "/ui/schedules/x"):
            response = await call("GET", path)
            assert response.status_code == 404
            assert "app.js" in response.text
        assert (await call("POST", "/")).status_code == 405

    on_memory(scenario)


def test_the_buttons_are_those_of_the_table(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        meta = (await call("GET", "/ui/meta.json")).json()
        assert meta["statuses"] == [str(status) for status in JobStatus]
        for action, move in (("cancel", Move.CANCEL), ("retry", Move.REVIVE)):
            assert meta["actions"][action] == [
                status for status, moves in TRANSITIONS.items() if move in moves
            ]
        assert {status: set(moves) for status, moves in meta["transitions"].items()} == {
            str(status): set(moves) for status, moves in TRANSITIONS.items()
        }

    on_memory(scenario)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_small_say_what_they_are_and_put_in_no_markup(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("// ")
    assert text.count("\n") <= 300
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
    ):
        assert word not in text
    for found in re.findall(r'from "([^"]+)"', text):
        assert (FOLDER / found).is_file(), "nothing is loaded from elsewhere"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to read the scripts")
def test_scripts_can_be_read() -> None:
    """Why not `--check`: it takes one script, and so a node for each."""
    read = "new vm.SourceTextModule(fs.readFileSync(file, 'utf8'), { identifier: file })"
    check = f"for (const file of process.argv.slice(1)) {read}"
    node = ["node", "--experimental-vm-modules", "--no-warnings", "--eval", check]
    subprocess.run([*node, *map(str, SCRIPTS)], check=True, timeout=60)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the scripts")
@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ({"every": 60}, "Every minute"),
        ({"every": 7200}, "Every 2 hours"),
        ({"every": 0.5}, "Every 0.5 seconds"),
        ({"cron": "* * * * *"}, "Every minute, UTC"),
        ({"cron": "*/5 * * * *", "tz": "UTC"}, "Every 5 minutes, UTC"),
        ({"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "At 03:00 every day, Europe/Berlin time"),
        (
            {"cron": "30 9 * * 1-5", "tz": "America/New_York"},
            "At 09:30 Monday to Friday, America/New York time",
        ),
        ({"cron": "15 10,14 * * mon,wed"}, "At 10:15 and 14:15 on Monday and Wednesday, UTC"),
        ({"cron": "0 0 1 * *"}, "At 00:00 on day 1 of every month, UTC"),
        ({"cron": "0 0 L 2 *"}, "At 00:00 on the last day of February, UTC"),
        ({"cron": "5 * * * *"}, "Every hour, 5 minutes past, UTC"),
        ({"cron": "0 */6 * * *"}, "Every 6 hours, UTC"),
        ({"cron": "*/1 * * * *"}, "Every minute, UTC"),
        ({"cron": "1 */1 * * *"}, "Every hour, 1 minute past, UTC"),
        ({"cron": "*/7 2-4 * 3 5#2"}, "By the cron expression */7 2-4 * 3 5#2, UTC"),
        ({"cron": "0 0 3 * * *"}, "By the cron expression 0 0 3 * * *, UTC"),
    ],
)
def test_timings_are_put_into_words(timing: dict[str, Any], words: str) -> None:
    given = json.dumps({"every": None, "cron": None, "tz": None, **timing})
    script = f'import {{ timingInWords }} from "{(FOLDER / "timing.js").as_uri()}"; console.log(timingInWords({given}))'
    ended = subprocess.run(
        ["node", "--input-type=module", "--no-warnings"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert ended.stdout.strip() == words
