"""A real browser and a real service. Whatever the browser complains of, the policy of the page above all, fails the test."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
    await current_job().step("lie-down", lambda: "comfortable")
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

    @contextmanager
    def watching(self, context: BrowserContext) -> Iterator[None]:
        """Note what its pages complain of until the end of the block, by when they have to be closed."""
        events = {"console": self._heed, "weberror": self._heed_error, "dialog": self._heed_dialog}
        for event, handler in events.items():
            context.on(event, handler)  # type: ignore[call-overload]
        yield
        for event, handler in events.items():
            context.remove_listener(event, handler)

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


class Chromium:
    """A browser and a window that tests have in turn, opened for the first of them."""

    def __init__(self) -> None:
        self._exits = ExitStack()
        self._browser: Browser | None = None
        self._window: BrowserContext | None = None

    @property
    def browser(self) -> Browser:
        if self._browser is None:
            playwright = self._exits.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            self._exits.enter_context(self._browser)
        return self._browser

    @property
    def window(self) -> BrowserContext:
        if self._window is None:
            self._window = self.new_window(permissions=["clipboard-read", "clipboard-write"])
        return self._window

    def new_window(self, **options: Any) -> BrowserContext:
        expect.set_options(timeout=PATIENCE)
        made = self.browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        made.set_default_timeout(PATIENCE)
        made.add_init_script(_TELL)
        return made

    def close(self) -> None:
        self._browser = self._window = None
        self._exits.close()


_CHROMIUM = pytest.StashKey[Chromium]()


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Chromium:
    return request.config.stash.setdefault(_CHROMIUM, Chromium())


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser. Why then: as long as Playwright runs, no other test of the process can run an event loop."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        item.config.stash.setdefault(_CHROMIUM, Chromium()).close()


@pytest.fixture(scope="module")  # Why not for a test: it would leave the threads of Playwright behind
def window(chromium: Chromium) -> BrowserContext:
    return chromium.window


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
    chromium: Chromium, window: BrowserContext, watcher: Watcher, new_service: Callable[..., Service]
) -> Iterator[Callable[..., BrowserContext]]:
    """Makes windows of their own; all are closed before the services, of whose end they would complain."""
    with ExitStack() as stack:

        def make(**options: Any) -> BrowserContext:
            context = chromium.new_window(**options)
            stack.enter_context(watcher.watching(context))
            return stack.enter_context(context)

        yield make


@pytest.fixture
def page(window: BrowserContext, watcher: Watcher, new_service: Callable[..., Service]) -> Iterator[Page]:
    """In the window that all tests share: what the dashboard keeps, it keeps for a page."""
    with watcher.watching(window):
        yield window.new_page()
        for page in window.pages:
            page.close()


def is_live(page: Page) -> None:
    """Wait until the page hears of events."""
    expect(page.locator("#connection")).to_have_text("Live")
