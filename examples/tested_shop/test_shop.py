"""The tests of the shop: `pytest` in this folder runs them, without a service and without waiting."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import shop
from shop import mailer, pay, pipe, place_order, send_email

from jobpipe.testing import JobpipeTesting, JobTester


@pytest.fixture
def jobs(jobpipe_testing: JobpipeTesting) -> Iterator[JobTester]:
    yield jobpipe_testing(pipe, start=datetime(2026, 3, 1, 12, tzinfo=UTC))
    mailer.sent.clear()
    mailer.is_down = False
    with shop.db:
        shop.db.execute("DELETE FROM orders")
        shop.db.execute("DELETE FROM payments")


def test_an_order_enqueues_a_payment_a_mail_and_a_reminder(jobs: JobTester) -> None:
    place_order("o1", "ada@example.org")
    jobs.assert_enqueued("pay", payload="o1")
    jobs.assert_enqueued(send_email, payload={"to": "ada@example.org"}, queue="mail", tags=["order"])
    jobs.assert_enqueued("remind", delay=86_400)
    jobs.assert_not_enqueued("sms")


def test_the_buyer_is_thanked_and_reminded(jobs: JobTester) -> None:
    place_order("o1", "ada@example.org")
    assert [job.status for job in jobs.drain_sync()] == ["done", "done"]
    jobs.advance_sync("23 hours")
    assert [text for to, text in mailer.sent if to != "boss@example.org"] == ["Thanks for o1"]
    jobs.advance_sync("1 hour")
    assert mailer.sent[-1] == ("ada@example.org", "How is o1?")


def test_a_mail_is_sent_when_the_server_is_back(jobs: JobTester) -> None:
    mailer.is_down = True
    send_email.enqueue_sync({"to": "ada@example.org", "text": "hi"})
    (job,) = jobs.drain_sync()
    assert job.status == "scheduled"
    assert job.error is not None
    assert job.error.type == "ConnectionError"
    mailer.is_down = False
    jobs.advance_sync("1 hour")
    assert mailer.sent == [("ada@example.org", "hi")]


def test_the_report_is_made_each_night(jobs: JobTester) -> None:
    jobs.advance_sync("3 days")
    assert mailer.sent == [("boss@example.org", "the report")] * 3


def test_a_payment_is_made_once_wherever_a_process_dies(jobs: JobTester) -> None:
    def forget() -> None:
        with shop.db:
            shop.db.execute("DELETE FROM payments")

    def check() -> None:
        assert shop.payments("o1") == 1

    jobs.crash_everywhere_sync(pay, "o1", check=check, setup=forget)


def test_one_handler_alone(jobs: JobTester) -> None:
    assert jobs.run_sync(pay, "o1") == 1
    mailer.is_down = True
    with pytest.raises(ConnectionError):
        jobs.run_sync(send_email, "ada@example.org", text="hi")
    mailer.is_down = False
    asyncio.run(send_email("ada@example.org", "called as the function that it is"))
    assert len(mailer.sent) == 1
