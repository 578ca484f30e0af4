"""Makes the pictures of the dashboard in docs/images: `make screenshots`.

A real service does the work of a small shop for five minutes; then each page is looked at, light and dark.
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from ..support.processes import program
from .conftest import CHROMIUM

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WARM_UP = 300.0
"""Seconds that the service works before the first picture."""
WIDE = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=780)
PAGES = {
    "overview": ("", 1180),
    "jobs": ("ui/jobs?type=invoice", 800),
    "job": ("ui/jobs/order-4711", 800),
    "steps": ("ui/jobs/return-4690", 800),
    "failed": ("ui/failed", 480),
    "schedules": ("ui/schedules", 800),
    "limits": ("ui/limits", 580),
    "workers": ("ui/workers", 480),
    "docs": ("docs", 800),
}
"""Name → address, and height of the picture."""


class Feeder:
    """The shop: it puts in jobs until it is told to stop."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(verify=False, base_url=url, timeout=20)
        self._stop = threading.Event()
        self._number = 5_000
        self._random = random.Random(7)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._begin()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _put(self, *jobs: Mapping[str, object]) -> None:
        self._client.post("enqueue/batch", json={"jobs": jobs}).raise_for_status()

    def _begin(self) -> None:
        self._put(
            *(
                {"id": f"reminder-{n}", "type": "email", "payload": {"to": "a@b"}, "delay": 900 + 60 * n}
                for n in range(40)
            )
        )
        self._client.post("queues/newsletter/pause")
        self._client.post("schedules/stock-sync/pause")
        mail = {"type": "email", "queue": "newsletter", "payload": {"to": "all@shop.example"}}
        self._put(*({"id": f"news-{n}", **mail} for n in range(31)))
        self._put(
            *({"id": f"return-{n}", "type": "return", "payload": {"number": n}} for n in range(4_690, 4_699)),
            {
                "id": "order-4711",
                "type": "invoice",
                "payload": {"number": 4_711, "customer": "ana@shop.example"},
            },
        )

    def _run(self) -> None:
        names = ["ana", "li", "omar", "sofia", "jan", "mira"]
        while not self._stop.wait(0.25):
            jobs: list[dict[str, object]] = []
            for _ in range(int(3 + 1.6 * math.sin(time.monotonic() / 14) + self._random.random() * 2)):
                self._number += 1
                kind, n = self._random.random(), self._number
                if kind < 0.58:
                    mail = {"to": f"{self._random.choice(names)}@shop.example", "subject": "Your order"}
                    jobs.append({"id": f"mail-{n}", "type": "email", "payload": mail})
                elif kind < 0.82:
                    jobs.append({"id": f"order-{n}", "type": "invoice", "payload": {"number": n}})
                else:
                    jobs.append({"id": f"img-{n}", "type": "thumbnail", "payload": f"img_{n}.heic"})
            if self._random.random() < 0.4:
                event = {"event": "order.paid", "shop": self._random.choice(["lisbon", "oslo"])}
                jobs.append({"id": f"evt-{self._number}", "type": "webhook", "payload": event})
            if self._number % 60 < 3:
                jobs.append({"id": f"sales-{self._number}", "type": "report", "payload": "sales"})
            if jobs:
                self._put(*jobs)


def take(page: Page, url: str, name: str, height: int) -> None:
    """One picture; AssertionError if it is too large for a page of documentation."""
    page.set_viewport_size({"width": (page.viewport_size or WIDE)["width"], "height": height})
    page.goto(url)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_timeout(2_500)
    file = IMAGES / f"{name}.png"
    page.screenshot(path=file)
    assert file.stat().st_size < 200_000, f"{file.name} has {file.stat().st_size:,} bytes"
    sys.stdout.write(f"{file.relative_to(ROOT)}\n")


def take_all(browser: Browser, url: str) -> None:
    """Every page, light and dark, and two of them on a phone."""
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport=WIDE, color_scheme=scheme, locale="en-GB", timezone_id="Europe/Berlin"
        )
        page = context.new_page()
        for name, (path, height) in PAGES.items():
            take(page, url + path, f"{name}-{scheme}", height)
        context.close()
    context = browser.new_context(
        viewport=PHONE, color_scheme="light", is_mobile=True, has_touch=True, locale="en-GB"
    )
    page = context.new_page()
    for name in ("overview", "jobs"):
        take(page, url + PAGES[name][0], f"{name}-phone", PHONE["height"])
    context.close()


def main() -> None:
    if CHROMIUM is None:
        raise SystemExit("there is no chromium: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    arguments = ["-m", "jobpipe", "serve", "demo:pipe", "--port", "0", "--grace", "0.1"]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shutil.copy(Path(__file__).with_name("demo.py"), folder)
        with program(arguments, Path(folder)) as service:
            url = service.line(r"listening on (http://[\w.:]+)")[1] + "/"
            with Feeder(url):
                threading.Event().wait(WARM_UP)
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                take_all(browser, url)
                browser.close()


if __name__ == "__main__":
    main()
