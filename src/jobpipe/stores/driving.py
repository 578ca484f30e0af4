"""How verbs are driven that are written as generators: each yields what is to be done and is sent what that brought.

So a verb is written once, whether its connection blocks or is awaited: that is the business of who drives it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Y = TypeVar("Y")


def drive(generator: Generator[Y, Any, T], do: Callable[[Y], Any]) -> T:
    """Do all that a generator yields, and return its answer; what goes wrong is raised within it."""
    try:
        todo = next(generator)
        while True:
            try:
                done = do(todo)
            except Exception as error:
                todo = generator.throw(error)
            else:
                todo = generator.send(done)
    except StopIteration as end:
        answer: T = end.value
        return answer


async def drive_awaited(generator: Generator[Y, Any, T], do: Callable[[Y], Awaitable[Any]]) -> T:
    """The same, where what is done is awaited."""
    try:
        todo = next(generator)
        while True:
            try:
                done = await do(todo)
            except Exception as error:
                todo = generator.throw(error)
            else:
                todo = generator.send(done)
    except StopIteration as end:
        answer: T = end.value
        return answer
