"""Checker: is a record one that keeps the promises? Values in, violations out; it asks nobody and knows no clock.

Each rule is a function of the record that yields what is wrong; `check` is all of them. What a rule cannot tell for
sure it lets pass, so that a violation always is one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from jobpipe.model.gate import LEAD
from jobpipe.model.job import FINISHED, KEPT_HISTORY, TRANSITIONS, JobStatus

from .record import TIMED_OUT, Bound, Record, Rhythm, Run, StoredJob, StoredRun

SAME = 0.002
"""Seconds by which two instants of the store may be the same."""
SHORT = 0.5
"""Seconds: a run that takes longer is stored before it ends, also through a network that delays what is said."""
AHEAD = 0.2
"""Seconds that a job may be claimed before its handler is called."""
NEAR = 0.05
"""Seconds by which an instant of a handler and one of the store may be."""
LOST = "WorkerLost"


class Violation(NamedTuple):
    """What is wrong: the name of the rule, of which job (or schedule, or type), and how."""

    rule: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.text}"


Rule = Callable[[Record], Iterator[Violation]]


def check(record: Record) -> list[Violation]:
    """Everything that is wrong."""
    return [violation for rule in RULES for violation in rule(record)]


def nothing_is_lost(record: Record) -> Iterator[Violation]:
    """What was accepted is there, and everything that is there has ended."""
    for id in sorted(record.accepted - record.jobs.keys()):
        yield Violation("lost", id, "it was accepted, and is not in the store")
    for job in record.jobs.values():
        if job.status not in FINISHED:
            yield Violation("lost", job.id, f"it has not ended: it is {job.status}")


def nothing_is_made_up(record: Record) -> Iterator[Violation]:
    """What is there was sent, as it was sent, or is that of a tick."""
    for job in record.jobs.values():
        sent = record.sent.get(job.id)
        if sent is None:
            if record.rhythm is None or not job.id.startswith(f"{record.rhythm.name}@"):
                yield Violation("made up", job.id, "nobody has sent it")
        elif sent.type != job.type or (not sent.unique and sent.max_retries != job.max_retries):
            yield Violation("made up", job.id, f"it is not as it was sent: {sent}, {job}")


def there_is_one_outcome(record: Record) -> Iterator[Violation]:
    """A job ends once, with the run that the store has last, and has the result of that very run."""
    noted = {(run.id, run.attempt, run.worker): run for run in record.runs}
    for job in record.jobs.values():
        good = [run for run in job.runs if run.error is None]
        if len(good) > 1:
            yield Violation("two outcomes", job.id, f"{len(good)} of its runs succeeded: {job.runs}")
        if job.status != JobStatus.DONE:
            continue
        if not job.runs or job.runs[-1].error is not None:
            yield Violation("outcome", job.id, f"it is done, and no run of it succeeded: {job.runs}")
            continue
        last = job.runs[-1]
        if job.result != [last.worker, last.number]:
            yield Violation("outcome", job.id, f"its result is {job.result}, its last run was {last}")
        run = noted.get((job.id, last.number, last.worker))
        if run is None or run.how != "done":
            yield Violation("outcome", job.id, f"it is done, and no handler has done it: {run}")


def statuses_change_by_the_table(record: Record) -> Iterator[Violation]:
    """What the store tells of a job is a way through the transition table, and ends once."""
    told: dict[str, list[str]] = defaultdict(list)
    for event in record.events:
        told[event.id].append(event.status)
    for id, statuses in told.items():
        ends = [status for status in statuses if status in FINISHED]
        if len(ends) > 1:
            yield Violation("two outcomes", id, f"it ended more than once: {statuses}")
        for before, after in pairwise(statuses):
            if before == after == JobStatus.RUNNING and record.forgets_claims:
                continue
            if after not in TRANSITIONS[JobStatus(before)].values():
                yield Violation("transition", id, f"from {before} to {after}: {statuses}")
                break
        job = record.jobs.get(id)
        if job is not None and ends and job.status != ends[-1]:
            yield Violation("two outcomes", id, f"it was told to be {ends[-1]}, and is {job.status}")


def leases_do_not_overlap(record: Record) -> Iterator[Violation]:
    """In the store's own history, and as the handlers saw it."""
    for job in record.jobs.values():
        for before, after in pairwise(job.runs):
            if after.began_at < before.ended_at - SAME:
                yield Violation("overlapping leases", job.id, f"{after} began before the end of {before}")
    for id, runs in _by_id(record.runs).items():
        stored = _stored(record.jobs.get(id))
        for run in runs:
            yield from _lease_of(run, stored, record)
        for n, later in enumerate(runs):
            for earlier in runs[:n]:
                if _holds(earlier, stored, later.began_at) and not _is_late(later, stored):
                    yield Violation("overlapping leases", id, f"{later} began while {earlier} had the lease")


def _lease_of(run: Run, stored: Mapping[tuple[int, str], StoredRun], record: Record) -> Iterator[Violation]:
    """A run that came to its end had a lease: the store knows it, unless its process gave the job back.

    Of a short run that was claimed ahead the store learns when it is settled, and only if the lease was still held.
    """
    if run.how not in ("done", "error") or (run.attempt, run.worker) in stored:
        return
    is_short = run.ended_at is not None and run.ended_at - run.began_at < SHORT
    if pid_of(run.worker) not in record.stopped and not (is_short and _has_lost_lease(run, stored, record)):
        yield Violation("without a lease", run.id, f"the store does not know of {run}")


def _has_lost_lease(run: Run, stored: Mapping[tuple[int, str], StoredRun], record: Record) -> bool:
    """Was its process lost, or the job cancelled meanwhile, or the attempt handed to another when the lease was over?"""
    job = record.jobs.get(run.id)
    over_at = run.began_at + record.lease - AHEAD - NEAR
    return (
        pid_of(run.worker) in record.lost
        or (job is not None and job.status == JobStatus.CANCELLED)
        or any(number == run.attempt and kept.began_at >= over_at for (number, _), kept in stored.items())
    )


def _holds(run: Run, stored: Mapping[tuple[int, str], StoredRun], at: float) -> bool:
    """Had it the lease for sure, at that moment?"""
    kept = _kept(run, stored)
    # Why not without a trace in the store: it was given back, and nobody knows when.
    ended_at = None if kept is None else kept.ended_at
    return ended_at is not None and run.began_at < at < ended_at - NEAR


def _is_late(run: Run, stored: Mapping[tuple[int, str], StoredRun]) -> bool:
    """Was it held up for so long before it began that it had lost the lease? Then nothing comes of it."""
    kept = _kept(run, stored)
    return kept is not None and kept.error == LOST and kept.ended_at <= run.began_at


def rescue_comes_after_the_lease(record: Record) -> Iterator[Violation]:
    """A worker is given up for lost when its lease is over, and no sooner."""
    for job in record.jobs.values():
        for run in job.runs:
            # Why the lead: a job of a type with a rate may be claimed a little before it may begin.
            if run.error == LOST and run.ended_at - run.began_at < record.lease - LEAD - SAME:
                yield Violation("early rescue", job.id, f"the lease is {record.lease} s: {run}")


def attempts_are_counted(record: Record) -> Iterator[Violation]:
    """Each run counts once, none is left out, and there are no more than allowed."""
    for job in record.jobs.values():
        numbers = [run.number for run in job.runs]
        expected = list(range(1, job.attempts + 1))[-KEPT_HISTORY:]
        if job.attempts > job.max_retries + 1:
            yield Violation("attempts", job.id, f"{job.attempts} runs with {job.max_retries} retries")
        if numbers != expected:
            yield Violation("attempts", job.id, f"{job.attempts} are counted, the history has {numbers}")
        if job.status == JobStatus.FAILED and job.attempts != job.max_retries + 1:
            yield Violation("attempts", job.id, f"it failed at {job.attempts} of {job.max_retries + 1} runs")
    for run in record.runs:
        known = record.jobs.get(run.id)
        if known is not None and not 1 <= run.attempt <= known.max_retries + 1:
            yield Violation("attempts", run.id, f"with {known.max_retries} retries there was {run}")


def nothing_runs_early(record: Record) -> Iterator[Violation]:
    """Not before its time, and not before the store says that it began."""
    for job in record.jobs.values():
        sent = record.sent.get(job.id)
        if (
            sent is not None
            and not sent.unique
            and job.runs
            and job.runs[0].began_at < sent.not_before - NEAR
        ):
            yield Violation("early", job.id, f"not before {sent.not_before}, but {job.runs[0]}")
    for run in record.runs:
        kept = _kept(run, _stored(record.jobs.get(run.id)))
        if kept is not None and run.began_at < kept.began_at - NEAR:
            yield Violation("early", run.id, f"{run} began before its time, {kept}")


def cancelled_jobs_stay_so(record: Record) -> Iterator[Violation]:
    """Whoever was told that his job is cancelled was told the truth."""
    for id in sorted(record.cancelled):
        job = record.jobs.get(id)
        if job is not None and job.status != JobStatus.CANCELLED:
            yield Violation("cancelled", id, f"it is {job.status}")


def every_tick_is_one_job(record: Record) -> Iterator[Violation]:
    """Ticks follow each other; one may be left out only if the job before it was put in too late for it."""
    rhythm = record.rhythm
    if rhythm is None:
        return
    numbers: dict[int, StoredJob] = {}
    for job in record.jobs.values():
        if job.id.startswith(f"{rhythm.name}@"):
            number = _tick_number(rhythm, job)
            if number is None:
                yield Violation("ticks", job.id, f"it is the job of no tick: {rhythm}")
            elif number in numbers:
                yield Violation("ticks", job.id, f"a second job of the tick of {numbers[number].id}")
            else:
                numbers[number] = job
    if not numbers:
        yield Violation("ticks", rhythm.name, "there was none")
        return
    if min(numbers) != 1:
        yield Violation("ticks", rhythm.name, f"the first was number {min(numbers)}")
    end = round((rhythm.next_at - rhythm.anchor_at) / rhythm.every)
    for before, after in pairwise(sorted({*numbers, end})):
        if before in numbers:
            left_out_at = rhythm.anchor_at + (after - 1) * rhythm.every
            if after > before + 1 and left_out_at > numbers[before].created_at + SAME:
                yield Violation(
                    "ticks", rhythm.name, f"those between number {before} and {after} were left out"
                )
    if end not in numbers and max(numbers) > end:
        yield Violation("ticks", rhythm.name, f"number {end} was left out")


def _tick_number(rhythm: Rhythm, job: StoredJob) -> int | None:
    tick_at = datetime.fromisoformat(job.id.partition("@")[2]).timestamp()
    number = (tick_at - rhythm.anchor_at) / rhythm.every
    return round(number) if abs(number - round(number)) * rhythm.every < SAME and number > 0.5 else None


def limits_are_kept(record: Record) -> Iterator[Violation]:
    """By the store's history: no start too soon, and never too many at once."""
    noted = _by_id(record.runs)
    for bound in record.bounds:
        groups: dict[str, list[StoredJob]] = defaultdict(list)
        for job in record.jobs.values():
            if job.type == bound.type:
                sent = record.sent.get(job.id)
                groups[sent.key if bound.is_keyed and sent is not None else ""].append(job)
        for key, jobs in groups.items():
            name = f"{bound.type} {key}".strip()
            yield from _rate(bound, name, sorted(run.began_at for job in jobs for run in job.runs))
            yield from _concurrency(
                bound, name, [(run.began_at, run.ended_at) for job in jobs for run in job.runs]
            )
            spans = (_span(run, job) for job in jobs for run in noted.get(job.id, ()))
            seen = [span for span in spans if span is not None]
            yield from _concurrency(bound, f"{name}, as seen by handlers", seen)


def names_run_one_at_a_time(record: Record) -> Iterator[Violation]:
    """As the store tells it: of each unique name one waits and one has begun at the most; and no two handlers run at once."""
    waiting: dict[str, set[str]] = defaultdict(set)
    begun: dict[str, set[str]] = defaultdict(set)
    for event in record.events:
        job = record.jobs.get(event.id)
        if job is None or not job.unique:
            continue
        if event.status in FINISHED:
            waiting[job.unique].discard(job.id)
            begun[job.unique].discard(job.id)
        elif event.status == JobStatus.RUNNING:
            waiting[job.unique].discard(job.id)
            begun[job.unique].add(job.id)
        elif job.id not in begun[job.unique]:  # else it is between its runs
            waiting[job.unique].add(job.id)
        for what, ids in (("wait", waiting[job.unique]), ("have begun", begun[job.unique])):
            if len(ids) > 1:
                yield Violation("unique", job.unique, f"{sorted(ids)} {what} at once")
                return
    noted = _by_id(record.runs)
    for name in sorted({job.unique for job in record.jobs.values() if job.unique}):
        jobs = [job for job in record.jobs.values() if job.unique == name]
        spans = [_span(run, job) for job in jobs for run in noted.get(job.id, ())]
        alone = Bound(type=name, concurrency=1)
        for violation in _concurrency(alone, name, [span for span in spans if span is not None]):
            yield violation._replace(rule="unique")


def recorded_steps_are_not_run_again(record: Record) -> Iterator[Violation]:
    """What a step did and was recorded is the last time that it was done, but for runs that were claimed before."""
    effects = {effect.mark: effect for effect in record.effects}
    recorded = {(job.id, name): mark for job in record.jobs.values() for name, mark in job.steps.items()}
    for (id, name), mark in recorded.items():
        if mark not in effects:
            yield Violation("step", id, f"{name} is recorded with {mark}, which no run has done")
    for effect in record.effects:
        mark = recorded.get((effect.id, effect.name), effect.mark)
        if mark in effects and effect.mark != mark and effect.claimed_at >= effects[mark].claimed_at:
            yield Violation(
                "step again", effect.id, f"{effect.name} was recorded by {effects[mark]}: {effect}"
            )


def runs_get_what_is_recorded(record: Record) -> Iterator[Violation]:
    """Whatever a step returned, in whichever run, is what is recorded; nothing that was recorded is lost."""
    for seen in record.seen:
        job = record.jobs.get(seen.id)
        if job is not None and not seen.is_signal and job.steps.get(seen.name) != seen.value:
            yield Violation("step", seen.id, f"a run got {seen}, and {job.steps} is recorded")


def every_wait_has_one_outcome(record: Record) -> Iterator[Violation]:
    """The signal that was accepted, or the timeout: the same in all runs."""
    accepted: dict[tuple[str, str], str] = {}
    asked: Counter[tuple[str, str, str]] = Counter()
    for each in record.signals:
        asked[each.id, each.name, each.payload] += 1 if each.how == "sent" else -1
        if each.how == "accepted" and accepted.setdefault((each.id, each.name), each.payload) != each.payload:
            yield Violation("signal", each.id, f"{each.name} was accepted with two contents")
    outcomes: dict[tuple[str, str], str] = {}
    for seen in record.seen:
        wait = seen.id, seen.name
        if not seen.is_signal:
            continue
        if outcomes.setdefault(wait, seen.value) != seen.value:
            yield Violation("signal", seen.id, f"{outcomes[wait]} for one run, for another {seen}")
        if seen.value != accepted.get(wait, seen.value):
            yield Violation("signal", seen.id, f"{accepted[wait]} was accepted, and a run got {seen}")
        # Why also what was sent and not answered: it may have been accepted.
        if seen.value != TIMED_OUT and wait not in accepted and asked[*wait, seen.value] <= 0:
            yield Violation("signal", seen.id, f"nobody sent it, or it was refused: {seen}")


def no_sleep_is_too_short(record: Record) -> Iterator[Violation]:
    """It lasts from when the first run came to it."""
    until: dict[tuple[str, str], float] = {}
    for each in record.slept:
        sleep = each.id, each.name
        if not each.is_over:
            until[sleep] = min(each.at, until.get(sleep, each.at))
        elif each.at < until.get(sleep, each.at) - NEAR:
            yield Violation("early", each.id, f"{each.name} was to last until {until[sleep]}: {each}")


def _rate(bound: Bound, name: str, starts: Sequence[float]) -> Iterator[Violation]:
    even_at = 0.0  # when the next start would be evenly paced
    for at in starts if bound.interval else ():
        if at < even_at - (bound.burst - 1) * bound.interval - SAME:
            yield Violation("rate", name, f"a start at {at:.4f}, {even_at - at:.4f} s too soon")
        even_at = max(even_at, at) + bound.interval


def _concurrency(bound: Bound, name: str, spans: Sequence[tuple[float, float]]) -> Iterator[Violation]:
    if not bound.concurrency:
        return
    changes = sorted(
        [(began_at + SAME, 1) for began_at, _ in spans] + [(ended_at, -1) for _, ended_at in spans]
    )
    running = 0
    for at, change in changes:
        running += change
        if running > bound.concurrency:
            yield Violation("concurrency", name, f"{running} at once at {at:.4f}")
            return


def _span(run: Run, job: StoredJob) -> tuple[float, float] | None:
    """From when to when a handler ran while it had the lease for sure; nothing if nobody knows."""
    kept = _kept(run, _stored(job))
    if kept is None:
        return None
    ended_at = kept.ended_at if run.ended_at is None else min(run.ended_at, kept.ended_at)
    return (run.began_at + NEAR, ended_at - NEAR) if ended_at - run.began_at > 2 * NEAR else None


def _stored(job: StoredJob | None) -> dict[tuple[int, str], StoredRun]:
    return {} if job is None else {(run.number, run.worker): run for run in job.runs}


def _kept(run: Run, stored: Mapping[tuple[int, str], StoredRun]) -> StoredRun | None:
    """The run as the store has it. One that was suspended or undone it has not: another has its number, maybe in the same process."""
    return None if run.how in ("suspended", "undone") else stored.get((run.attempt, run.worker))


def _by_id(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.id].append(run)
    return found


def pid_of(worker: str) -> int:
    """The process of a worker: its name is host:pid:random."""
    return int(worker.rsplit(":", 2)[1])


RULES: tuple[Rule, ...] = (
    nothing_is_lost,
    nothing_is_made_up,
    there_is_one_outcome,
    statuses_change_by_the_table,
    leases_do_not_overlap,
    rescue_comes_after_the_lease,
    attempts_are_counted,
    nothing_runs_early,
    cancelled_jobs_stay_so,
    every_tick_is_one_job,
    limits_are_kept,
    names_run_one_at_a_time,
    recorded_steps_are_not_run_again,
    runs_get_what_is_recorded,
    every_wait_has_one_outcome,
    no_sleep_is_too_short,
)
