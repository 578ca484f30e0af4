"""The page of failed jobs: groups, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, expect

from .conftest import Service, is_live

_STAYS_IN_A_LINE = """node => {
    node.textContent = "9m 59s ago";
    const end = (each) => each.getBoundingClientRect().right;
    return node.getClientRects().length === 1 && end(node) <= end(node.parentElement);
}"""


def test_groups_are_live_and_lead_to_their_jobs(page: Page, new_service: Callable[..., Service]) -> None:
    service = new_service()
    page.goto(service.url)
    page.get_by_role("link", name="Failed", exact=True).click()
    is_live(page)
    expect(page.locator(".empty")).to_contain_text("No job has failed")
    for n in range(2):
        service.finished(service.enqueue(id=f"first-{n}", type="boom", payload="x"))
    service.finished(service.enqueue(id="second", type="sized", payload={"size": "x"}))
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("sized")
    expect(rows.last).to_contain_text("ValueError")
    expect(rows.last.get_by_role("link", name="first-1")).to_be_visible()
    expect(page.locator(".foot")).to_have_text("3 jobs in 2 groups")
    assert rows.first.locator("time").first.evaluate(_STAYS_IN_A_LINE)
    rows.last.get_by_role("link", name="Show 2 jobs of boom with ValueError").click()
    expect(page.locator(".rows-body .row")).to_have_count(2)
    expect(page.locator(".narrowed")).to_contain_text("Last error: ValueError")
    page.get_by_role("button", name="Delete all 2 that match").click()
    expect(page.get_by_role("dialog")).to_contain_text("with the error ValueError")
    expect(page.get_by_role("button", name="Delete 2 jobs", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Any error").click()
    expect(page.locator(".narrowed")).to_have_count(0)
    page.go_back()
    page.go_back()
    group_is_retried_and_deleted_by_keyboard(page, service)


def group_is_retried_and_deleted_by_keyboard(page: Page, service: Service) -> None:
    retry = page.get_by_role("button", name="Retry boom with ValueError")
    retry.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Retry 2 jobs?")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("2 jobs are retried")
    for n in range(2):
        service.finished(f"first-{n}")
    expect(page.locator("tbody tr").first).to_contain_text("boom")
    delete = page.get_by_role("button", name="Delete boom with ValueError")
    delete.click()
    dialog.get_by_role("button", name="Delete 2 jobs").click()
    expect(page.locator("#toasts")).to_contain_text("2 jobs are deleted")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert service.client.get("jobs/first-0").status_code == 404
    assert service.job("second")["status"] == "failed"


def test_a_bound_is_said_and_all_of_it_can_be_read_on_a_phone(
    service: Service, new_context: Callable[..., BrowserContext]
) -> None:
    page = new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).new_page()
    at = "2026-03-01T12:00:00Z"
    group = {
        "type": "a-type-with-a-very-long-name" * 3,
        "error": "AnErrorWithAVeryLongName" * 4,
        "count": 9_999,
    }
    group |= {"first_at": at, "last_at": at, "last_id": "0190-" + "x" * 60}
    page.route(
        "**/failures",
        lambda route: route.fulfill(json={"failures": [group], "counted": 10_000, "is_complete": False}),
    )
    page.goto(f"{service.url}ui/failed")
    expect(page.locator(".foot")).to_have_text("Only the 10,000 jobs that failed last are counted.")
    for button in page.locator("tbody button").all():
        box = button.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 360
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
