"""Which processes accept connections, step by step."""

from __future__ import annotations

from jobpipe.process.acceptors import Acceptor, State, update


def states(acceptors: list[Acceptor]) -> list[State]:
    return [acceptor.state for acceptor in acceptors]


def test_while_none_is_ready_one_accepts() -> None:
    acceptors = [Acceptor(), Acceptor()]
    assert update(acceptors, 0) == [acceptors[0]]
    assert states(acceptors) == [State.OPEN, State.CLOSED]
    assert update(acceptors, 0) == []


def test_ready_process_opens_only_after_the_other_has_closed() -> None:
    acceptors = [Acceptor(state=State.OPEN), Acceptor(is_ready=True)]
    assert update(acceptors, 0) == [acceptors[0]]
    assert update(acceptors, 0) == []
    assert states(acceptors) == [State.CLOSING, State.CLOSED]
    acceptors[0].state = State.CLOSED
    assert update(acceptors, 0) == [acceptors[1]]
    acceptors[0].is_ready = True
    assert update(acceptors, 0) == [acceptors[0]]
    assert states(acceptors) == [State.OPEN, State.OPEN]


def test_stuck_process_does_not_keep_the_others_closed() -> None:
    acceptors = [Acceptor(state=State.OPEN), Acceptor(is_ready=True)]
    update(acceptors, 0)
    assert update(acceptors, acceptors[0].awaited_until) == [acceptors[1]]


def test_last_one_stays_open_when_it_is_no_longer_ready() -> None:
    acceptors = [Acceptor(state=State.OPEN), Acceptor()]
    assert update(acceptors, 0) == []
    assert update([acceptors[1]], 0) == [acceptors[1]]  # the first has ended


def test_process_that_closed_for_one_that_died_opens_again() -> None:
    acceptors = [Acceptor(state=State.OPEN), Acceptor(is_ready=True)]
    update(acceptors, 0)
    acceptors.pop()
    assert update(acceptors, 0) == []
    acceptors[0].state = State.CLOSED
    assert update(acceptors, 0) == acceptors
