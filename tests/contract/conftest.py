"""One suite, two queues: the tests are plain functions that drive either queue through a `Driver`.

The asyncio queue lives on an event loop in a thread of its own; a call from the test is made there and
waited for. Handlers are plain functions for all three drivers; "coroutines" wraps each in an `async def`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol, cast

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Envelope,
    QueueState,
    RateEnvelopeQueue,
    Stats,
)
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

from ..support.gates import Gate
from ..support.waiting import LIMIT


class Queue(Protocol):
    """What both queues offer, as the tests see it."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> QueueState: ...
    @property
    def capacity(self) -> int: ...
    @property
    def occupied(self) -> int: ...
    @property
    def blacklist(self) -> frozenset[str]: ...
    def start(self) -> None: ...
    def send(
        self, *envelopes: Envelope[Any], delay: Any = 0, block: bool = False, timeout: Any = None
    ) -> None: ...
    def stop(self, timeout: Any = None, *, keep_waiting: bool = True) -> bool: ...
    def terminate(self) -> list[Envelope[Any]]: ...
    def join(self, timeout: Any = None) -> bool: ...
    def stats(self) -> Stats: ...
    def cancel(self, envelope: Envelope[Any]) -> bool: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def allow(self, type: str) -> bool: ...


class Driver:
    """Makes queues on a manual clock, and ends them with the test."""

    is_async = False
    cancels_for_real = False

    def __init__(self) -> None:
        self._made: list[Queue] = []
        self.clock = self._make_clock()

    def _make_clock(self) -> Any:
        return ManualClock()

    def queue(self, *, workers: int = 1, name: str = "q", start: bool = True, **options: Any) -> Queue:
        queue = self._make(name, workers=workers, **{"clock": self.clock, **options})
        self._made.append(queue)
        if start:
            queue.start()
        return queue

    def _make(self, name: str, **options: Any) -> Queue:
        return RateEnvelopeQueue(name, **options)

    def envelope(self, invoke: Callable[..., Any] | None = None, **options: Any) -> Envelope[Any]:
        """An envelope whose invoke is of the driver's kind."""
        return Envelope(self.kind(invoke or (lambda ctx, envelope: None)), **options)

    def kind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def advance(self, by: float | str) -> None:
        self.clock.advance(by)

    def on_cancel(self, parent: Context) -> None:
        """Cancel a parent as user code of this driver would."""
        parent.cancel()

    def close(self) -> None:
        for queue in self._made:
            queue.terminate()
            queue.join(LIMIT)
            queue.stop(LIMIT)


class AsyncDriver(Driver):
    """The asyncio queue with plain functions, which it runs in threads."""

    is_async = True

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop of the test")
        self._thread.start()
        super().__init__()

    def _make_clock(self) -> Any:
        return AsyncManualClock()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LIMIT)

    def _make(self, name: str, **options: Any) -> Queue:
        return cast("Queue", _Proxy(self, AsyncRateEnvelopeQueue(name, **options)))

    def advance(self, by: float | str) -> None:
        self.run(self.clock.advance(by))

    def close(self) -> None:
        super().close()
        self.run(self._nothing_left())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _nothing_left(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        _, pending = await asyncio.wait(left, timeout=5) if left else (set(), set())
        assert not pending, f"the test left tasks behind: {pending}"


class CoroutineDriver(AsyncDriver):
    """The asyncio queue with coroutine functions."""

    cancels_for_real = True

    def kind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(*args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(None, function, *args)

        return wrapped


class _Proxy:
    """Calls the asyncio queue on its loop, from the thread of the test."""

    def __init__(self, driver: AsyncDriver, queue: AsyncRateEnvelopeQueue) -> None:
        self._driver = driver
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._queue, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            async def on_loop() -> Any:
                result = found(*args, **kwargs)
                return await result if asyncio.iscoroutine(result) else result

            # Why: from a handler on the loop itself, waiting for it here would be a deadlock.
            return self._driver.run(on_loop())

        return call


DRIVERS = {"threads": Driver, "asyncio": AsyncDriver, "coroutines": CoroutineDriver}


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    made = DRIVERS[request.param]()
    yield made
    made.close()


@pytest.fixture
def gate() -> Gate:
    return Gate()
