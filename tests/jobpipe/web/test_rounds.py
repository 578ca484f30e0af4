"""Rounds share their bytes, keep to their share of the time, and are late only so much; the time is a manual one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from jobpipe.web.sse.piece import LARGEST_PIECE, EventsPiece, Frame, pieces_of
from jobpipe.web.sse.rounds import LONGEST_ROUND, LONGEST_TURN, MOST_GATHERED, SHARE, Rounds


@dataclass(eq=False)
class Timer:
    """Something that is called later."""

    at: float
    callback: Callable[[], None]
    others: list[Timer]

    def cancel(self) -> None:
        if self in self.others:
            self.others.remove(self)


class Time:
    """A clock, and what is to be called when."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent = 0.0
        """By those who work."""
        self.timers: list[Timer] = []

    def clock(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.spent += seconds

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.now + delay, callback, self.timers)
        self.timers.append(timer)
        return timer

    def pass_until(self, at: float) -> None:
        while due := [timer for timer in self.timers if timer.at <= at]:
            first = min(due, key=lambda timer: timer.at)
            self.timers.remove(first)
            self.now = max(self.now, first.at)
            first.callback()
        self.now = max(self.now, at)


@pytest.fixture
def manual() -> Time:
    return Time()


class Taker:
    """Needs so long for each piece, and keeps what it got, and when."""

    def __init__(self, time: Time, cost: float = 0.0) -> None:
        self.time = time
        self.cost = cost
        self.pieces: list[EventsPiece] = []
        self.told_at: dict[int, float] = {}

    def take(self, piece: EventsPiece) -> None:
        self.time.work(self.cost)
        self.pieces.append(piece)
        for number in range(piece.first, piece.last + 1):
            assert number not in self.told_at
            self.told_at[number] = self.time.now

    @property
    def numbers(self) -> list[int]:
        return list(self.told_at)


def events(first: int, number: int = 1, size: int = 10) -> list[Frame]:
    return [(each, b"%*d" % (size, each)) for each in range(first, first + number)]


def rounds_of(time: Time, takers: list[Taker] | set[Taker]) -> Rounds:
    return Rounds(takers, time.clock, time.call_later)


def test_what_happens_after_a_silence_is_told_at_once(manual: Time) -> None:
    takers = [Taker(manual) for _ in range(3)]
    rounds = rounds_of(manual, takers)
    for number in (1, 2, 3):
        rounds.gather(events(number))
        assert all(taker.numbers[-1] == number for taker in takers)
        manual.pass_until(manual.now + 10)
    assert not manual.timers


def test_what_happens_during_the_rest_is_told_together_and_is_the_same_to_all(manual: Time) -> None:
    takers = [Taker(manual, cost=0.001) for _ in range(3)]
    rounds = rounds_of(manual, takers)
    for number in range(1, 6):
        rounds.gather(events(number))
    assert takers[0].numbers == [1]
    manual.pass_until(10)
    assert takers[0].numbers == [1, 2, 3, 4, 5]
    for taker in takers:
        assert len(taker.pieces) == 2
        assert taker.pieces[1] is takers[0].pieces[1]
        assert taker.pieces[1].chunk is takers[0].pieces[1].chunk
    assert takers[0].pieces[1].chunk == b"%x\r\n%b\r\n" % (40, takers[0].pieces[1].body)


def test_rounds_keep_to_their_share_of_the_time(manual: Time) -> None:
    """20 ms a round, while events come all the time."""
    takers = [Taker(manual, cost=0.000_1) for _ in range(200)]
    rounds = rounds_of(manual, takers)
    for number in range(1, 3_001):
        rounds.gather(events(number))
        manual.pass_until(manual.now + 0.01)
    assert SHARE * 0.8 < manual.spent / manual.now < SHARE * 1.05
    told = takers[-1].told_at
    assert len(told) > 2_900


def test_nobody_is_kept_waiting_by_a_round_for_longer_than_a_turn(manual: Time) -> None:
    takers = [Taker(manual, cost=0.001) for _ in range(100)]
    rounds = rounds_of(manual, takers)
    rounds.gather(events(1))
    assert manual.now == pytest.approx(LONGEST_TURN)
    told = [taker for taker in takers if taker.numbers]
    assert len(told) == 5
    manual.pass_until(10)
    assert all(taker.numbers == [1] for taker in takers)


def test_all_are_told_in_time_even_if_the_share_does_not_suffice(manual: Time) -> None:
    """Half a second a round: rests become shorter, and what comes meanwhile waits for one round at the most."""
    takers = [Taker(manual, cost=0.001) for _ in range(500)]
    rounds = rounds_of(manual, takers)
    happened_at = {}
    for number in range(1, 1_001):
        happened_at[number] = manual.now
        rounds.gather(events(number))
        manual.pass_until(manual.now + 0.01)
    manual.pass_until(manual.now + 10)
    for taker in takers:
        late = [told_at - happened_at[number] for number, told_at in taker.told_at.items()]
        assert len(late) == 1_000
        assert max(late) < 2 * LONGEST_ROUND + 2 * LONGEST_TURN


def test_a_moment_in_which_the_machine_stood_still_does_not_silence_the_stream(manual: Time) -> None:
    taker = Taker(manual, cost=60.0)
    rounds = rounds_of(manual, [taker])
    rounds.gather(events(1))
    taker.cost = 0.0
    rounds.gather(events(2))
    manual.pass_until(manual.now + LONGEST_ROUND)
    assert taker.numbers == [1, 2]


def test_a_round_does_without_rests_when_too_much_waits_for_the_next(manual: Time) -> None:
    takers = [Taker(manual, cost=LONGEST_TURN) for _ in range(100)]
    rounds = rounds_of(manual, takers)
    rounds.gather(events(1))
    rounds.gather(events(2, MOST_GATHERED))
    manual.pass_until(100 * LONGEST_TURN + 2 * LONGEST_ROUND / 100)
    assert all(taker.numbers[0] == 1 for taker in takers)


def test_who_comes_and_goes_during_a_round_takes_nothing_from_others(manual: Time) -> None:
    takers = {Taker(manual, cost=LONGEST_TURN) for _ in range(10)}
    rounds = rounds_of(manual, takers)
    rounds.gather(events(1))
    gone = takers.pop()
    late = Taker(manual)
    takers.add(late)
    rounds.gather(events(2))
    manual.pass_until(10)
    assert late.numbers == [2]
    assert 2 not in gone.numbers
    assert all(taker.numbers == [1, 2] for taker in takers - {late})


def test_a_flush_passes_on_all_at_once_and_in_order(manual: Time) -> None:
    takers = [Taker(manual, cost=LONGEST_TURN) for _ in range(10)]
    rounds = rounds_of(manual, takers)
    rounds.gather(events(1))
    rounds.gather(events(2))
    rounds.flush()
    assert all(taker.numbers == [1, 2] for taker in takers)
    manual.pass_until(10)
    assert all(taker.numbers == [1, 2] for taker in takers)


def test_what_is_forgotten_is_told_nobody(manual: Time) -> None:
    takers = [Taker(manual, cost=LONGEST_TURN) for _ in range(2)]
    rounds = rounds_of(manual, takers)
    rounds.gather(events(1))
    rounds.gather(events(2))
    rounds.forget()
    assert not manual.timers
    rounds.gather(events(3))
    manual.pass_until(10)
    assert [taker.numbers for taker in takers] == [[1, 3], [3]]


def test_without_clients_nothing_happens(manual: Time) -> None:
    rounds = rounds_of(manual, [])
    rounds.gather(events(1))
    manual.pass_until(10)
    assert not manual.timers


def test_pieces_are_as_few_as_may_be_and_none_is_too_large() -> None:
    frames = events(1, 10, size=LARGEST_PIECE // 4)
    pieces = pieces_of(frames)
    assert [(piece.first, piece.last, len(piece)) for piece in pieces] == [(1, 4, 4), (5, 8, 4), (9, 10, 2)]
    assert b"".join(piece.body for piece in pieces) == b"".join(frame for _, frame in frames)
    (large,) = pieces_of(events(1, size=2 * LARGEST_PIECE))
    assert len(large.body) == 2 * LARGEST_PIECE


def test_a_piece_knows_what_is_new() -> None:
    (piece,) = pieces_of(events(5, 3, size=1))
    assert piece.since(0) is piece.body
    assert piece.since(5) == b"67"
    assert piece.since(7) == b""


def test_the_loop_is_the_one_that_runs() -> None:
    async def main() -> None:
        taker = Taker(Time())
        rounds = Rounds([taker])
        rounds.gather(events(1))
        rounds.gather(events(2))
        async with asyncio.timeout(10):
            while taker.numbers != [1, 2]:
                await asyncio.sleep(0)
        rounds.forget()

    asyncio.run(main())
