"""The list of jobs: live, filtered, searched, long; and what is done to all of a filter."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median

from playwright.sync_api import Page, Route, expect

from .conftest import Service, Watcher, is_live

ROWS = ".rows-body .row"


def ids(page: Page) -> list[str]:
    return page.locator(f"{ROWS} a").all_inner_texts()


def test_jobs_arrive_and_change_while_one_looks(page: Page, service: Service) -> None:
    page.goto(f"{service.url}ui/jobs?queue=arrivals")
    is_live(page)
    expect(page.locator(".empty")).to_contain_text("No job matches")
    service.enqueue(id="first", queue="arrivals", type="hold", payload={"note": "n"})
    row = page.locator(ROWS, has_text="first")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("25 %")
    service.enqueue(id="second", queue="arrivals", delay=600)
    expect(page.locator(ROWS)).to_have_count(2)
    assert ids(page) == ["second", "first"], "the newest is on top"
    service.let_go("first")
    expect(row).to_contain_text("done")
    expect(row).to_contain_text("ended")


def test_filters_are_in_the_address_and_can_be_gone_back_from(page: Page, service: Service) -> None:
    service.enqueue(id="f-1", queue="filters", delay=600)
    service.finished(service.enqueue(id="f-2", queue="filters", type="work"))
    service.finished(service.enqueue(id="f-3", queue="filters", type="boom", payload="x"))
    page.goto(f"{service.url}ui/jobs")
    page.get_by_label("Queue").select_option("filters")
    expect(page.locator(ROWS)).to_have_count(3)
    chips = page.get_by_role("group", name="Status")
    expect(chips.get_by_role("link", name=re.compile("^failed"))).to_have_text("failed1")
    chips.get_by_role("link", name=re.compile("^failed")).click()
    expect(page.locator(ROWS)).to_have_count(1)
    assert ids(page) == ["f-3"]
    assert page.url == f"{service.url}ui/jobs?queue=filters&status=failed"
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    page.go_back()
    expect(page.locator(ROWS)).to_have_count(3)
    expect(page.get_by_label("Queue")).to_have_value("filters")
    page.go_back()
    expect(page.get_by_label("Queue")).to_have_value("")
    expect(page.get_by_label("Queue").locator("option:checked")).to_have_text("all queues")
    page.go_forward()
    expect(page.locator(ROWS)).to_have_count(3)
    page.get_by_label("Type").select_option("work")
    expect(page.locator(ROWS)).to_have_count(1)
    assert ids(page) == ["f-2"]


def test_a_text_is_searched_in_ids_tags_and_errors(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("404")
    service.enqueue_many([{"id": f"needle-{n}", "queue": "hay", "delay": 600} for n in range(12)])
    service.enqueue(id="tagged", queue="hay", delay=600, tags=["Needle-cushion"])
    service.finished(service.enqueue(id="hurt", queue="hay", type="boom", payload="a needle in the thumb"))
    page.goto(f"{service.url}ui/jobs?queue=hay")
    field = page.get_by_role("searchbox", name="Search")
    expect(field).to_be_visible()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("needle-1")
    expect(page.locator(ROWS)).to_have_count(3)
    expect(page.locator(".foot")).to_have_text("3 jobs found")
    assert page.url.endswith("?queue=hay&text=needle-1")
    expect(page.get_by_role("button", name="all that match")).to_have_count(0)
    for text, found in (("needle-c", "tagged"), ("thumb", "hurt")):
        field.fill(text)
        expect(page.locator(ROWS)).to_have_text([re.compile(found)])
    field.fill("nobody")
    expect(page.locator(".empty")).to_contain_text("Nothing found")
    field.fill("needle-7")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("needle-7")


def test_a_search_goes_on_with_older_jobs(page: Page, service: Service) -> None:
    """Each call searches ten thousand; here the service is given two answers to tell."""
    for n in range(2):
        service.enqueue(id=f"older-{n}", queue="older", delay=600)
    listed = service.client.get("jobs?queue=older").json()["jobs"]

    def answer(route: Route) -> None:
        is_next = "cursor=7" in route.request.url
        jobs, cursor = (listed[1:], None) if is_next else (listed[:1], "7")
        route.fulfill(json={"jobs": jobs, "next_cursor": cursor})

    page.route(re.compile(r"/jobs\?.*text="), answer)
    page.goto(f"{service.url}ui/jobs?queue=older")
    page.get_by_role("searchbox", name="Search").fill("older")
    expect(page.locator(".foot")).to_contain_text("1 job found so far")
    page.get_by_role("button", name="Search older jobs").click()
    expect(page.locator(".foot")).to_have_text("2 jobs found")


def test_selected_jobs_are_changed_together(page: Page, service: Service) -> None:
    service.enqueue_many([{"id": f"pick-{n}", "queue": "picks", "delay": 600} for n in range(4)])
    page.goto(f"{service.url}ui/jobs?queue=picks")
    is_live(page)
    expect(page.locator(ROWS)).to_have_count(4)
    for n in (1, 3):
        page.get_by_role("checkbox", name=f"Select pick-{n}").check()
    expect(page.locator(".head")).to_contain_text("2 jobs selected")
    expect(page.get_by_role("button", name="Retry 0 selected")).to_be_disabled()
    page.get_by_role("button", name="Cancel 2 selected").click()
    expect(page.get_by_role("dialog")).to_contain_text("Cancel 2 jobs?")
    page.get_by_role("button", name="Cancel 2 jobs", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("2 jobs are cancelled")
    expect(page.locator(".badge.cancelled")).to_have_count(2)
    assert service.job("pick-0")["status"] == "scheduled"
    page.get_by_role("checkbox", name="Select all that are loaded").check()
    expect(page.locator(".head")).to_contain_text("4 jobs selected")
    page.get_by_role("button", name="Delete 2 selected").click()
    page.get_by_role("button", name="Delete 2 jobs", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("2 jobs are deleted")
    expect(page.locator(ROWS)).to_have_count(2)
    assert service.client.get("jobs/pick-1").status_code == 404
    page.get_by_role("checkbox", name="Select pick-0").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    expect(page.locator(".head")).to_contain_text("2 jobs selected")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_role("button", name="Cancel all 2 that match")).to_be_visible()


def test_without_a_filter_nothing_can_be_done_to_all(page: Page, service: Service) -> None:
    service.enqueue(id="one-of-all", delay=600)
    page.goto(f"{service.url}ui/jobs")
    expect(page.locator(ROWS).first).to_be_visible()
    expect(page.locator(".head .actions button")).to_have_count(0)


def test_a_click_is_not_lost_while_jobs_arrive(page: Page, service: Service) -> None:
    """The row stays under the pointer from the press to the release."""
    service.enqueue(id="pressed", queue="press", delay=600)
    page.goto(f"{service.url}ui/jobs?queue=press")
    is_live(page)
    row = page.locator(ROWS, has_text="pressed")
    row.hover()
    page.mouse.down()
    with page.expect_response(lambda answer: "jobs?" in answer.url and "late" in answer.text()):
        service.enqueue_many([{"id": f"late-{n}", "queue": "press", "delay": 600} for n in range(3)])
    # Why two frames: after these, what has come would have been drawn.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.mouse.up()
    expect(page.get_by_role("heading", level=1)).to_contain_text("pressed")


def test_long_ids_are_cut_in_the_middle(page: Page, service: Service) -> None:
    id = "order." + "x" * 160 + ".the-end"
    service.enqueue(id=id, queue="long", delay=600)
    page.goto(f"{service.url}ui/jobs?queue=long")
    shown = page.get_by_role("link", name=id)
    expect(shown).to_be_visible()
    head, tail = shown.locator("span").all()
    assert head.evaluate("node => node.scrollWidth > node.clientWidth"), "cut"
    assert tail.inner_text() == ".the-end"
    assert tail.evaluate("node => node.scrollWidth <= node.clientWidth + 1"), "whole"
    expect(shown).to_have_attribute("title", id)


def test_many_are_retried_and_cancelled_after_a_question(page: Page, service: Service) -> None:
    service.enqueue_many([{"id": f"bulk-{n}", "queue": "bulk", "delay": 600} for n in range(3)])
    service.enqueue(id="bulk-other", queue="bulk-other", delay=600)
    page.goto(f"{service.url}ui/jobs?queue=bulk")
    cancel = page.get_by_role("button", name="Cancel all 3 that match")
    cancel.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 3 jobs?")
    expect(dialog).to_contain_text("in queue bulk")
    dialog.get_by_role("button", name="Keep as it is").click()
    expect(dialog).to_have_count(0)
    assert service.job("bulk-1")["status"] == "scheduled"
    cancel.click()
    page.get_by_role("button", name="Cancel 3 jobs", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("3 jobs are cancelled")
    expect(page.locator(".badge.cancelled")).to_have_count(3)
    assert service.job("bulk-other")["status"] == "scheduled", "it is of another queue"
    page.get_by_role("button", name="Retry all 3 that match").click()
    page.get_by_role("button", name="Retry 3 jobs", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("3 jobs are retried")
    for n in range(3):
        service.finished(f"bulk-{n}")
    expect(page.locator(".badge.done")).to_have_count(3)


def test_who_reads_further_down_is_not_disturbed(page: Page, service: Service) -> None:
    service.enqueue_many([{"id": f"calm-{n}", "queue": "calm", "delay": 600} for n in range(90)])
    page.goto(f"{service.url}ui/jobs?queue=calm")
    is_live(page)
    expect(page.locator(ROWS).first).to_be_visible()
    page.mouse.wheel(0, 1_500)
    expect(page.locator(ROWS, has_text="calm-89")).to_have_count(0)
    row = page.locator(ROWS, has_text=re.compile("calm-50"))
    before = row.bounding_box()
    service.enqueue_many([{"id": f"new-{n}", "queue": "calm", "delay": 600} for n in range(5)])
    pill = page.get_by_role("button", name="5 new jobs")
    expect(pill).to_be_visible()
    assert row.bounding_box() == before
    pill.click()
    expect(page.locator(ROWS, has_text="new-4")).to_be_visible()


def test_ten_thousand_jobs_stay_smooth(page: Page, new_service: Callable[..., Service]) -> None:
    service = new_service("--workers", "0")
    service.enqueue_many([{"id": f"job-{n:05}", "delay": 3_600} for n in range(10_000)])
    page.goto(f"{service.url}ui/jobs")
    expect(page.locator(ROWS).first).to_be_visible()
    times: list[float] = []
    while not page.locator(ROWS, has_text="job-00000").count():
        # Why in the page: the time is that from the move of the list to the frame that shows it.
        times.append(page.evaluate(_SCROLL))
        assert page.locator(ROWS).count() < 100
    expect(page.locator(".foot")).to_have_text("10,000 jobs")
    assert median(times) < 250, "milliseconds; it takes about 30 on an idle machine"


_SCROLL = """() => new Promise((resolve) => {
    const begin = performance.now();
    scrollTo(0, document.documentElement.scrollHeight);
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - begin)));
})"""
