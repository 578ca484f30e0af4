"""Enqueueing is part of the open transaction, where that is in the store's own database: Django's SQLite or PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.test import override_settings

from jobpipe import StoreAwayError
from jobpipe.integrations.django import JobpipeBackend
from jobpipe.integrations.django.framework import TaskResultDoesNotExist, task_backends, task_enqueued

from . import project, tasks
from .project import backend_with, work

STORES = {"default": f"sqlite:///{project.DATABASE}", "postgres": os.environ["TEST_DJANGO_POSTGRES"]}


class Undo(Exception):
    """Rolls back."""


@pytest.fixture(autouse=True, scope="module")
def thread_of_asgiref() -> None:
    asyncio.run(sync_to_async(threading.get_ident)())


@pytest.fixture(params=list(STORES))
def database(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backend(database: str) -> Iterator[JobpipeBackend]:
    with backend_with(store=STORES[database]) as backend:
        backend.pipe.store.migrate()
        for each in connections:
            with connections[each].cursor() as cursor:
                cursor.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
                cursor.execute("DELETE FROM orders")
        yield backend


def order(number: int, using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES (%s)", [number])


def orders(using: str) -> list[int]:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT number FROM orders")
        return [number for (number,) in cursor.fetchall()]


def exists(backend: JobpipeBackend, result: Any) -> bool:
    try:
        backend.get_result(result.id)
    except TaskResultDoesNotExist:
        return False
    return True


def test_a_task_exists_if_and_when_the_transaction_commits(backend: JobpipeBackend, database: str) -> None:
    with transaction.atomic(using=database):
        order(1, database)
        result = tasks.add.enqueue(1)
        assert not exists(backend, result)
    assert exists(backend, result)

    with pytest.raises(Undo), transaction.atomic(using=database):
        order(2, database)
        result = tasks.add.enqueue(2)
        raise Undo
    assert not exists(backend, result)
    assert orders(database) == [1]


def test_a_savepoint_takes_its_tasks_back(backend: JobpipeBackend, database: str) -> None:
    with transaction.atomic(using=database):
        kept = tasks.add.enqueue(1)
        with pytest.raises(Undo), transaction.atomic(using=database):
            undone = tasks.add.enqueue(2)
            raise Undo
    assert (exists(backend, kept), exists(backend, undone)) == (True, False)
    work(backend, kept)
    assert kept.return_value == 3


def test_a_transaction_without_autocommit_counts(backend: JobpipeBackend, database: str) -> None:
    transaction.set_autocommit(False, using=database)
    try:
        order(1, database)
        result = tasks.add.enqueue(1)
        assert not exists(backend, result)
        transaction.rollback(using=database)
        assert not exists(backend, result)
    finally:
        transaction.set_autocommit(True, using=database)


def test_a_refused_task_leaves_the_transaction_as_it_was(backend: JobpipeBackend, database: str) -> None:
    with transaction.atomic(using=database):
        order(1, database)
        with pytest.raises(ValueError, match="payload"):
            tasks.note.enqueue("x" * 300_000)
        result = tasks.add.enqueue(1)
    assert exists(backend, result)
    assert orders(database) == [1]


def test_a_unique_task_of_the_same_transaction_is_one(backend: JobpipeBackend, database: str) -> None:
    with transaction.atomic(using=database):
        first, second = tasks.once.enqueue(1), tasks.once.enqueue(1)
        assert first == second
    work(backend, first)


def test_a_transaction_in_another_database_does_not_count(backend: JobpipeBackend, database: str) -> None:
    for other in connections:
        if other != database:
            with pytest.raises(Undo), transaction.atomic(using=other):
                order(1, other)
                result = tasks.add.enqueue(1)
                assert exists(backend, result)
                raise Undo
            assert exists(backend, result)
            assert orders(other) == []
    with transaction.atomic(using="other"), transaction.atomic(using=database):
        result = tasks.add.enqueue(1)
        assert not exists(backend, result)
    assert exists(backend, result)


def test_a_coroutine_is_in_the_transaction_of_its_caller(backend: JobpipeBackend, database: str) -> None:
    async def enqueue() -> Any:
        return await tasks.add.aenqueue(1)

    from asgiref.sync import async_to_sync

    with transaction.atomic(using=database):
        result = async_to_sync(enqueue)()
        assert not exists(backend, result)
    assert exists(backend, result)


def test_a_store_without_tables_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cannot be made while the transaction has the lock."""
    monkeypatch.setattr("jobpipe.stores.sqlite.file.PATIENCE", 0.01)
    path = project.FOLDER / "other.db"
    with (
        backend_with(store=f"sqlite:///{path}"),
        transaction.atomic(using="other"),
        connections["other"].cursor() as cursor,
    ):
        cursor.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
        cursor.execute("INSERT INTO notes VALUES ('this takes the lock')")
        with pytest.raises(StoreAwayError, match=r"locked: .* run `manage\.py jobpipe migrate` first"):
            tasks.add.enqueue(1)


def test_a_store_elsewhere_may_wait_for_the_commit() -> None:
    setting = project.tasks_setting()
    setting["default"]["ENQUEUE_ON_COMMIT"] = True
    told: list[str] = []

    def receiver(task_result: Any, **_: Any) -> None:
        told.append(task_result.id)

    task_enqueued.connect(receiver)
    try:
        with override_settings(TASKS=setting):
            backend = task_backends["default"]
            with transaction.atomic():
                result = tasks.add.enqueue(1)
                assert not exists(backend, result)
                assert told == []
            assert exists(backend, result)
            assert backend.get_result(result.id) == result
            assert told == [result.id]
            with pytest.raises(Undo), transaction.atomic():
                undone = tasks.add.enqueue(2)
                raise Undo
            assert not exists(backend, undone)
            assert exists(backend, tasks.add.enqueue(3))
    finally:
        task_enqueued.disconnect(receiver)


@pytest.mark.parametrize("own", [tasks.hold_connection, tasks.hold_connection_async])
def test_connections_are_closed_when_a_task_ends(own: Any) -> None:
    with backend_with() as backend:
        result = own.enqueue()
        work(backend, result)
        assert result.return_value is True
        assert tasks.CALLS.pop().connection is None
