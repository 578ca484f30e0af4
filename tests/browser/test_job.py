"""The page of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, Route, expect

from .conftest import Service, Watcher, is_live

IS_AT_END = """() => {
    const box = document.querySelector(".log");
    return box.scrollTop > 500 && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
}"""


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
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    expect(page.locator("div.attempt")).to_contain_text("cancelled")
    expect(page.locator(".timeline .span.cancelled")).to_have_count(1)


def test_logs_come_while_it_runs(page: Page, service: Service) -> None:
    service.enqueue(id="logs", type="hold", payload={"note": "<b>page 4</b>"})
    page.goto(f"{service.url}ui/jobs/logs")
    lines = page.get_by_role("log").locator("li")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("INFO root holding <b>page 4</b>")
    expect(lines).to_contain_text(re.compile(r":\d\d\.\d{3} INFO"))
    service.let_go("logs")
    expect(lines).to_have_count(2)
    expect(lines.nth(1).locator(".level")).to_have_text("WARNING")
    # Another job of the same id is followed from its first line on.
    service.client.delete("jobs/logs").raise_for_status()
    service.enqueue(id="logs", type="hold", payload={"note": "again"})
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text("holding again")
    service.enqueue(id="silent", type="work", payload=1)
    page.goto(f"{service.url}ui/jobs/silent")
    expect(page.locator(".logs")).to_contain_text("Nothing was logged.")


def test_lines_stay_where_others_between_are_cut(page: Page, service: Service) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("after=")[2])
        line = {"attempt": 1, "at": "2026-03-01T11:00:01.25Z", "level": "INFO", "logger": "app"}
        looks = [(["1", "2", "3"], 0, 3), (["9"], 5, 9)]
        messages, cut, last = looks[len(asked) - 1] if len(asked) < 3 else ([], 5, 9)
        lines = [{**line, "message": message} for message in messages]
        route.fulfill(json={"lines": lines, "cut": cut, "last": last})

    page.route("**/jobs/between/logs**", answer)
    service.enqueue(id="between", type="hold", payload={"note": "runs"})
    page.goto(f"{service.url}ui/jobs/between")
    expect(page.get_by_role("log").locator(".message")).to_have_text(["1", "2", "3", "9"])
    expect(page.locator(".logs")).to_contain_text("5 older lines cut")
    with page.expect_request("**/jobs/between/logs?after=9"):
        service.let_go("between")
    expect(page.locator(".job-head .badge")).to_have_text("done")
    assert asked[:3] == ["0", "3", "9"]


def test_newest_line_is_in_sight_while_it_runs(page: Page, service: Service) -> None:
    service.enqueue(id="lines", type="hold", payload={"note": "line\n" * 200})
    page.goto(f"{service.url}ui/jobs/lines")
    box = page.get_by_role("log")
    expect(box.locator("li")).to_have_count(1)
    page.wait_for_function(IS_AT_END)
    service.let_go("lines")
    expect(box.locator("li")).to_have_count(2)
    page.wait_for_function(IS_AT_END)


def test_attempts_have_their_errors_folded_and_a_failed_job_is_retried(page: Page, service: Service) -> None:
    service.enqueue(id="fails", type="boom", payload="the printer is on fire")
    service.finished("fails")
    page.goto(f"{service.url}ui/jobs/fails")
    expect(page.locator(".card.bad")).to_contain_text("ValueError: the printer is on fire")
    expect(page.locator(".card.bad pre")).to_contain_text("Traceback")
    attempts = page.locator(".card", has_text="Attempts").locator("summary")
    expect(attempts).to_have_count(1)
    trace = page.locator("details pre", has_text="Traceback")
    expect(trace).to_be_hidden()
    attempts.click()
    expect(trace).to_be_visible()
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("The job runs again")
    expect(attempts).to_have_count(2)
    expect(trace.last).to_be_visible()  # what was opened stays open
    expect(page.locator(".timeline .span.failed")).to_have_count(2)
    expect(page.locator(".legend .key")).to_have_text(["waited", "failed"])


def test_the_timeline_has_a_key_for_each_of_its_colours(page: Page, service: Service) -> None:
    service.finished(service.enqueue(id="green", type="work"))
    page.goto(f"{service.url}ui/jobs/green")
    key = page.locator(".legend .key.done")
    expect(key).to_have_text("done")
    colour = "node => getComputedStyle(node).fill"
    assert page.locator(".timeline .span.done").evaluate(colour) == key.evaluate(
        "node => getComputedStyle(node, '::before').backgroundColor"
    )


def test_a_payload_is_edited_and_the_job_retried(page: Page, service: Service, watcher: Watcher) -> None:
    """By keyboard; what does not fit the type stays in the dialog, with the reason."""
    watcher.expect("422")
    service.enqueue(id="edited", type="sized", payload={"size": "big"})
    service.finished("edited")
    page.goto(f"{service.url}ui/jobs/edited")
    page.get_by_role("button", name="Edit and retry").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Payload of type sized, as JSON")
    expect(field).to_be_focused()
    expect(field).to_have_value('{\n  "size": "big"\n}')
    for text, problem in (('{"size": ', "This is not JSON"), ('{"size": 5}', "payload.size")):
        field.fill(text)
        dialog.get_by_role("button", name="Retry with this payload").click()
        expect(dialog.get_by_role("alert")).to_contain_text(problem)
    assert service.job("edited")["status"] == "failed"
    field.fill('{"size": "12345678901234567890"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("The job runs again, with the new payload")
    assert service.finished("edited")["payload"] == {"size": "12345678901234567890"}
    page.get_by_role("button", name="Edit and retry").click()
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_payload_that_is_not_edited_stays_as_it_was(page: Page, service: Service) -> None:
    payload = '{"f":1.0,"10":[-0.0,{}],"9":[],"text":"a \\"b\\", {c}: d","long":12345678901234567890.0}'
    headers = {"Content-Type": "application/json"}
    body = f'{{"id":"kept","type":"boom","payload":{payload}}}'
    assert service.client.post("enqueue", content=body, headers=headers).status_code == 202
    service.finished("kept")
    before = service.client.get("jobs/kept").text
    page.goto(f"{service.url}ui/jobs/kept")
    page.get_by_role("button", name="Edit and retry").click()
    field = page.get_by_label("Payload of type boom, as JSON")
    expect(field).to_have_value(
        re.compile(r'^{\n  "f": 1\.0,\n  "10": \[\n    -0\.0,\n    {}\n  \],\n  "9": \[\],')
    )
    page.get_by_role("button", name="Retry with this payload").click()
    expect(page.locator("#toasts")).to_contain_text("The job runs again")
    service.finished("kept")
    assert _payload(service.client.get("jobs/kept").text) == _payload(before)


def _payload(text: str) -> str:
    """As it is written."""
    return json.dumps(json.loads(text)["payload"])


def test_a_finished_job_is_deleted_after_a_question(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("404")  # the page may just be asking for it
    service.finished(service.enqueue(id="gone", type="work"))
    page.goto(f"{service.url}ui/jobs/gone")
    delete = page.get_by_role("button", name="Delete")
    delete.click()
    page.get_by_role("button", name="Keep as it is").click()
    assert service.job("gone")["status"] == "done"
    delete.click()
    page.get_by_role("button", name="Delete the job").click()
    expect(page.locator("#toasts")).to_contain_text("gone is deleted")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    assert service.client.get("jobs/gone").status_code == 404
    service.enqueue(id="stays", delay=600)
    page.goto(f"{service.url}ui/jobs/stays")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


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


def test_lengths_of_time_round_to_the_nearest(page: Page, service: Service) -> None:
    page.goto(service.url)
    lengths = {0.0456: "46 ms", 1.26: "1.3 s", 14.7: "15 s", 59.7: "1m", 119.7: "2m", 5_399: "1h 30m"}
    lengths |= {76_000: "21h 7m", 86_399: "1d", 130_000: "1d 12h"}
    # Why none near a border: the page goes by the clock of the service.
    ages = {5_000: "1h ago", 5_800: "2h ago", 76_000: "21h ago", 130_000: "2d ago"}
    words = page.evaluate(
        """async ([lengths, ages]) => {
            const time = await import(new URL("time.js", document.querySelector("script").src));
            const ago = (each) => time.relative(new Date(Date.now() - each * 1000).toISOString());
            return [lengths.map(time.duration), ages.map(ago)];
        }""",
        [list(lengths), list(ages)],
    )
    assert words == [list(lengths.values()), list(ages.values())]


def test_the_times_of_a_schedule_name_a_zone_that_is_not_that_of_the_browser(
    service: Service, new_context: Callable[..., BrowserContext]
) -> None:
    for zone, words in (("Europe/Berlin", r", 07:30:00$"), ("Asia/Tokyo", r", 07:30:00 Europe/Berlin$")):
        page = new_context(timezone_id=zone, locale="en-GB").new_page()
        page.goto(f"{service.url}ui/schedules")
        times = page.get_by_role("region", name="Schedule digest").locator(".times li")
        expect(times.last).to_have_text(re.compile(words))


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
