"""The connection is lost, and comes back by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import BrowserContext, Page, expect

from jobpipe import Jobpipe

from ..support.waiting import eventually
from .conftest import Service, Watcher, is_live


def test_a_killed_service_is_noticed_and_its_return_too(
    page: Page, new_service: Callable[..., Service], watcher: Watcher, tmp_path: Path
) -> None:
    watcher.expect("ERR_", "503")
    store = f"sqlite:///{tmp_path}/jobs.db"
    service = new_service("--store", store)
    service.enqueue(id="before", delay=600)
    page.goto(f"{service.url}ui/jobs")
    is_live(page)
    expect(page.locator(".rows-body .row")).to_have_count(1)
    service.kill()
    expect(page.locator("#connection")).to_have_text("Connection lost")
    expect(page.get_by_role("alert")).to_contain_text("The connection to the service is lost")
    expect(page.locator(".rows-body .row")).to_have_count(1)
    again = new_service("--store", store, port=service.port)
    again.enqueue(id="meanwhile", delay=600)
    is_live(page)
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.locator(".rows-body .row")).to_have_count(2)
    again.enqueue(id="after", delay=600)
    expect(page.locator(".rows-body .row")).to_have_count(3)


def test_a_stream_that_falls_silent_is_opened_again(
    new_context: Callable[..., BrowserContext], service: Service
) -> None:
    """A proxy that holds a dead connection open would else show an old picture for ever."""
    page = new_context().new_page()
    page.clock.install()  # for the whole window
    page.goto(service.url)
    is_live(page)
    with page.expect_request(lambda request: "/events" in request.url):
        page.clock.fast_forward(9_000)
    is_live(page)


def test_nothing_is_asked_again_and_again_while_nothing_happens(
    page: Page, new_service: Callable[..., Service]
) -> None:
    service = new_service()
    service.finished(service.enqueue(id="done", type="work"))
    page.goto(f"{service.url}ui/jobs/done")
    is_live(page)
    expect(page.locator(".job-head .badge")).to_have_text("done")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # Why wait: what must not happen has no signal. What is loaded twice at the start ends in the first second.
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 1500))")
    asked.clear()
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 2500))")
    assert asked == []


@contextmanager
def behind_a_prefix(prefix: str, *, is_cut: bool) -> Iterator[str]:
    """The application behind what takes a prefix off each path, as a proxy does, or else names it, as a framework does."""
    inner = Jobpipe("memory://", port=0).asgi()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{prefix}/"), "the page left its prefix"
            path = scope["path"].removeprefix(prefix) if is_cut else scope["path"]
            scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": "" if is_cut else prefix}
        await inner(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(outer, port=0, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        eventually(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}{prefix}/"
    finally:
        inner.end_streams()
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("is_cut", [True, False], ids=["proxy", "mounted"])
def test_it_works_under_a_prefix(page: Page, watcher: Watcher, is_cut: bool) -> None:
    watcher.expect("ERR_")
    with behind_a_prefix("/jobs-admin", is_cut=is_cut) as url:
        page.goto(url)
        is_live(page)
        page.get_by_role("link", name="Jobs", exact=True).click()
        assert page.url == f"{url}ui/jobs"
        page.request.post(f"{url}enqueue", data={"id": "t1", "delay": 600})
        page.get_by_role("link", name="t1").click()
        assert page.url == f"{url}ui/jobs/t1"
        expect(page.locator(".job-head .badge")).to_have_text("scheduled")
        page.reload()
        page.get_by_role("link", name="Workers").click()
        expect(page.get_by_role("region", name="Worker")).to_be_visible()
        page.get_by_role("link", name="API reference").click()
        expect(page.locator("article").first).to_be_visible()
        page.goto("about:blank")
