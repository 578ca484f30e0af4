"""What a test can say of jobs that were enqueued."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import BadInputError, Jobpipe


@dataclass
class Mail:
    to: str
    subject: str = "hello"


def test_a_part_of_the_payload_is_enough(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        receipt = pipe.enqueue_sync("email", {"to": "ada", "cc": [{"name": "bob", "age": 7}]})
        job = jobs.assert_enqueued("email", payload={"cc": [{"name": "bob"}]})
        assert (job.id, job.type, job.payload["to"]) == (receipt.id, "email", "ada")
        assert jobs.assert_enqueued("email") == job
        others: list[Any] = [{"to": "bob"}, {"bcc": "ada"}, {"cc": []}, {"cc": [{"name": "eve"}]}, [], None]
        for other in others:
            with pytest.raises(AssertionError):
                jobs.assert_enqueued("email", payload=other)


def test_a_model_is_compared_as_it_is_stored(pipe: Jobpipe) -> None:
    @pipe.job
    async def send(mail: Mail) -> None: ...

    with pipe.testing() as jobs:
        send.enqueue_sync(Mail("ada"))
        assert jobs.assert_enqueued(send, payload=Mail("ada")).payload == {"to": "ada", "subject": "hello"}
        assert jobs.of(send) == jobs.of("send") == jobs.all
        jobs.assert_not_enqueued(send, payload=Mail("ada", "bye"))


AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "id": "order-17",
    "queue": "mail",
    "max_retries": 4,
    "priority": 5,
    "deadline": 30,
    "expires_in": timedelta(hours=2),
    "delay": timedelta(hours=1),
    "unique": "ada",
    "on_duplicate": "replace",
    "max_wait": 7200,
    "tags": ["a", "b"],
}
OTHER: dict[str, Any] = {
    "id": "order-18",
    "queue": "default",
    "max_retries": 5,
    "priority": 0,
    "deadline": 31,
    "expires_in": 7201,
    "expires_at": AT,
    "delay": 0,
    "run_at": AT,
    "unique": "bob",
    "on_duplicate": "keep",
    "max_wait": timedelta(hours=1),
    "tags": ["c"],
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_option_of_enqueue_can_be_expected(pipe: Jobpipe, name: str) -> None:
    with pipe.testing(start=AT) as jobs:
        pipe.enqueue_sync("email", **GIVEN)
        jobs.assert_enqueued("email", **{name: GIVEN[name]})
        jobs.assert_not_enqueued("email", **{name: OTHER[name]})
        with pytest.raises(AssertionError, match=f"{name} is "):
            jobs.assert_enqueued("email", **{name: OTHER[name]})


def test_instants_and_durations_say_the_same(pipe: Jobpipe) -> None:
    with pipe.testing(start=AT) as jobs:
        assert jobs.now == AT
        pipe.enqueue_sync("a", delay=60, expires_in=90)
        pipe.enqueue_sync("b", run_at=AT + timedelta(minutes=1), expires_at=AT + timedelta(seconds=90))
        for type in ("a", "b"):
            jobs.assert_enqueued(type, delay=60, expires_in=90)
            jobs.assert_enqueued(
                type, run_at=AT + timedelta(minutes=1), expires_at=AT + timedelta(seconds=90)
            )
            jobs.assert_not_enqueued(type, run_at=AT)
            jobs.assert_not_enqueued(type, expires_at=AT)


def test_the_clock_begins_now_so_that_times_of_the_program_fit(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        pipe.enqueue_sync("email", run_at=jobs.now + timedelta(hours=1, seconds=0.4))
        assert abs(jobs.now - datetime.now(UTC)) < timedelta(minutes=5)
        jobs.assert_enqueued("email", delay=3600)


def test_some_of_the_tags_are_enough(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        pipe.enqueue_sync("email", tags=["a", "b"])
        jobs.assert_enqueued("email", tags=["b"])
        jobs.assert_not_enqueued("email", tags=["b", "c"])


def test_the_number_of_jobs_can_be_expected(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        for to in ("ada", "ada", "bob"):
            pipe.enqueue_sync("email", {"to": to})
        assert jobs.assert_enqueued("email", payload={"to": "ada"}, count=2) == jobs.all[0]
        with pytest.raises(AssertionError, match="was enqueued 3 times, not 2"):
            jobs.assert_enqueued("email", count=2)


def test_a_failure_lists_what_was_enqueued(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        with pytest.raises(AssertionError, match=r"a job 'email' was not enqueued\nnothing was enqueued"):
            jobs.assert_enqueued("email")
        first = pipe.enqueue_sync("email", {"to": "bob"}, delay=60, queue="mail", tags=["vip"]).id
        second = pipe.enqueue_sync("sms", "hi", priority=3, unique="bob").id
        with pytest.raises(AssertionError) as caught:
            jobs.assert_enqueued("email", payload={"to": "ada"}, delay=60)
        assert str(caught.value).splitlines() == [
            "a job 'email' with payload={'to': 'ada'}, delay=60 was not enqueued",
            "2 jobs were enqueued:",
            f"  - email payload={{'to': 'bob'}} delay=60 queue='mail' tags=['vip'] (scheduled, id {first})",
            "      payload.to is 'bob', not 'ada'",
            f"  - sms payload='hi' priority=3 unique='bob' (queued, id {second})",
        ]
        with pytest.raises(AssertionError) as caught:
            jobs.assert_not_enqueued("sms", payload="hi")
        assert str(caught.value).splitlines() == [
            "a job 'sms' with payload='hi' was enqueued",
            "1 job was enqueued:",
            f"  - sms payload='hi' priority=3 unique='bob' (queued, id {second})",
        ]


def test_a_failure_stays_readable_with_many_jobs(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        for _ in range(100):
            pipe.enqueue_sync("email", {"text": "x" * 10_000})
        with pytest.raises(AssertionError) as caught:
            jobs.assert_enqueued("sms")
        assert "and 70 more" in str(caught.value)
        assert len(str(caught.value)) < 15_000


def test_nothing_at_all_can_be_asked_for(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        jobs.assert_not_enqueued()
        pipe.enqueue_sync("sms")
        with pytest.raises(AssertionError, match="a job was enqueued"):
            jobs.assert_not_enqueued()


def test_what_cannot_be_expected_is_refused(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        pipe.enqueue_sync("email")
        with pytest.raises(BadInputError, match="quue is not a known field; did you mean 'queue'"):
            jobs.assert_enqueued("email", quue="mail")  # type: ignore[call-arg]
        with pytest.raises(BadInputError, match="type"):
            jobs.assert_enqueued(17)  # type: ignore[arg-type]
        with pytest.raises(BadInputError, match="delay"):
            jobs.assert_enqueued("email", delay=-1)


def test_a_job_in_a_transaction_counts_at_once(pipe: Jobpipe) -> None:
    """The memory store has none; what the program does with its own connection is its affair."""
    with pipe.testing() as jobs:
        pipe.enqueue_sync("email", connection=object())
        jobs.assert_enqueued("email")
