"""Jobs with steps: what these did, what the job waits for, and the form that sends it the signal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import BrowserContext, Locator, Page, expect

from .conftest import Service, Watcher, is_live
from .test_safety import EVIL

ROWS = ".rows-body .row"


def order(service: Service, id: str, *steps: tuple[str, Any], **payload: Any) -> None:
    """A job that runs these steps, and then waits for a signal."""
    payload = {"steps": steps or (("charge", {"id": 17}),), **payload}
    service.enqueue(id=id, type="order", payload=payload)


def shown(page: Page, service: Service, id: str, status: str) -> None:
    page.goto(f"{service.url}ui/jobs/{id}")
    expect(page.locator(".job-head .badge")).to_have_text(status)


def steps_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Steps").locator("details")


def answer(page: Page, payload: str) -> None:
    page.get_by_label("Payload, as JSON").fill(payload)
    page.get_by_role("button", name="Send signal").click()


def test_steps_are_shown_with_their_results(page: Page, service: Service) -> None:
    order(service, "st-1", ("charge", {"id": 12345678901234567890}), ("mail", None))
    shown(page, service, "st-1", "waiting")
    expect(steps_of(page)).to_have_count(2)
    first = steps_of(page).first
    expect(first.locator("summary")).to_have_text(
        re.compile(r'^charge.+:\d\d:\d\d · \d+ ms\{"id":12345678901234567890\}$')
    )
    expect(first.locator("pre")).to_be_hidden()
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(first.locator("pre")).to_have_text(re.compile(r'\{\s*"id": 12345678901234567890\s*\}'))
    expect(steps_of(page).nth(1).locator("summary")).to_contain_text("null")
    expect(page.locator(".legend .key")).to_have_text(["waited", "step"])
    expect(page.locator(".card", has_text="No attempt has ended yet.")).to_be_visible()
    service.finished(service.enqueue(id="st-none", type="work"))
    shown(page, service, "st-none", "done")
    expect(page.get_by_role("region", name="Steps")).to_have_count(0)


def test_the_form_sends_the_signal_and_the_job_goes_on(page: Page, service: Service) -> None:
    order(service, "st-2", timeout=7_200)
    shown(page, service, "st-2", "waiting")
    is_live(page)
    why = page.locator(".why")
    expect(why).to_contain_text("Waiting for a signal")
    expect(why).to_contain_text(re.compile(r"Signal: approved\. Times out: in (2h|1h 59m|1h)\."))
    expect(page.get_by_label("Signal", exact=True)).to_have_value("approved")
    answer(page, '{"address": "Main St 1", "n": 1.0}')
    expect(page.locator("#toasts")).to_contain_text("Signal approved sent")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.locator(".job-head .badge")).to_have_text("done")
    expect(steps_of(page)).to_have_count(2)
    expect(page.get_by_role("form", name="Send a signal")).to_have_count(0)
    assert '"result":{"address":"Main St 1","n":1.0}' in service.client.get("jobs/st-2").text


def test_an_empty_payload_is_null_and_the_form_is_used_by_keyboard(page: Page, service: Service) -> None:
    order(service, "st-3")
    shown(page, service, "st-3", "waiting")
    expect(page.locator(".why")).to_contain_text("No timeout.")
    expect(page.locator("dd", has_text="in 3")).to_have_count(0)  # it is not due in a thousand years
    page.get_by_label("Signal", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".job-head .badge")).to_have_text("done")
    assert service.job("st-3")["result"] is None


def test_what_is_no_json_is_refused_in_the_page(page: Page, service: Service) -> None:
    order(service, "st-4")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "/signals/" in request.url else None)
    shown(page, service, "st-4", "waiting")
    is_live(page)
    problem = page.get_by_role("form").get_by_role("alert")
    answer(page, '{"address": ')
    expect(problem).to_contain_text("This is not JSON")
    expect(page.get_by_label("Payload, as JSON")).to_have_value('{"address": ')
    for name in ("", "../cancel", "..", "a b"):
        page.get_by_label("Signal", exact=True).fill(name)
        answer(page, "1")
        expect(problem).to_contain_text("A name has up to 200 letters, digits")
    assert sent == []
    assert service.job("st-4")["status"] == "waiting"


def test_what_is_typed_stays_while_the_page_is_live(page: Page, service: Service) -> None:
    order(service, "st-5")
    shown(page, service, "st-5", "waiting")
    is_live(page)
    page.get_by_label("Signal", exact=True).fill("other")
    page.get_by_label("Payload, as JSON").fill('"half a sent')
    with page.expect_response("**/jobs/st-5/explain"), page.expect_response("**/jobs/st-5/explain"):
        service.finished(service.enqueue(type="work"))
    expect(page.get_by_label("Signal", exact=True)).to_have_value("other")
    expect(page.get_by_label("Payload, as JSON")).to_have_value('"half a sent')
    expect(page.get_by_label("Payload, as JSON")).to_be_focused()


def test_what_the_service_refuses_is_told_in_the_form(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("409", "413")
    order(service, "st-6")
    shown(page, service, "st-6", "waiting")
    problem = page.get_by_role("form").get_by_role("alert")
    name = page.get_by_label("Signal", exact=True)
    name.fill("early")
    answer(page, "1")
    expect(page.locator("#toasts")).to_contain_text("Signal early sent")
    expect(name).to_have_value("approved")
    name.fill("early")
    answer(page, "1")
    expect(page.locator("#toasts")).to_contain_text("Signal early was already sent")
    name.fill("early")
    answer(page, "2")
    expect(problem).to_contain_text("was sent before with other content")
    answer(page, f'"{"x" * 300_000}"')
    expect(problem).to_contain_text("300,002")
    assert service.job("st-6")["status"] == "waiting"


def test_a_signal_from_elsewhere_is_seen(page: Page, service: Service) -> None:
    order(service, "st-7")
    shown(page, service, "st-7", "waiting")
    is_live(page)
    service.client.post("jobs/st-7/signals/approved", json="ok").raise_for_status()
    expect(page.locator(".job-head .badge")).to_have_text("done")
    expect(steps_of(page)).to_have_count(2)


def test_a_sleep_says_until_when(page: Page, service: Service) -> None:
    service.enqueue(id="st-nap", type="nap", payload=7_000)
    shown(page, service, "st-nap", "scheduled")
    expect(page.locator(".why")).to_contain_text("Sleeping")
    expect(page.locator(".why")).to_contain_text("It sleeps ('siesta') until")
    expect(page.locator(".why")).to_contain_text(re.compile(r"Until: in (2h|1h)"))
    expect(page.get_by_role("form", name="Send a signal")).to_have_count(0)
    expect(steps_of(page)).to_have_count(1)


def test_waiting_is_a_filter_a_number_and_a_column(page: Page, service: Service) -> None:
    service.client.post("jobs/cancel", json={"queue": "orders"})
    order(service, "st-w1", timeout=7_200)
    order(service, "st-w2")
    page.goto(f"{service.url}ui/jobs?queue=orders")
    chip = page.get_by_role("group", name="Status").get_by_role("link", name=re.compile("^waiting"))
    expect(chip).to_have_text("waiting2")
    chip.click()
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator(ROWS, has_text="st-w1")).to_contain_text(
        re.compile("for a signal, times out in [12]h")
    )
    expect(page.locator(ROWS, has_text="st-w2").locator(".what")).to_have_text("for a signal")
    expect(page.get_by_role("button", name="Cancel all 2 that match")).to_be_enabled()
    page.goto(service.url)
    expect(page.locator(".tile", has_text="Pending")).to_contain_text(re.compile("[2-9] waiting"))
    row = page.locator("tr", has_text="orders")
    cell = row.get_by_role("link", name="Show 2 waiting jobs of orders")
    expect(cell).to_have_text("2")
    cell.click()
    expect(page).to_have_url(f"{service.url}ui/jobs?queue=orders&status=waiting")


def test_the_colour_of_waiting_is_its_own_in_light_and_dark(
    service: Service, new_context: Callable[..., BrowserContext]
) -> None:
    order(service, "st-c")
    for scheme in ("light", "dark"):
        page = new_context(color_scheme=scheme).new_page()
        page.goto(f"{service.url}ui/jobs?queue=orders")
        dots = page.locator(".chip-name:not([class='chip-name '])")
        expect(dots).to_have_count(8)
        colours = dots.evaluate_all(
            "nodes => nodes.map((node) => getComputedStyle(node, '::before').backgroundColor)"
        )
        names = dots.all_inner_texts()
        own = colours[names.index("waiting")]
        assert colours.count(own) == 1
        badge = page.locator(ROWS, has_text="st-c").locator(".badge")
        expect(badge).to_have_css("color", own)


def test_a_retry_keeps_the_steps_and_one_from_the_start_drops_them(page: Page, service: Service) -> None:
    order(service, "st-8", ("charge", 1))
    shown(page, service, "st-8", "waiting")
    is_live(page)
    answer(page, '"refuse"')
    expect(page.locator(".job-head .badge")).to_have_text("failed")
    expect(steps_of(page)).to_have_count(2)
    charged = service.job("st-8")["steps"][0]
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("The job runs again")
    expect(page.locator("summary .run.failed")).to_have_count(2)
    assert service.job("st-8")["steps"][0] == charged
    again = page.get_by_role("button", name="Retry from the start")
    again.click()
    page.get_by_role("button", name="Keep as it is").click()
    assert service.job("st-8")["status"] == "failed"
    again.click()
    expect(page.get_by_role("dialog")).to_contain_text("All steps run again")
    page.get_by_role("button", name="Run all steps again").click()
    expect(page.locator("#toasts")).to_contain_text("from the start")
    expect(page.locator(".job-head .badge")).to_have_text("waiting")
    expect(steps_of(page)).to_have_count(1)
    assert service.job("st-8")["steps"][0]["ended_at"] > charged["ended_at"]
    answer(page, '"fine"')
    expect(page.locator(".job-head .badge")).to_have_text("done")


def test_a_retry_from_the_start_is_offered_only_where_there_are_steps(page: Page, service: Service) -> None:
    service.finished(service.enqueue(id="st-9", type="boom", payload="x"))
    shown(page, service, "st-9", "failed")
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Retry from the start")).to_have_count(0)
    order(service, "st-10")
    shown(page, service, "st-10", "waiting")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Edit and retry").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the job runs from the start: its finished steps run again")
    field = dialog.get_by_label("Payload of type order, as JSON")
    field.fill('{"steps": [["other", 2]]}')
    page.get_by_role("button", name="Retry with this payload").click()
    expect(page.locator(".job-head .badge")).to_have_text("waiting")
    expect(steps_of(page).locator("summary")).to_have_text([re.compile("^other")])


def test_a_long_result_is_cut_and_shown_whole_when_asked_for(page: Page, service: Service) -> None:
    order(service, "st-11", ("short", 1), ("long", {"text": "x" * 9_000 + " the end"}))
    shown(page, service, "st-11", "waiting")
    long = steps_of(page).nth(1)
    long.locator("summary").click()
    expect(long).to_contain_text("This is only the beginning of the result.")
    expect(long.locator("pre")).to_have_text(re.compile(r'^\{"text":"x+$'))
    long.get_by_role("button", name="Show the whole result of long").click()
    expect(long.locator("pre")).to_contain_text("xxx the end")
    expect(long).not_to_contain_text("only the beginning")
    answer(page, "1")
    expect(steps_of(page)).to_have_count(3)
    expect(long.locator("pre")).to_contain_text("xxx the end")  # also when there is news


def test_more_steps_than_come_with_the_job_are_turned_over(page: Page, service: Service) -> None:
    order(service, "st-12", *((f"page-{n}", n) for n in range(130)))
    shown(page, service, "st-12", "waiting")
    is_live(page)
    card = page.get_by_role("region", name="Steps")
    expect(steps_of(page)).to_have_count(50)
    expect(card).to_contain_text("the first 50")
    more = page.get_by_role("button", name="Show more steps")
    more.click()
    expect(steps_of(page)).to_have_count(100)
    more.click()
    expect(steps_of(page)).to_have_count(130)
    expect(card).to_contain_text("130 steps")
    expect(more).to_have_count(0)
    assert [each.partition("\n")[0] for each in card.locator("summary > :first-child").all_inner_texts()] == [
        f"page-{n}" for n in range(130)
    ]
    answer(page, "1")
    expect(steps_of(page)).to_have_count(131)


def test_results_of_steps_are_shown_as_text(page: Page, service: Service) -> None:
    """The watcher notes every dialog, script error and violation of the policy."""
    order(service, "st-evil", ("evil", {EVIL: [EVIL]}), ("cut", EVIL * 200))
    shown(page, service, "st-evil", "waiting")
    first = steps_of(page).first
    expect(first.locator("summary")).to_contain_text("<img src=x")
    first.locator("summary").click()
    expect(first.locator("pre")).to_contain_text("<script>alert(2)</script>")
    cut = steps_of(page).nth(1)
    cut.locator("summary").click()
    expect(cut.locator("pre")).to_contain_text("onerror=alert(1)")
    cut.get_by_role("button", name="Show the whole result").click()
    expect(cut).not_to_contain_text("only the beginning")
    answer(page, EVIL)
    expect(page.get_by_role("form").get_by_role("alert")).to_contain_text("<img src=x")
    assert page.locator("main img, main script").count() == 0
