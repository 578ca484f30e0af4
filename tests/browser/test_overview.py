"""The overview: numbers, chart and queues, live."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from .conftest import Service, is_live


def tile(page: Page, name: str) -> str:
    return page.locator(".tile", has_text=name).locator(".big").inner_text()


def test_numbers_chart_and_queues_follow_what_happens(page: Page, service: Service) -> None:
    page.goto(service.url)
    is_live(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    service.enqueue_many([{"queue": "overview", "delay": 600, "id": f"ov-{n}"} for n in range(7)])
    row = page.locator("tr", has_text="overview")
    expect(row.locator("td").first).to_have_text("7")
    expect(page.locator(".tile", has_text="Waiting")).to_contain_text("7 scheduled")
    service.enqueue(id="ov-bad", type="boom", payload="out of paper")
    expect(page.locator(".card", has_text="Latest failures")).to_contain_text("out of paper")
    expect(page.locator(".chart .column").first).to_be_attached()


def test_running_jobs_are_shown_with_their_progress(page: Page, service: Service) -> None:
    page.goto(service.url)
    is_live(page)
    id = service.enqueue(type="hold", payload={"note": "page 1"})
    card = page.locator(".card", has_text="Running now")
    expect(card.get_by_role("link", name=id)).to_be_visible()
    expect(card).to_contain_text("25 %")
    service.let_go(id)
    expect(card.get_by_role("link", name=id)).to_have_count(0)


def test_a_queue_is_paused_and_resumed(page: Page, service: Service) -> None:
    service.enqueue(queue="held", delay=600)
    page.goto(service.url)
    page.get_by_role("button", name="Pause held").click()
    resume = page.get_by_role("button", name="Resume held")
    expect(resume).to_be_visible()
    expect(page.locator("tr", has_text="held")).to_contain_text("paused")
    queues = {each["name"]: each for each in service.client.get("queues").json()["queues"]}
    assert queues["held"]["paused"]
    expect(page.locator("#toasts")).to_contain_text(
        "held is paused"
    )  # the page has the answer, and draws no more
    resume.click()
    expect(page.get_by_role("button", name="Pause held")).to_be_visible()


def test_a_pause_by_somebody_else_is_seen(page: Page, service: Service) -> None:
    service.enqueue(queue="elsewhere", delay=600)
    page.goto(service.url)
    expect(page.get_by_role("button", name="Pause elsewhere")).to_be_visible()
    service.client.post("queues/elsewhere/pause")
    expect(page.get_by_role("button", name="Resume elsewhere")).to_be_visible()


def test_an_empty_service_says_on_every_page_what_to_do_next(
    page: Page, new_service: Callable[..., Service]
) -> None:
    service = new_service("--workers", "0")
    service.client.delete("schedules/digest")
    page.goto(service.url)
    nothing = page.locator(".empty")
    expect(nothing).to_contain_text("No job yet")
    page.get_by_role("button", name="Copy the command").click()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(f"curl -X POST '{service.url}enqueue'")
    assert '"payload":"data"' in command
    for name, words in (
        ("Jobs", f"curl -X POST '{service.url}enqueue'"),
        ("Schedules", f"curl -X PUT '{service.url}schedules/nightly'"),
        ("Workers", "jobpipe worker"),
    ):
        page.get_by_role("link", name=name, exact=True).click()
        expect(nothing).to_contain_text(words)
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(nothing).to_be_visible()
    service.enqueue(id="t1")
    expect(nothing).to_have_count(0)


def test_a_chart_that_is_opened_later_has_a_past(page: Page, service: Service) -> None:
    service.finished(service.enqueue(id="past", type="work"))
    page.goto(service.url)
    page.get_by_role("link", name="Workers").click()
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.locator(".chart .column.done").first).to_be_attached()
    page.reload()
    expect(page.locator(".chart .column.done").first).to_be_attached()
