"""Hooks that keep a diary, and a run that they write down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rate_envelope_queue import Context, Envelope

from ..support.waiting import LIMIT
from .conftest import Driver


class Diary:
    """Hooks that write down when they were called and may raise."""

    def __init__(self, **raises: BaseException) -> None:
        self.entries: list[str] = []
        self.errors: list[BaseException] = []
        self.contexts: dict[str, Context] = {}
        self._raises = raises

    def __getattr__(self, name: str) -> Callable[..., None]:
        def called(ctx: Context, envelope: Envelope[Any], *error: BaseException) -> None:
            self.entries.append(name)
            self.errors.extend(error)
            self.contexts[name] = ctx
            if name in self._raises:
                raise self._raises[name]

        return called

    def hooks(self, *, without: str = "") -> dict[str, Any]:
        names = ("before_hook", "after_hook", "success_hook", "failure_hook")
        return {name: getattr(self, name.removesuffix("_hook")) for name in names if name != without}


def run_once(driver: Driver, diary: Diary, **options: Any) -> Any:
    """The queue after one envelope with all hooks has run."""
    queue = driver.queue(**options.pop("queue", {}))
    hooks = {name: driver.kind(hook) for name, hook in diary.hooks().items()}
    queue.send(driver.envelope(diary.invoke, **{**hooks, **options}))
    assert queue.join(LIMIT)
    return queue


def raising(error: BaseException) -> Callable[..., None]:
    def invoke(ctx: Context, envelope: Envelope[Any]) -> None:
        raise error

    return invoke
