"""The table of transitions says what the contract says, and no more."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from jobpipe.model.job import FINISHED, PENDING, TRANSITIONS, Job, JobStatus, Move, instant, sources

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def make(status: JobStatus) -> Job:
    return Job(id="a", type="echo", queue="default", status=status, run_at=NOW, created_at=NOW)


def test_every_status_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(JobStatus)


def test_every_move_can_happen_somewhere() -> None:
    assert {move for moves in TRANSITIONS.values() for move in moves} == set(Move)


@pytest.mark.parametrize("move", Move)
def test_a_move_always_leads_to_the_same_status(move: Move) -> None:
    assert len({moves[move] for moves in TRANSITIONS.values() if move in moves}) == 1


def test_a_run_begins_only_from_the_queue_and_ends_only_where_it_began() -> None:
    assert sources(Move.BEGIN) == (JobStatus.QUEUED,)
    for move in (Move.SUCCEED, Move.FAIL, Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.RESCUE):
        assert sources(move) == (JobStatus.RUNNING,)


def test_a_done_job_stays_done() -> None:
    assert TRANSITIONS[JobStatus.DONE] == {}


def test_only_failed_and_cancelled_jobs_can_be_revived() -> None:
    assert set(sources(Move.REVIVE)) == {JobStatus.FAILED, JobStatus.CANCELLED}


def test_everything_but_a_finished_job_can_be_cancelled() -> None:
    assert set(sources(Move.CANCEL)) == set(JobStatus) - FINISHED


def test_waiting_running_and_finished_are_all_there_is() -> None:
    assert PENDING | FINISHED | {JobStatus.RUNNING} == set(JobStatus)
    assert not PENDING & FINISHED


@pytest.mark.parametrize("status", JobStatus)
def test_a_job_knows_whether_it_is_finished(status: JobStatus) -> None:
    assert make(status).is_finished == (status in ("done", "failed", "cancelled", "expired"))


def test_an_instant_is_aware_and_in_utc() -> None:
    assert instant(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert instant(0).tzinfo is UTC


def test_a_job_survives_the_way_through_json() -> None:
    job = make(JobStatus.SCHEDULED)
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


def test_a_job_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        make(JobStatus.QUEUED).status = JobStatus.DONE  # type: ignore[misc]
