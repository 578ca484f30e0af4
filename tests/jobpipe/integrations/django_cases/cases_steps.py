"""Steps and `finish` in the transaction of Django's own that is open, on its SQLite or PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.db import connections

from jobpipe.integrations.django import JobpipeBackend

from . import project, tasks
from .project import backend_with, work

STORES = {"default": f"sqlite:///{project.DATABASE}", "postgres": os.environ["TEST_DJANGO_POSTGRES"]}


@pytest.fixture(params=list(STORES))
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backend(database: str) -> Iterator[JobpipeBackend]:
    tasks.CALLS.clear()
    with backend_with(store=STORES[database]) as backend:
        backend.pipe.store.migrate()
        with connections[database].cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS payments (amount INTEGER)")
            cursor.execute("DELETE FROM payments")
        yield backend


def payments(using: str) -> list[int]:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT amount FROM payments ORDER BY amount")
        return [amount for (amount,) in cursor.fetchall()]


def test_a_step_is_recorded_with_what_it_wrote(backend: JobpipeBackend, database: str) -> None:
    """It is rolled back with the outer block and with a savepoint, and then called again; what was enqueued, too."""
    result = tasks.pay.enqueue(database)
    work(backend, result)
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 7, 3), result.errors
    assert tasks.CALLS.count("pay") == 3
    assert payments(database) == [7]
    (step,) = backend.pipe.steps_sync(result.id)
    assert (step.name, step.result) == ("pay", 7)
    assert len(backend.pipe.page_sync(type=tasks.note.module_path).jobs) == 1


def test_an_outcome_is_recorded_with_what_the_task_wrote(backend: JobpipeBackend, database: str) -> None:
    result = tasks.pay_and_finish.enqueue(database)
    work(backend, result)
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", "paid", 2), result.errors
    assert "was not committed" in result.errors[0].traceback
    assert payments(database) == [7]


def test_a_write_past_the_open_transaction_is_refused(backend: JobpipeBackend) -> None:
    """On SQLite, where it would wait for itself."""
    if backend.pipe.store.url.startswith("sqlite:"):
        result = tasks.pay_and_signal.enqueue("default")
        work(backend, result)
        assert "while the handler has its own transaction open" in result.errors[0].traceback
        assert payments("default") == []
