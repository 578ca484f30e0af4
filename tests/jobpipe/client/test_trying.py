"""How often a call is sent, driven by hand: no clock and no network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from jobpipe import (
    BadInputError,
    ForbiddenError,
    Job,
    JobConflictError,
    JobNotFoundError,
    JobpipeError,
    QueueFullError,
    StoppingError,
    StoreAwayError,
    UnauthorizedError,
    UnreachableError,
    WrongStatusError,
)
from jobpipe import errors as own
from jobpipe.client import verbs
from jobpipe.client.call import Answer, Attempt, Failure, Pause, Verb
from jobpipe.client.refusals import KINDS
from jobpipe.client.trying import Trying
from jobpipe.model.request import JobRequest
from jobpipe.web import problems

URL = "http://jobs.internal"
LOST = Failure("cut off", may_have_arrived=True)
AWAY = Failure("refused", may_have_arrived=False)
IN = Answer(202, {}, b'{"id": "a", "status": "queued"}')


def refusal(error: Exception, **headers: str) -> Answer:
    """What the service answers to an error."""
    response = problems.answer(error, {"method": "GET", "path": "/"})
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(response.status_code, dict(response.headers) | given, bytes(response.body))


def full(needed: int = 1, **headers: str) -> Answer:
    return refusal(QueueFullError("mail", waiting=9, needed=needed, capacity=9), **headers)


@dataclass
class Network:
    """Gives the answers, one an attempt, and counts the seconds."""

    answers: list[Answer | Failure]
    patience: float = 30.0
    has_retries: bool = True
    now: float = 0.0
    each: float = 0.0
    """Seconds that an attempt takes."""
    sent: list[Attempt] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def run(self, verb: Verb[Any]) -> Any:
        trying = Trying(
            url=URL,
            patience=self.patience,
            has_retries=self.has_retries,
            now=lambda: self.now,
            jitter=lambda: 1.0,
        )
        steps = trying.run(verb)
        came: Answer | Failure | None = None
        answers: Iterator[Answer | Failure] = iter(self.answers)
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                return end.value
            if isinstance(step, Pause):
                self.pauses.append(step.seconds)
                self.now += step.seconds
                came = None
            else:
                self.sent.append(step)
                self.now += self.each
                came = next(answers)


def test_a_lost_answer_is_asked_for_again_with_the_same_id() -> None:
    network = Network([LOST, AWAY, IN])
    network.run(verbs.enqueue("echo", 1))
    bodies = [attempt.call.body for attempt in network.sent]
    assert len(set(bodies)) == 1
    assert len(network.sent) == 3
    assert msgspec.json.decode(bodies[0] or b"")["id"]
    assert network.pauses == [0.1, 0.2]


def test_a_request_is_enqueued_with_the_options_added() -> None:
    network = Network([IN])
    network.run(verbs.enqueue(JobRequest(type="email", payload=1, priority=5), delay=3, id="a"))
    sent = msgspec.json.decode(network.sent[0].call.body or b"")
    assert sent == {"type": "email", "payload": 1, "priority": 5, "delay": 3.0, "id": "a"}
    with pytest.raises(BadInputError, match="payload is part of the request"):
        network.run(verbs.enqueue(JobRequest(type="email"), 1))


def test_the_job_of_a_made_id_is_new_though_the_service_knows_it_by_now() -> None:
    network = Network([])

    class Echo(list[Any]):
        def __iter__(self) -> Iterator[Answer | Failure]:
            yield LOST
            id = msgspec.json.decode(network.sent[0].call.body or b"")["id"]
            yield Answer(200, {}, msgspec.json.encode({"id": id, "status": "done", "payload": None}))

    network.answers = Echo()
    receipt = network.run(verbs.enqueue("echo"))
    assert receipt.is_new
    again = Network([Answer(200, {}, b'{"id": "a", "status": "done"}')]).run(verbs.enqueue("echo", id="a"))
    assert not again.is_new


@pytest.mark.parametrize(
    "verb",
    [
        lambda: verbs.retry("a"),
        lambda: verbs.run_schedule("s"),
        lambda: verbs.cancel("a"),
        lambda: verbs.cancel_many(all=True),
        lambda: verbs.delete_many(all=True),
        lambda: verbs.pause("q"),
        lambda: verbs.drop_schedule("s"),
    ],
)
def test_what_changes_more_than_a_new_job_is_sent_once(verb: Any) -> None:
    for failure in (LOST, AWAY, full(), refusal(StoppingError())):
        network = Network([failure])
        with pytest.raises(JobpipeError):
            network.run(verb())
        assert len(network.sent) == 1


def test_a_duplicate_that_changes_another_job_is_sent_once() -> None:
    request: Any = msgspec.defstruct(
        "Request", [("on_duplicate", str), ("payload", Any, None)], frozen=True, kw_only=True
    )
    for value, is_repeatable in (("keep", True), ("replace", False), ("restart", False)):
        assert verbs._is_repeatable(request(on_duplicate=value)) is is_repeatable
    assert verbs._is_repeatable(JobRequest())


def test_a_full_queue_is_asked_again_when_it_says_so() -> None:
    network = Network([full(retry_after="7"), IN])
    network.run(verbs.enqueue("echo"))
    assert network.pauses == [7.1]


def test_patience_ends_and_what_was_met_is_raised() -> None:
    network = Network([full(retry_after="12")] * 9)
    with pytest.raises(QueueFullError, match="queue 'mail' is full") as caught:
        network.run(verbs.enqueue("echo"))
    assert (caught.value.queue, caught.value.waiting, caught.value.needed, caught.value.capacity) == (
        "mail",
        9,
        1,
        9,
    )
    assert len(network.pauses) == 2
    assert network.now < 30


def test_attempts_end_within_the_patience() -> None:
    network = Network([LOST] * 99, each=10.0)
    with pytest.raises(UnreachableError, match="cut off") as caught:
        network.run(verbs.get("a"))
    assert caught.value.may_have_arrived
    assert len(network.sent) == 3
    assert all(attempt.timeout <= 10 for attempt in network.sent)
    assert network.now <= 31


def test_one_that_never_fits_is_not_tried_again() -> None:
    network = Network([full(needed=10)])
    with pytest.raises(QueueFullError):
        network.run(verbs.enqueue_many([JobRequest(type="echo")] * 10))
    assert not network.pauses


def test_without_retries_every_call_is_sent_once_with_all_the_patience() -> None:
    network = Network([AWAY], has_retries=False)
    with pytest.raises(UnreachableError) as caught:
        network.run(verbs.get("a"))
    assert not caught.value.may_have_arrived
    assert [attempt.timeout for attempt in network.sent] == [30.0]


def test_a_long_wait_is_several_calls_and_ends_with_the_job() -> None:
    job = {"id": "a", "type": "echo", "queue": "q", "run_at": "2030-01-01T00:00:00Z"}
    waiting = msgspec.json.encode({**job, "status": "queued", "created_at": "2030-01-01T00:00:00Z"})
    done = waiting.replace(b"queued", b"done")
    network = Network([Answer(200, {}, waiting), Answer(200, {}, waiting), Answer(200, {}, done)])
    found: Job = network.run(verbs.wait("a", 1_000))
    assert found.status == "done"
    assert [attempt.call.seconds for attempt in network.sent] == [60.0] * 3
    assert all(attempt.timeout > attempt.call.seconds for attempt in network.sent)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (problems.NoTokenError("no"), UnauthorizedError),
        (problems.TooManyWrongTokensError("no"), UnauthorizedError),
        (problems.ReadOnlyTokenError("no"), ForbiddenError),
        (problems.ForeignCallerError("no"), ForbiddenError),
        (problems.NotReadyError("no"), UnreachableError),
        (problems.NoSuchPathError("no"), JobpipeError),
        (RuntimeError("no"), JobpipeError),
        (JobNotFoundError("a"), JobNotFoundError),
        (JobConflictError("a"), JobConflictError),
        (WrongStatusError("a", "done", "be retried"), WrongStatusError),
        (StoreAwayError("away"), StoreAwayError),
        (StoppingError(), StoppingError),
        (BadInputError("delay", "is wrong"), BadInputError),
    ],
)
def test_an_error_of_the_service_is_the_same_error_here(error: Exception, kind: type[JobpipeError]) -> None:
    with pytest.raises(kind) as caught:
        Network([refusal(error)], has_retries=False).run(verbs.get("a"))
    assert type(caught.value) is kind
    if kind is type(error) and kind is not StoreAwayError:
        assert str(caught.value) == str(error)
        assert vars(caught.value) == vars(error)


def test_every_error_of_the_service_has_its_class() -> None:
    shared = {kind for kind in problems.KINDS if kind.__module__ == own.__name__}
    assert {problems.KINDS[kind].slug: kind for kind in shared} == KINDS


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_is_no_jobpipe_service_is_told(status: int) -> None:
    with pytest.raises(JobpipeError, match=f"answered {status}: is it a jobpipe service"):
        Network([Answer(status, {}, b"<h1>Welcome</h1>")]).run(verbs.get("a"))
    with pytest.raises(JobpipeError, match="is not a jobpipe service"):
        Network([Answer(200, {}, b"<h1>Welcome</h1>")]).run(verbs.get("a"))


def test_a_proxy_that_has_no_service_is_asked_again() -> None:
    network = Network([Answer(502, {}, b"Bad Gateway"), IN])
    assert network.run(verbs.enqueue("echo")).id == "a"


@pytest.mark.parametrize(
    ("verb", "field"),
    [
        (lambda: verbs.enqueue("no name"), "type"),
        (lambda: verbs.enqueue("echo", float("nan")), "payload"),
        (lambda: verbs.enqueue("echo", delay=-1), "delay"),
        (lambda: verbs.enqueue_many([JobRequest(), JobRequest(payload="\0")]), "jobs[1].payload"),
        (lambda: verbs.page(status="nosuch"), "status"),
        (lambda: verbs.cancel_many(queue="a b"), "queue"),
        (lambda: verbs.cancel_many(), "all"),
        (lambda: verbs.delete_many(all=True, type="a"), "all"),
        (lambda: verbs.page(text=""), "text"),
        (lambda: verbs.retry("a", payload=float("nan")), "payload"),
        (lambda: verbs.wait("a", -1), "timeout"),
        (lambda: verbs.get(1), "id"),  # type: ignore[arg-type]
        (lambda: verbs.put_schedule("s", {}), "request"),  # type: ignore[arg-type]
    ],
)
def test_what_no_service_takes_is_not_sent(verb: Any, field: str) -> None:
    network = Network([])
    with pytest.raises(BadInputError) as caught:
        network.run(verb())
    assert caught.value.field == field
    assert not network.sent
