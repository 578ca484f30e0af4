"""What `top` knows, and how news change it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobpipe.cli.top import model
from jobpipe.cli.top.model import KEPT, Panel, begin, chosen, lost, names_of, seen, settled, ticked, told
from jobpipe.gateway.history import Past, QueuePast, TimedMoment

from .samples import NOW, failed, queue, running, snapshot, state, worker


def test_the_first_row_is_chosen_at_first() -> None:
    assert chosen(state(queues=[queue("a"), queue("b")])) == "a"
    assert chosen(state()) is None


def test_what_is_chosen_stays_chosen_while_rows_come_and_go() -> None:
    before = state(queues=[queue("b"), queue("c")])
    after = seen(before, snapshot(queues=[queue("a"), queue("b"), queue("c")]))
    assert chosen(after) == "b"
    assert after.choices[Panel.QUEUES].place == 1


def test_the_next_row_takes_the_place_of_a_chosen_one_that_is_gone() -> None:
    before = replace(
        state(failed=[failed("a", 1), failed("b", 2), failed("c", 3)]),
        panel=Panel.FAILED,
        choices={Panel.FAILED: model.Choice("b", 1)},
    )
    without_b = seen(before, snapshot(failed=[failed("a", 1), failed("c", 3)]))
    assert chosen(without_b) == "c"
    only_a = seen(without_b, snapshot(failed=[failed("a", 1)]))
    assert chosen(only_a) == "a"
    assert chosen(seen(only_a, snapshot())) is None


def test_running_jobs_begin_with_the_oldest_and_failures_with_the_latest() -> None:
    found = state(
        running=[running("new", 1), running("old", 90), running("middle", 5)],
        failed=[failed("first", 90), failed("last", 1)],
    )
    assert names_of(found, Panel.RUNNING) == ["old", "middle", "new"]
    assert names_of(found, Panel.FAILED) == ["last", "first"]


def test_the_filter_looks_at_names_of_every_kind() -> None:
    found = state(
        queues=[queue("mails"), queue("media")],
        running=[running("a", queue="mails"), running("b", type="film"), running("c-MAIL", type="x")],
        workers=[worker("host:1", "a"), worker("host:2", types=("film",)), worker("mail:3", types=())],
    )

    def filtered(text: str) -> list[list[str]]:
        return [names_of(replace(found, filter=text), panel) for panel in list(Panel)[:3]]

    assert filtered("MAIL") == [["mails"], ["a", "c-MAIL"], ["host:1", "mail:3"]]
    assert filtered("film") == [[], ["b"], ["host:2"]]
    assert filtered("nothing") == [[], [], []]


def test_rates_and_depths_are_remembered() -> None:
    found = state(
        queues=[queue("a", scheduled=1, waiting=3, queued=2)], per_second={"done": 4.0, "failed": 1.0}
    )
    found = seen(found, snapshot(queues=[queue("a", queued=1)], per_second={"done": 2.0}))
    assert found.trend.done == (4.0, 2.0)
    assert found.trend.failed == (1.0, 0.0)
    assert found.trend.pending == {"a": (6, 1)}
    for _ in range(KEPT + 1):
        found = seen(found, snapshot())
    assert len(found.trend.done) == KEPT
    assert found.trend.pending == {}, "of queues that are gone, nothing is kept"


def test_what_the_service_remembers_comes_before_what_was_seen() -> None:
    past = Past(
        moments=[TimedMoment(at=NOW, done=7.0, failed=0.5), TimedMoment(at=NOW, done=8.0)],
        queues=[
            QueuePast(name="a", pending=[5, 6], done=[0.0, 0.0]),
            QueuePast(name="gone", pending=[1], done=[0.0]),
        ],
    )
    found = begin(snapshot(queues=[queue("a", queued=7)], per_second={"done": 9.0}), past)
    assert found.trend.done == (7.0, 8.0, 9.0)
    assert found.trend.failed == (0.5, 0.0, 0.0)
    assert found.trend.pending == {"a": (5, 6, 7)}


def test_a_lost_connection_keeps_what_was_known_until_the_next_look() -> None:
    found = lost(state(queues=[queue("a")]), "no answer")
    assert found.lost == "no answer"
    assert names_of(found, Panel.QUEUES) == ["a"]
    assert seen(found, snapshot()).lost is None


def test_a_notice_goes_after_a_while() -> None:
    found = told(state(), "paused", NOW)
    assert ticked(found, NOW + timedelta(seconds=1)) == found
    assert ticked(found, NOW + timedelta(minutes=1)).notice is None
    assert ticked(state(), NOW).notice is None


def test_other_panels_keep_their_choices() -> None:
    found = state(queues=[queue("a"), queue("b")], running=[running("job")])
    found = settled(replace(found, choices={Panel.QUEUES: model.Choice("b", 1)}, panel=Panel.RUNNING))
    assert chosen(found) == "job"
    assert chosen(settled(replace(found, panel=Panel.QUEUES))) == "b"
