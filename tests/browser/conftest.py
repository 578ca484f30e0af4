"""A real browser and a real service. Whatever the browser complains of, the policy of the page above all, fails the test."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    WebError,
    expect,
    sync_playwright,
)

from ..support.processes import Program

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""Why rather the former: the same engine, without a window that nobody sees, takes less than half of the time."""
PATIENCE = 15_000
"""Milliseconds until a look at the page gives up."""

APP = """
import asyncio, logging, os
from typing import TypedDict
from jobpipe import Jobpipe, current_job

pipe = Jobpipe("memory://", queue_size=0, workers=4)

async def held():
    while not os.path.exists(f"go-{current_job().id}"):
        await asyncio.sleep(0.02)

@pipe.job("work")
async def work(payload):
    return payload

@pipe.job("hold", queue="slow")
async def hold(payload):
    current_job().progress(0.25, payload["note"])
    logging.info("holding %s", payload["note"])
    await held()
    logging.warning("let go")
    return payload

@pipe.job("alone", isolate=True)
async def alone(payload):
    await held()

@pipe.job("boom", queue="bad", max_retries=0)
async def boom(message):
    raise ValueError(message)

class Sized(TypedDict):
    size: str

@pipe.job("sized", queue="bad", max_retries=0)
async def sized(payload: Sized):
    raise ValueError(payload["size"])

@pipe.job("letter", rate="1/h", concurrency=1, key=lambda payload: payload["to"])
async def letter(payload):
    await held()

@pipe.job("order", queue="orders", max_retries=0)
async def order(payload):
    # Steps as the payload names them, then a signal, whose payload is the result of the last step.
    job = current_job()
    for name, result in payload["steps"]:
        await job.step(name, lambda: result)
    answer = await job.wait_for(payload.get("signal", "approved"), timeout=payload.get("timeout"))
    await job.step("ship", lambda: answer)
    if answer == "refuse":
        raise ValueError("the shop is closed")
    return answer

@pipe.job("nap", queue="orders")
async def nap(seconds):
    await current_job().step("lie down", lambda: "comfortable")
    await current_job().sleep("siesta", seconds)

@pipe.cron("30 7 * * 1-5", tz="Europe/Berlin", name="digest")
async def digest():
    return "sent"
"""

_TELL = """
document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`the policy was violated: ${event.violatedDirective} ${event.blockedURI}`));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(
                    pytest.mark.skip(
                        reason="NO BROWSER: apt-get install chromium-headless-shell to run these tests"
                    )
                )


class Service:
    """A running service, and a client for it."""

    def __init__(self, folder: Path, *options: str, port: int = 0, env: dict[str, str] | None = None) -> None:
        (folder / "app.py").write_text(APP, encoding="utf-8")
        self.folder = folder
        arguments = ["-m", "jobpipe", "serve", "app:pipe", "--port", str(port), "--grace", "0.1", *options]
        self.program = Program(arguments, folder, env)
        self.url = self.program.line(r"listening on (http://[\w.:]+)")[1] + "/"
        self.port = httpx.URL(self.url).port or 0
        token = (env or {}).get("JOBPIPE_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.client = httpx.Client(verify=False, base_url=self.url, headers=headers, timeout=20)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        transport = httpx.HTTPTransport(retries=5)
        with httpx.Client(transport=transport, base_url=self.url) as client:
            while client.get("readyz").status_code != 200:
                pass

    def enqueue(self, **job: Any) -> str:
        """Put a job in; its id."""
        answer = self.client.post("enqueue", json=job)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def enqueue_many(self, jobs: list[dict[str, Any]]) -> None:
        for begin in range(0, len(jobs), 1_000):
            answer = self.client.post("enqueue/batch", json={"jobs": jobs[begin : begin + 1_000]})
            assert answer.status_code == 202, answer.text

    def finished(self, id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.client.get(f"jobs/{id}/wait").json()
        assert job["finished_at"], job
        return job

    def job(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"jobs/{id}").json()
        return found

    def let_go(self, id: str) -> None:
        """Let a job of the type `hold` go on."""
        (self.folder / f"go-{id}").touch()

    def kill(self) -> None:
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.code()

    def close(self) -> None:
        self.client.close()
        self.program.close()


class Watcher:
    """Notes what a page complains of."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._expected: list[str] = []

    def expect(self, *words: str) -> None:
        """Complaints with one of these words are what the test is about."""
        self._expected += words

    def watch(self, context: BrowserContext) -> None:
        context.add_init_script(_TELL)
        context.on("console", self._heed)
        context.on("weberror", self._heed_error)
        context.on("dialog", self._heed_dialog)

    def _heed(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _heed_error(self, error: WebError) -> None:
        self.complaints.append(str(error.error))

    def _heed_dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"a dialog was opened: {dialog.message}")
        dialog.dismiss()

    def check(self) -> None:
        unexpected = [each for each in self.complaints if not any(word in each for word in self._expected)]
        assert unexpected == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Why not for the session: as long as Playwright runs, no other test of the process can run an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    yield service
    service.close()


@pytest.fixture
def service(shared_service: Service) -> Iterator[Service]:
    """One that all tests share: each uses ids and queues of its own."""
    yield shared_service
    for queue in shared_service.client.get("queues").json()["queues"]:
        if queue["paused"]:
            shared_service.client.post(f"queues/{queue['name']}/resume")
    shared_service.client.post("jobs/cancel", json={"all": True})


@pytest.fixture
def new_service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes services that no other test knows."""
    made: list[Service] = []

    def make(*options: str, **settings: Any) -> Service:
        made.append(Service(tmp_path, *options, **settings))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    watcher = Watcher()
    yield watcher
    watcher.check()


@pytest.fixture
def new_context(
    browser: Browser, watcher: Watcher, new_service: Callable[..., Service]
) -> Iterator[Callable[..., BrowserContext]]:
    """Makes windows of their own; all are closed before the services, of whose end they would complain."""
    made: list[BrowserContext] = []
    expect.set_options(timeout=PATIENCE)

    def make(**options: Any) -> BrowserContext:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        context.set_default_timeout(PATIENCE)
        watcher.watch(context)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


@pytest.fixture
def page(new_context: Callable[..., BrowserContext]) -> Page:
    return new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()


def is_live(page: Page) -> None:
    """Wait until the page hears of events."""
    expect(page.locator("#connection")).to_have_text("Live")
