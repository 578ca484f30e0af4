"""Every example runs as a program of its own, ends well, says nothing on stderr and prints what it is there to show."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))

_SLOW = re.compile(r"^Executing <.*> took [\d.]+ seconds\n", re.MULTILINE)
"""What asyncio says in its debug mode where a machine is slow: no fault of an example."""

PRINTS: dict[str, list[str] | set[str]] = {
    "01_preset_envelopes.py": [
        "init: 3 envelopes wait for the start",
        "email 1 to ada@example.org, 3 s left",
        "email 2 to grace@example.org, 3 s left",
        "email 3 to alan@example.org, 3 s left",
        "stopped: 3 emails sent",
    ],
    "02_schedule.py": [
        "upload: 25 %",
        "heartbeat",
        "upload: 100 %",
        "stopped: 1 envelope waits for its next tick",
    ],
    "03_dynamic_sending.py": [
        "resized photo-1.jpg",
        "resized photo-6.jpg",
        "refused all 9 scans: there are 3 places",
        "rebuilds that wait: 1",
        "rebuilt album summer",
        "done: 7",
    ],
    "04_preset_and_dynamic.py": [
        "preset: 5 envelopes",
        "answered ada",
        "answered grace",
        "warmed contact",
        "evicted what is old",
        "dynamic: 2 requests; 1 tick is still to come",
    ],
    "05_start_stop_start.py": [
        "reminder: drink water",
        "stopped: 1 reminder is kept",
        "refused: the queue is stopped and takes no envelopes",
        "running again",
        "reminder: stretch",
        "stopped: 3 reminders given, 0 left",
    ],
    "06_asyncio.py": {
        "archive: compressed in a thread",
        "https://example.org: 19 bytes",
        "submitted: [6, 6, 7, 7]",
        "sensor: sent",
        "sensor://kitchen: 16 bytes",
        "hang: cancelled, time to clean up",
        "hang failed: DeadlineExceeded",
        "done: 7, failed: 1",
    },
    "07_retries_and_stamps.py": [
        "payment 1: 50 received",
        "payment 2: bank is down, next attempt in 0.1 s",
        "payment 3: given up, CardExpired",
        "payment 2: bank is down, next attempt in 0.2 s",
        "  payment 2, attempt 3: ",
        "payment 2: 70 received",
        "done: 2, failed: 3, retried: 2, dropped: 1",
    ],
    "08_executor.py": [
        "submit: contract cc8321d6",
        "map: contract cc8321d6",
        "map: receipt 6f328609",
        "an error is the future's: invalid literal for int() with base 10: 'many'",
        "run_in_executor: minutes 90e63d85",
        "terminated",
    ],
    "09_testing_with_a_manual_clock.py": [
        "73 reports, from Monday 00:00 to Thursday 00:00",
        "backup attempts at 00:00 and 08:00",
        "three days and eight hours took ",
    ],
    "10_rates.py": [
        "report after 0.",
        "email 2 after 0.",
        "email 3 after 0.",
        "export 3: concurrency, held by 1 and 2",
        "export 3: it is not in the queue",
        "/users: 429 Too Many Requests",
        "/users: delayed; /orders: throttled",
        "done: 2, failed: 0",
    ],
    "11_metrics.py": [
        'workqueue_adds_total{name="mails"} 4.0',
        'workqueue_retries_total{name="mails"} 1.0',
        'rate_envelope_queue_occupied{name="reports"} 1.0',
    ],
    "12_simulate.py": [
        "1 workers: 5409 rejected, wait p99 5512 s, busy 85%",
        "2 workers: 0 rejected, wait p99 1513 s, busy 59%",
        "4 workers: 0 rejected, wait p99 6 s, busy 29%",
    ],
    "13_cron.py": [
        "Europe/Berlin",
        "  Sun 03:00 CEST is Sun 01:00 UTC",
        "America/New_York",
        "  Sun 02:30 EDT is Sun 06:30 UTC",
        "it is delayed until 2026-03-27 08:00:00 UTC",
        "report on Fri 09:00, 08:00 UTC",
        "report on Mon 09:00, 07:00 UTC",
        "2 reports, the next at Tue 09:00",
    ],
    "22_jobpipe_unique.py": [
        "99 changes while it runs: 1 more job",
        "it waits: unique",
        "built: index with change 0",
        "built: index with change 99",
        "first draft: cancelled",
        "rendered: second draft",
        "nightly again: a new job? False; the payload is 1",
    ],
    "23_jobpipe_chosen_queues.py": [
        "mail: 3 at once, media: 1 at once",
        "no_worker: No worker serves the queue 'reports': start one that does",
    ],
    "14_jobpipe.py": [
        "order-17 once more: a new job? False",
        "resize: cat.jpg is smaller, 100%",
        "resize: dog.jpg is smaller, 100%",
        "email: 'hello' to ada@example.org, at attempt 2",
        "its first run: the mail server is away",
        "tomorrow: scheduled",
        "tomorrow: cancelled",
        "done: 3, cancelled: 1",
    ],
    "15_jobpipe_transaction.py": [
        "order 18 is rolled back: no stock",
        "orders: [17]",
        "job bill-17: there",
        "job bill-18: not there",
        "done: bill for order 17",
    ],
    "16_jobpipe_in_starlette.py": [
        "uploaded: {'job': 'resize-cat.jpg', 'new': True}",
        "done: cat.jpg is smaller",
        "ready: {'status': 'ok'}",
        "the API is at /queue",
        "stopped, with its workers",
    ],
    "17_jobpipe_in_fastapi.py": [
        "taken: {'job': 'confirm-17'}",
        "without a token: 401 No valid token",
        "done: order 17 is confirmed to ada@example.org",
    ],
    "18_jobpipe_in_django.py": [
        "order 17 is taken",
        "without stock: 500",
        "orders: [17]",
        "job bill-17: there",
        "job bill-18: not there",
        "done: bill for order 17",
    ],
    "19_jobpipe_in_flask.py": [
        "first: {'job': 'mail-ada', 'new': True}",
        "again: {'job': 'mail-ada', 'new': False}",
        "a name that is none: 422",
        "before: {'result': None, 'status': 'queued'}",
        "after: {'result': 'sent to ada@example.org', 'status': 'done'}",
    ],
    "20_jobpipe_client.py": [
        "order-17: a new job? True",
        "order-17: done",
        "no job has the id 'order-18'",
        "results: [0, 1, 2]",
        "warning: no running worker knows the type 'ecko'; did you mean 'echo'?",
        "cancelled: 1",
        "refused: another token",
    ],
    "21_jobpipe_middleware.py": [
        "good: attempt 1 with {'customer': 'ada'}",
        "good: attempt 2 with {'customer': 'ada'}",
        "ada paid 10",
        "bad: attempt 2 with {'customer': 'bob', 'amount': -5}",
        "bad failed: the amount is negative",
        "failed",
        "runs: 1 ok, 3 with an error",
    ],
    "24_jobpipe_tracing.py": [
        "POST /orders",
        "  enqueue mail",
        "    run mail: retried",
        "      smtp",
        "run mail: done, linked to 1 span",
        "  smtp",
    ],
    "25_jobpipe_steps.py": [
        "the handler begins, attempt 1",
        "  ada is charged 20, with the key order-17",
        "  tea is packed",
        "  cup is packed",
        "the handler begins, attempt 2",
        "failed: the carrier is closed",
        "the handler begins, attempt 1",
        "done: 2 boxes are on their way, 20 paid",
        "charge: {'id': 'charge-1', 'amount': 20}",
        "ship: 2 boxes are on their way",
    ],
    "26_jobpipe_sleep.py": [
        "  the welcome is sent to ada",
        "another job runs: hello",
        "the trial is scheduled: sleep",
        "attempts that it has used: 0, steps: ['welcome']",
        "  the welcome is sent to bob",
        "after 6 days: ['scheduled']",
        "  the reminder is sent to bob",
        "  the last mail is sent to bob",
        "after 14 days: ['done']",
    ],
    "27_jobpipe_signals.py": [
        "eve gets nothing: nobody answered",
        "refund-1 waits: signal approved",
        "accepted: True",
        "ada gets 70: grace approved it",
        "the same again, is it new? False",
        "signal 'approved' for job 'refund-1' was sent before with other content: the first of a name wins",
        "bob gets 20: alan approved it",
    ],
}
"""How the lines begin that an example has to print: a list in this order, a set in any; others may come between."""


def test_every_example_has_its_lines_here() -> None:
    """A new example is not tested until this table says what it prints."""
    assert sorted(PRINTS) == EXAMPLES, "PRINTS and examples/ differ: add what the new example prints"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_it_shows(name: str) -> None:
    """It ends by itself with exit code 0, warns of nothing and prints its lines in order."""
    command = [sys.executable, "-X", "dev", "-W", "error", str(FOLDER / name)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, _SLOW.sub("", ended.stderr)) == (0, "")
    wanted = PRINTS[name]
    printed = iter(ended.stdout.splitlines())
    for beginning in wanted:
        lines = printed if isinstance(wanted, list) else ended.stdout.splitlines()
        found = any(line.startswith(beginning) for line in lines)
        assert found, f"{beginning!r} is missing, or out of order, in:\n{ended.stdout}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_a_documented_script(name: str) -> None:
    """It has a docstring, a `main` and the guard, so that it can be read, run and imported."""
    tree = ast.parse((FOLDER / name).read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert "main" in functions
    assert ast.unparse(tree.body[-1]).startswith("if __name__ == '__main__':")


def test_a_project_of_a_user_is_tested_with_the_kit(tmp_path: Path) -> None:
    """As a user does it: pytest in the folder of the project, which has nothing of ours but the package."""
    shutil.copytree(FOLDER / "tested_shop", tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    options = ("-q", "-W", "error", "-p", "rate_envelope_queue.pytest_plugin", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path / "shop",
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert re.search(r"^6 passed", ended.stdout, re.MULTILINE), ended.stdout + ended.stderr
    assert not list(tmp_path.rglob("*.db")), "the real store was not opened"
