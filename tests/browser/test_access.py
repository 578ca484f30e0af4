"""For everybody: by keyboard alone, on a phone, with a screen reader, light and dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .conftest import Service, is_live

AXE = "axe_playwright_python"
"""The package, of which only the script is needed."""
PAGES = [
    "",
    "ui/jobs",
    "ui/jobs?type=boom",
    "ui/jobs/axe-fail",
    "ui/jobs/axe-wait",
    "ui/failed",
    "ui/schedules",
    "ui/limits",
    "ui/workers",
    "docs",
]


@pytest.fixture
def furnished(new_service: Callable[..., Service]) -> Service:
    """With something to see on every page, and no more. Why: axe looks at every row that other tests have left."""
    service = new_service()
    service.enqueue(id="axe-fail", type="boom", payload="it is broken")
    service.finished("axe-fail")
    service.enqueue(id="axe-run", type="hold", payload={"note": "step 3"})
    service.enqueue(id="axe-wait", queue="axe", delay=600)
    service.client.post("queues/axe/pause")
    service.client.put("schedules/axe-held", json={"type": "work", "every": 3600})
    service.client.post("schedules/axe-held/pause")
    return service


def test_axe_finds_nothing_wrong(furnished: Service, new_context: Callable[..., BrowserContext]) -> None:
    """All its rules in the light; in the dark those on colours."""
    axe = files(AXE).joinpath("axe.min.js").read_text(encoding="utf-8")
    # Why without the policy: it would stop axe, which is put into the page.
    page = new_context(bypass_csp=True, reduced_motion="reduce").new_page()
    found: dict[str, Any] = {}
    for path in PAGES:
        page.emulate_media(color_scheme="light")
        page.goto(furnished.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if path == "docs":
            page.get_by_role("searchbox").fill("schedules")  # the whole would take axe too long
        else:
            is_live(page)
        page.evaluate(axe)
        results = page.evaluate("axe.run({resultTypes: ['violations'], preload: false})")
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate("axe.run({runOnly: ['color-contrast'], preload: false})")
        for each in results["violations"] + dark["violations"]:
            found[f"{path or 'overview'}: {each['id']}"] = [node["html"][:200] for node in each["nodes"][:3]]
    assert found == {}


_BEYOND = """() => [...document.querySelectorAll("main :is(a, button, input, select, h1, h2, td, th)")]
    .filter((node) => !node.closest(".scroll, pre, .fields, .hidden") && node.checkVisibility({visibilityProperty: true}))
    .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 || node.getBoundingClientRect().left < -1)
    .map((node) => node.outerHTML.slice(0, 120))"""
"""What can be read or pressed, and is not within the window."""


def test_nothing_is_wider_than_a_phone(
    furnished: Service, new_context: Callable[..., BrowserContext]
) -> None:
    page = new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).new_page()
    found: dict[str, Any] = {}
    for path in PAGES:
        page.goto(furnished.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if path != "docs":
            is_live(page)
            expect(page.get_by_role("navigation").get_by_role("link", name="Workers")).to_be_in_viewport()
        width = page.evaluate("document.documentElement.scrollWidth")
        found[path] = (width <= 360, page.evaluate(_BEYOND))
    assert found == {path: (True, []) for path in PAGES}


def test_rows_are_selected_on_a_phone(service: Service, new_context: Callable[..., BrowserContext]) -> None:
    page = new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).new_page()
    service.enqueue_many([{"id": f"touch-{n}", "queue": "touch", "delay": 600} for n in range(2)])
    page.goto(f"{service.url}ui/jobs?queue=touch")
    page.get_by_role("checkbox", name="Select touch-1").tap()
    expect(page.locator(".head")).to_contain_text("1 job selected")
    assert page.evaluate(_BEYOND) == []
    page.get_by_role("button", name="Cancel 1 selected").tap()
    page.get_by_role("button", name="Cancel 1 job", exact=True).tap()
    expect(page.locator("#toasts")).to_contain_text("1 job is cancelled")
    assert [service.job(f"touch-{n}")["status"] for n in range(2)] == ["scheduled", "cancelled"]


def focused(page: Page) -> str:
    return str(
        page.evaluate("document.activeElement.innerText || document.activeElement.getAttribute('aria-label')")
    )


def test_all_of_it_is_done_by_keyboard(page: Page, service: Service) -> None:
    service.enqueue_many([{"id": f"key-{n}", "queue": "keys", "delay": 600} for n in range(3)])
    page.goto(f"{service.url}ui/jobs?queue=keys")
    expect(page.locator(".rows-body .row")).to_have_count(3)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page) == "key-2":
            break
    assert focused(page) == "key-2"
    outline = page.evaluate("getComputedStyle(document.activeElement, '::after').outlineStyle")
    assert outline == "solid", "the focus can be seen"
    page.keyboard.press("ArrowDown")
    assert focused(page) == "key-1"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("key-2")
    expect(heading).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        if focused(page) == "Cancel":
            break
    page.keyboard.press("Space")
    expect(page.locator(".job-head .badge")).to_have_text("cancelled")
    page.go_back()
    page.get_by_role("button", name="Cancel all 2 that match").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("button", name="Keep as it is")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert service.job("key-1")["status"] == "scheduled"
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("2 jobs are cancelled")


def test_a_row_keeps_the_focus_while_others_arrive(page: Page, service: Service) -> None:
    service.enqueue(id="kept-1", queue="kept", delay=600)
    page.goto(f"{service.url}ui/jobs?queue=kept")
    is_live(page)
    page.get_by_role("searchbox").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if focused(page) == "kept-1":
            break
    service.enqueue(id="kept-2", queue="kept", delay=600)
    expect(page.get_by_role("button", name="1 new job")).to_be_visible()
    assert focused(page) == "kept-1"
    service.client.post("jobs/kept-1/cancel")
    expect(page.locator(".row", has_text="kept-1")).to_contain_text("cancelled")
    assert focused(page) == "kept-1"


def test_light_and_dark_follow_the_system_and_motion_can_be_off(
    service: Service, new_context: Callable[..., BrowserContext]
) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = new_context(color_scheme=scheme, reduced_motion="reduce").new_page()
        page.goto(service.url)
        is_live(page)
        colours.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
        assert page.evaluate("getComputedStyle(document.querySelector('.pulse')).animationName") == "none"
    light, dark = (sum(map(int, re.findall(r"\d+", each)[:3])) for each in colours)
    assert light > 600 > 150 > dark
