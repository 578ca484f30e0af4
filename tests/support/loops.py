"""A loop for one test of the asyncio queue, and the simplest handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from rate_envelope_queue import Context, Envelope

from .waiting import LIMIT


def run(main: Coroutine[Any, Any, None]) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(LIMIT):
            await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left behind: {left}"

    asyncio.run(within_limit())


class Failures(list[BaseException]):
    """A failure hook that keeps what it was told."""

    def __call__(self, ctx: Context, envelope: Envelope[Any], error: BaseException) -> None:
        self.append(error)


async def forever(ctx: Context, envelope: Envelope[Any]) -> None:
    await asyncio.Event().wait()


async def noop(ctx: Context, envelope: Envelope[Any]) -> None: ...
