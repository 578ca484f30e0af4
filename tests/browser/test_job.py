"""The page of a job."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from .conftest import Service, Watcher, is_live


def test_it_says_why_it_waits_and_notices_when_that_changes(page: Page, service: Service) -> None:
    service.client.post("queues/lane/pause")
    service.enqueue(id="why", queue="lane", type="work", payload={"a": [1, 2]})
    page.goto(f"{service.url}ui/jobs/why")
    reason = page.locator(".why")
    expect(reason).to_contain_text("Its queue 'lane' is paused")
    expect(page).to_have_title("why · jobpipe")
    service.client.post("queues/lane/resume")
    expect(page.locator(".job-head .badge")).to_have_text("done")
    expect(reason).to_have_count(0)
    page.locator("summary", has_text="Result").click()
    expect(page.locator("details", has_text="Result").locator("pre")).to_have_text(
        re.compile(r'{\s*"a": \[\s*1,\s*2\s*\]\s*}')
    )


def test_a_type_that_nobody_knows_is_told(page: Page, service: Service) -> None:
    service.enqueue(id="unknown-type", type="nobody-knows")
    page.goto(f"{service.url}ui/jobs/unknown-type")
    expect(page.locator(".why")).to_contain_text("No worker knows the type 'nobody-knows'")


def test_progress_moves_and_a_running_job_is_cancelled(page: Page, service: Service) -> None:
    service.enqueue(id="long", type="hold", payload={"note": "page 4 of 9"})
    page.goto(f"{service.url}ui/jobs/long")
    expect(page.locator(".whole-progress")).to_contain_text("25 % · page 4 of 9")
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".job-head .badge")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    expect(page.locator("div.attempt")).to_contain_text("cancelled")
    expect(page.locator(".timeline .span.cancelled")).to_have_count(1)


def test_attempts_have_their_errors_folded_and_a_failed_job_is_retried(page: Page, service: Service) -> None:
    service.enqueue(id="fails", type="boom", payload="the printer is on fire")
    service.finished("fails")
    page.goto(f"{service.url}ui/jobs/fails")
    expect(page.locator(".card.bad")).to_contain_text("ValueError: the printer is on fire")
    attempts = page.locator(".card", has_text="Attempts").locator("summary")
    expect(attempts).to_have_count(1)
    trace = page.locator("pre", has_text="Traceback")
    expect(trace).to_be_hidden()
    attempts.click()
    expect(trace).to_be_visible()
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("#toasts")).to_contain_text("The job runs again")
    expect(attempts).to_have_count(2)
    expect(trace.last).to_be_visible()  # what was opened stays open
    expect(page.locator(".timeline .span.failed")).to_have_count(2)


def test_an_id_is_copied(page: Page, service: Service) -> None:
    service.enqueue(id="copy-me", delay=600)
    page.goto(f"{service.url}ui/jobs/copy-me")
    page.get_by_role("button", name="Copy the id").click()
    expect(page.locator("#toasts")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "copy-me"


def test_times_are_relative_and_exact_on_hover(page: Page, service: Service) -> None:
    service.enqueue(id="timed", delay=3_700)
    page.goto(f"{service.url}ui/jobs/timed")
    due = page.locator("dd", has_text="in 1h").locator("time")
    expect(due).to_have_attribute("datetime", service.job("timed")["run_at"])
    expect(due).to_have_attribute("title", re.compile(r"\d:\d\d:\d\d"))


def test_long_numbers_stay_what_they_are(page: Page, service: Service) -> None:
    """JavaScript would make 12345678901234567168 of it."""
    service.client.post(
        "enqueue",
        content='{"id": "digits", "type": "work", "payload": {"account": 12345678901234567890}}',
        headers={"content-type": "application/json"},
    )
    page.goto(f"{service.url}ui/jobs/digits")
    expect(page.locator("details", has_text="Payload").locator("pre")).to_have_text(
        re.compile("12345678901234567890")
    )


def test_an_unknown_job_and_an_unknown_page_are_told(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("404")
    page.goto(f"{service.url}ui/jobs/nobody")
    expect(page.locator(".empty")).to_contain_text("No job has this id")
    service.enqueue(id="nobody", delay=600)
    is_live(page)
    expect(page.locator(".job-head .badge")).to_have_text("scheduled")
    answer = page.goto(f"{service.url}ui/nothing/here")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    page.get_by_role("link", name="Go to the overview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
