"""Schedules, limits, workers and the reference."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from .conftest import Service, Watcher


def test_schedules_are_told_in_words_and_run_by_hand(page: Page, service: Service) -> None:
    service.client.put("schedules/often", json={"type": "work", "every": 120, "payload": {"n": 1}})
    page.goto(f"{service.url}ui/schedules")
    digest = page.get_by_role("region", name="Schedule digest")
    expect(digest).to_contain_text("At 07:30 Monday to Friday, Europe/Berlin time")
    expect(digest.locator(".times li")).to_have_count(5)
    expect(digest).to_contain_text("The schedule has not run yet")
    often = page.get_by_role("region", name="Schedule often")
    expect(often).to_contain_text("Every 2 minutes")
    often.get_by_role("button", name="Run often now").click()
    toast = page.locator("#toasts")
    expect(toast).to_contain_text("often runs now as")
    id = toast.inner_text().split()[-1]
    assert service.finished(id)["result"] == {"n": 1}
    service.client.delete("schedules/often")


def test_a_schedule_is_paused_and_resumed_by_keyboard(page: Page, service: Service) -> None:
    """The button that was pressed keeps the focus, and is the one that takes it back."""
    service.client.put("schedules/held", json={"type": "work", "every": 3600})
    page.goto(f"{service.url}ui/schedules")
    card = page.get_by_role("region", name="Schedule held")
    card.get_by_role("button", name="Pause held").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("held is paused")
    expect(card.locator(".badge")).to_have_text("paused")
    expect(card).to_contain_text("None while paused")
    expect(card.locator(".times li")).to_have_count(0)
    assert service.client.get("schedules/held").json()["paused"]
    card.get_by_role("button", name="Run held now").click()
    expect(page.locator("#toasts")).to_contain_text("held runs now as")
    card.get_by_role("button", name="Resume held").focus()
    page.keyboard.press("Space")
    expect(card.locator(".times li")).to_have_count(5)
    expect(card.locator(".badge")).to_have_count(0)
    expect(card.get_by_role("button", name="Pause held")).to_be_focused()
    assert not service.client.get("schedules/held").json()["paused"]
    service.client.delete("schedules/held")


def test_a_schedule_that_somebody_else_pauses_is_shown_so(page: Page, service: Service) -> None:
    service.client.put("schedules/theirs", json={"type": "work", "every": 3600})
    page.goto(f"{service.url}ui/schedules")
    card = page.get_by_role("region", name="Schedule theirs")
    expect(card.locator(".times li")).to_have_count(5)
    service.client.post("schedules/theirs/pause")
    expect(card.locator(".badge")).to_have_text("paused")
    service.client.post("schedules/theirs/resume")
    expect(card.locator(".times li")).to_have_count(5)
    service.client.delete("schedules/theirs")


def test_workers_show_what_they_run(page: Page, service: Service) -> None:
    service.enqueue(id="busy", type="hold", payload={"note": ""})
    page.goto(f"{service.url}ui/workers")
    card = page.get_by_role("region", name="Worker")
    expect(card).to_contain_text(re.compile(r"Slots in use: \d of 4"))
    expect(card.locator(".tag", has_text="hold")).to_be_visible()
    expect(card.get_by_role("link", name="busy")).to_be_visible()
    expect(card).to_contain_text(re.compile("last seen (now|. s ago)"))


def test_workers_show_the_processes_of_isolated_jobs(page: Page, service: Service) -> None:
    service.enqueue(id="apart", type="alone")
    page.goto(f"{service.url}ui/workers")
    running = page.locator("li", has=page.get_by_role("link", name="apart"))
    expect(running).to_contain_text(re.compile(r"process \d+ · \d+ MB · \d+\.\d s CPU"))
    service.client.post("jobs/apart/cancel")


def test_limits_are_shown_with_who_holds_them_and_until_when(page: Page, service: Service) -> None:
    """The key is text of others, too."""
    key = "<img src=x onerror=alert(1)>"
    service.enqueue(id="letter-1", type="letter", payload={"to": key})
    page.goto(f"{service.url}ui/limits")
    row = page.locator("tr", has_text=f"letter · {key}")
    expect(row.get_by_role("link", name="letter-1")).to_be_visible()
    for words in ("1/h", "1 of 1", "used up"):
        expect(row).to_contain_text(words)
    service.enqueue(id="letter-2", type="letter", payload={"to": key})
    page.goto(f"{service.url}ui/jobs/letter-2")
    expect(page.locator(".why")).to_contain_text("letter-1")
    page.locator(".why").get_by_role("link", name="letter-1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("letter-1")


def test_limits_are_searched_and_turned_over(page: Page, service: Service) -> None:
    """More than the hundred that were once the end."""
    row: dict[str, Any] = {"type": "letter", "queue": None, "is_keyed": True, "rate": "1/h", "burst": 1}
    row |= {"tokens": 1, "next_at": None, "concurrency": None, "running": 0, "holders": [], "waiting": None}
    keys = [row | {"key": f"k{n:03}", "cools_until": None} for n in range(120)]
    answer = {"limits": keys, "is_complete": False}
    page.route(
        "**/limits",
        lambda route: (
            route.fulfill(json=answer) if route.request.resource_type == "fetch" else route.fallback()
        ),
    )
    page.goto(f"{service.url}ui/limits")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    status = page.get_by_role("region", name="All limits").get_by_role("status")
    expect(status).to_contain_text("120 limits, page 1 of 3; there are more keys in use")
    expect(page.get_by_role("button", name="Previous")).to_be_disabled()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(20)
    expect(rows.last).to_contain_text("letter · k119")
    page.keyboard.press("/")
    page.keyboard.type("K11")
    expect(rows).to_have_count(10)
    expect(status).to_contain_text("10 limits")
    page.get_by_role("searchbox").fill("nothing")
    expect(page.get_by_role("region", name="All limits")).to_contain_text("No limit matches")


def test_where_nothing_is_limited_it_says_how_to(page: Page, service: Service) -> None:
    page.route(
        "**/limits",
        lambda route: (
            route.fulfill(json={"limits": [], "is_complete": True})
            if route.request.resource_type == "fetch"
            else route.fallback()
        ),
    )
    page.goto(f"{service.url}ui/limits")
    expect(page.locator(".empty")).to_contain_text("No limits")


def test_the_reference_has_every_call_and_is_searched(page: Page, service: Service) -> None:
    document = service.client.get("openapi.json").json()
    calls = sum(len(methods) for methods in document["paths"].values())
    page.goto(f"{service.url}docs")
    articles = page.locator("article:has(.method)")
    expect(articles).to_have_count(calls)
    for name in document["components"]["schemas"]:
        expect(page.locator(f'[id="schema-{name}"]')).to_be_attached()
    page.keyboard.press("/")
    page.keyboard.type("post retry")
    expect(articles).to_have_count(2)
    page.get_by_role("searchbox").fill("no such word")
    expect(page.get_by_role("navigation")).to_contain_text("No call matches")


def test_a_call_is_tried_from_the_reference(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("404")
    page.goto(f"{service.url}docs#post_enqueue")
    call = page.locator("article", has=page.locator("h3", has_text=re.compile("^POST/enqueue$")))
    call.get_by_text("Try it").click()
    call.get_by_label("Body").fill('{"id": "tried", "type": "work", "payload": [7]}')
    call.get_by_role("button", name="Send POST").click()
    expect(call.locator(".answer")).to_contain_text("202 Accepted")
    assert service.finished("tried")["result"] == [7]
    look = page.locator("article", has=page.locator("h3", has_text=re.compile(r"^GET/jobs/{id}$")))
    look.get_by_text("Try it").click()
    look.get_by_label("id").fill("tried")
    look.get_by_role("button", name="Send GET").click()
    expect(look.locator(".answer")).to_contain_text('"status": "done"')
    look.get_by_label("id").fill("../stats")
    look.get_by_role("button", name="Send GET").click()
    expect(look.locator(".answer")).to_contain_text("404")
