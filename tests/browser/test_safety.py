"""Nothing that somebody else wrote is run, and nobody gets in without the token."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import BrowserContext, Page, expect

from .conftest import Service, Watcher, is_live

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><svg onload=alert(3)>{{7*7}}${7*7}javascript:alert(4)"


def test_text_of_others_is_shown_and_not_run(page: Page, service: Service) -> None:
    """The watcher notes every dialog, script error and violation of the policy."""
    payload = {"note": EVIL, EVIL: [EVIL, {"url": "javascript:alert(5)"}]}
    service.enqueue(id="evil-run", queue="evil", type="hold", payload=payload)
    service.enqueue(id="evil-fail", queue="evil", type="boom", payload=EVIL)
    service.client.put("schedules/evil", json={"type": "work", "every": 600, "payload": payload})
    service.finished("evil-fail")
    page.goto(service.url)
    is_live(page)
    expect(page.locator(".card", has_text="Latest failures")).to_contain_text(EVIL)
    page.goto(f"{service.url}ui/jobs?queue=evil")
    expect(page.locator(".row", has_text="evil-fail")).to_contain_text(EVIL)
    expect(page.locator(".row .progress")).to_have_attribute("title", EVIL)
    page.goto(f"{service.url}ui/jobs/evil-run")
    expect(page.locator(".whole-progress")).to_contain_text(EVIL)
    page.locator("summary", has_text="Payload").click()
    expect(page.locator("details", has_text="Payload").locator("pre")).to_contain_text(
        "<script>alert(2)</script>"
    )
    service.let_go("evil-run")
    page.locator("summary", has_text="Result").click()
    expect(page.locator("details", has_text="Result").locator("pre")).to_contain_text("onerror=alert(1)")
    page.goto(f"{service.url}ui/jobs/evil-fail")
    expect(page.locator(".card.bad")).to_contain_text(EVIL)
    page.locator("details summary.attempt").click()
    expect(page.locator("details pre", has_text="Traceback")).to_contain_text(EVIL)
    page.goto(f"{service.url}ui/schedules")
    page.locator("summary", has_text="Payload").click()
    expect(page.locator("details pre")).to_contain_text("<script>alert(2)</script>")
    service.client.delete("schedules/evil")
    assert page.locator("main img, main script").count() == 0


def test_addresses_of_others_are_not_run(page: Page, service: Service, watcher: Watcher) -> None:
    watcher.expect("404", "422")
    page.goto(f"{service.url}ui/jobs/%3Cimg%20src=x%20onerror=alert(1)%3E")
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x onerror=alert(1)>")
    page.goto(f"{service.url}ui/jobs?text=%3Cscript%3Ealert(1)%3C/script%3E")
    expect(page.get_by_role("searchbox")).to_have_value("<script>alert(1)</script>")
    page.goto(f"{service.url}ui/jobs?queue=%3Csvg%20onload=alert(1)%3E")
    expect(page.locator(".empty")).to_contain_text("queue")


def test_the_policy_stops_what_is_not_ours(page: Page, service: Service, watcher: Watcher) -> None:
    """It is in force: were there a hole, it would hold."""
    watcher.expect("policy", "Policy", "TrustedHTML", "TrustedScript")
    page.goto(service.url)
    is_live(page)
    outcome = page.evaluate(
        """() => {
            const script = document.createElement("script");
            try { script.text = "window.pwned = 1"; } catch { return "trusted types"; }
            document.body.append(script);
            return String(window.pwned);
        }"""
    )
    assert outcome in ("trusted types", "undefined")
    failed = page.evaluate("fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'stopped')")
    assert failed == "stopped"


def test_a_token_is_asked_for_once_and_kept_for_the_tab(
    new_context: Callable[..., BrowserContext], new_service: Callable[..., Service], watcher: Watcher
) -> None:
    watcher.expect("401")
    service = new_service(env={"JOBPIPE_TOKEN": "s3cret", "JOBPIPE_READ_TOKEN": "l00k"})
    service.enqueue(id="t1", delay=600)
    page = new_context().new_page()
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(f"{service.url}ui/jobs/t1")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This service requires a token")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    dialog.get_by_role("textbox", name="Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("the token is wrong")
    dialog.get_by_role("textbox", name="Token").fill("s3cret")
    dialog.get_by_role("button", name="Use token").click()
    expect(page.locator(".job-head .badge")).to_have_text("scheduled")
    is_live(page)
    page.reload()
    expect(page.locator(".job-head .badge")).to_have_text("scheduled")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".job-head .badge")).to_have_text("cancelled")
    assert not [each for each in addresses if "s3cret" in each], "it goes in a header"
    page.get_by_role("button", name="Forget the token").click()
    expect(dialog).to_be_visible()


def test_a_token_for_reading_shows_all_and_changes_nothing(
    page: Page, new_service: Callable[..., Service], watcher: Watcher
) -> None:
    watcher.expect("401", "403")
    service = new_service(env={"JOBPIPE_TOKEN": "s3cret", "JOBPIPE_READ_TOKEN": "l00k"})
    service.enqueue(id="t1", delay=600)
    page.goto(f"{service.url}ui/jobs/t1")
    page.get_by_role("textbox", name="Token").fill("l00k")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".toast.bad")).to_contain_text("for reading only")
    expect(page.locator(".job-head .badge")).to_have_text("scheduled")
    page.goto(f"{service.url}docs")
    expect(page.locator("article").first).to_be_visible()
