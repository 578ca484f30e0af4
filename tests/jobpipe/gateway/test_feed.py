"""The feed tells who listens what happens, also in other handles of the store, and survives what goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from queue import Empty, Queue

import pytest

from jobpipe.errors import StoreAwayError
from jobpipe.gateway.feed import Feed
from jobpipe.model.job import JobStatus
from jobpipe.stores import open_store
from jobpipe.stores.base import JobEvent, News, Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing import new_job
from jobpipe.testing.tools import finish, put, take_one

from ...support.waiting import LIMIT


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        store.migrate()
        yield store


@pytest.fixture
def feed(store: Store) -> Iterator[Feed]:
    with closing(Feed(store)) as feed:
        yield feed


def ears() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("jobpipe-feed")]


class Inbox:
    """Events as they come in; reading waits for them."""

    def __init__(self) -> None:
        self._queue: Queue[JobEvent] = Queue()

    def __call__(self, events: list[JobEvent]) -> None:
        for event in events:
            self._queue.put(event)

    def read(self, count: int) -> list[tuple[str, JobStatus]]:
        events = [self._queue.get(timeout=LIMIT) for _ in range(count)]
        return [(event.id, event.status) for event in events]

    def is_empty(self) -> bool:
        try:
            self._queue.get_nowait()
        except Empty:
            return True
        return False


def test_every_change_of_a_status_is_told_in_order(store: Store, feed: Feed) -> None:
    inbox = Inbox()
    feed.subscribe(inbox)
    put(store, new_job("a"), new_job("b", delay=3600))
    finish(store, take_one(store))
    assert inbox.read(4) == [
        ("a", JobStatus.QUEUED),
        ("b", JobStatus.SCHEDULED),
        ("a", JobStatus.RUNNING),
        ("a", JobStatus.DONE),
    ]


def test_what_was_before_is_not_told(store: Store, feed: Feed) -> None:
    put(store, new_job("before"))
    inbox = Inbox()
    feed.subscribe(inbox)
    put(store, new_job("after"))
    assert inbox.read(1) == [("after", JobStatus.QUEUED)]


def test_what_happened_while_nobody_subscribed_is_not_told(store: Store, feed: Feed) -> None:
    leave = feed.subscribe(Inbox())
    leave()
    put(store, new_job("between"))
    inbox = Inbox()
    feed.subscribe(inbox)
    put(store, new_job("after"))
    assert inbox.read(1) == [("after", JobStatus.QUEUED)]


def test_a_listener_learns_that_something_changed(store: Store, feed: Feed) -> None:
    changed = threading.Event()
    feed.listen(News.WORK, changed.set)
    changed.clear()
    put(store, new_job("a"))
    assert changed.wait(LIMIT)


def test_who_has_left_hears_no_more(store: Store, feed: Feed) -> None:
    gone, there = Inbox(), Inbox()
    leave = feed.subscribe(gone)
    feed.subscribe(there)
    leave()
    leave()
    put(store, new_job("a"))
    assert there.read(1) == [("a", JobStatus.QUEUED)]
    assert gone.is_empty()


def test_many_events_at_once_are_all_told(store: Store, feed: Feed) -> None:
    inbox = Inbox()
    feed.subscribe(inbox)
    put(store, *(new_job(f"j{number}") for number in range(900)))
    assert inbox.read(900) == [(f"j{number}", JobStatus.QUEUED) for number in range(900)]


def test_who_can_wait_is_told_no_more_for_so_long(store: Store, feed: Feed) -> None:
    told: Queue[tuple[list[str], float]] = Queue()
    feed.subscribe(lambda events: told.put(([event.id for event in events], time.monotonic())), rest=0.2)
    put(store, new_job("a"))
    first, first_at = told.get(timeout=LIMIT)
    put(store, new_job("b"))
    put(store, new_job("c"))
    second, second_at = told.get(timeout=LIMIT)
    while len(first + second) < 3:
        second += told.get(timeout=LIMIT)[0]
    assert first + second == ["a", "b", "c"]
    assert second_at - first_at >= 0.2


def test_nobody_waits_if_one_cannot(store: Store, feed: Feed) -> None:
    inbox = Inbox()
    feed.subscribe(Inbox(), rest=3600)
    feed.subscribe(inbox)
    for id in ("a", "b", "c"):
        put(store, new_job(id))
        assert inbox.read(1) == [(id, JobStatus.QUEUED)]


def test_a_feed_that_rests_can_be_closed(store: Store) -> None:
    inbox = Inbox()
    with closing(Feed(store)) as feed:
        feed.subscribe(inbox, rest=3600)
        put(store, new_job("a"))
        inbox.read(1)


def test_changes_of_another_process_are_told_too(sqlite_url: str) -> None:
    with closing(open_store(sqlite_url)) as mine, closing(open_store(sqlite_url)) as other:
        mine.migrate()
        with closing(Feed(mine)) as feed:
            inbox = Inbox()
            feed.subscribe(inbox)
            put(other, new_job("a"))
            assert inbox.read(1) == [("a", JobStatus.QUEUED)]


@pytest.mark.parametrize(
    "join", [Feed.subscribe, *(partial(Feed.listen, news=news) for news in News)], ids=["events", *News]
)
def test_a_listener_that_raises_spoils_it_for_nobody(
    store: Store, feed: Feed, join: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    raised = threading.Event()

    def bad(*_: object) -> None:
        raised.set()
        raise RuntimeError("the loop is closed")

    inbox = Inbox()
    join(feed, on_news=bad) if isinstance(join, partial) else join(feed, bad)
    feed.subscribe(inbox)
    put(store, new_job("a"))
    assert raised.wait(LIMIT)
    assert inbox.read(1) == [("a", JobStatus.QUEUED)]
    put(store, new_job("b"))
    assert inbox.read(1) == [("b", JobStatus.QUEUED)]
    feed.close()  # all is told, and logged
    assert "the loop is closed" in caplog.text


class Moody(MemoryStore):
    """A store that is away now and then."""

    is_away = False
    asked: threading.Semaphore

    def events(self, after: int, limit: int) -> list[JobEvent]:
        if self.is_away:
            self.asked.release()
            raise StoreAwayError("it is away")
        return super().events(after, limit)


def test_it_waits_for_a_store_that_is_away_with_one_line_and_misses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Moody()
    store.asked = threading.Semaphore(0)
    inbox = Inbox()
    with closing(Feed(store)) as feed:
        feed.subscribe(inbox)
        store.is_away = True
        put(store, new_job("a"))
        assert store.asked.acquire(timeout=LIMIT)
        put(store, new_job("b"))
        assert store.asked.acquire(timeout=LIMIT)
        store.is_away = False
        assert inbox.read(2) == [("a", JobStatus.QUEUED), ("b", JobStatus.QUEUED)]
    assert caplog.text.count("waits for the store") == 1


class Gated(MemoryStore):
    """Its answers to who asks for events come late."""

    asked, may_answer = threading.Event(), threading.Event()

    def events(self, after: int, limit: int) -> list[JobEvent]:
        found = super().events(after, limit)
        if found:
            self.asked.set()
            assert self.may_answer.wait(LIMIT)
        return found


def test_who_subscribes_while_events_are_read_for_another_who_leaves_misses_none() -> None:
    store = Gated()
    old, new = Inbox(), Inbox()
    with closing(Feed(store)) as feed:
        leave = feed.subscribe(old)
        put(store, new_job("a"))
        assert store.asked.wait(LIMIT)
        leave()
        feed.subscribe(new)
        put(store, new_job("b"))
        store.may_answer.set()
        assert new.read(1) == [("b", JobStatus.QUEUED)]
        assert old.is_empty()


def test_a_closed_feed_has_no_thread_and_takes_no_harm_from_another_close(store: Store) -> None:
    feed = Feed(store)
    leave = feed.subscribe(Inbox())
    feed.close()
    feed.close()
    leave()
    feed.subscribe(Inbox())
    assert not ears()


def test_nothing_runs_before_the_first_listener(store: Store) -> None:
    with closing(Feed(store)):
        assert not ears()


def test_there_is_an_ear_for_what_is_listened_to_and_none_when_all_have_left(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ear costs a connection, and who makes changes has to tell it."""
    monkeypatch.setattr("jobpipe.gateway.feed._LINGER", 0.0)
    with closing(Feed(store)) as feed:
        for _ in range(2):
            leave = feed.subscribe(Inbox()), feed.subscribe(Inbox())
            (ear,) = ears()
            assert ear.name == "jobpipe-feed-changes"
            for each in leave:
                each()
            ear.join(LIMIT)
            assert not ears()
        feed.listen(News.WORK, lambda: None)
        assert [each.name for each in ears()] == ["jobpipe-feed-work"]


def test_it_can_be_closed_by_one_of_its_listeners(store: Store) -> None:
    feed = Feed(store)
    closed = threading.Event()

    def close(_: list[JobEvent]) -> None:
        feed.close()
        closed.set()

    feed.subscribe(close)
    put(store, new_job("a"))
    assert closed.wait(LIMIT)
