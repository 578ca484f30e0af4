"""Answers: calls the verbs of the worker's store for its children, and lets its runner know what they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import JobpipeError
from ...model.admission import Bounds
from ...model.job import JobStatus
from .messages import Call, Reply, encode, fault_of
from .verbs import FORWARDED, verb_of

if TYPE_CHECKING:
    from ...gateway.lazy_store import Gateway
    from ...gateway.signals import Signals

_WAKING = frozenset(("signal", "retry", "resume"))
"""Verbs after which there may be jobs to run."""


class Answers:
    """Those of one worker."""

    def __init__(self, gateway: Gateway, signals: Signals) -> None:
        self._store, self._async_store, _ = gateway
        self._signals = signals

    async def answer(self, call: Call) -> Reply:
        """What the store says."""
        try:
            if call.verb not in FORWARDED:
                raise JobpipeError(f"a child cannot call {call.verb!r}")
            arguments = verb_of(call.verb).decode_arguments(call.arguments)
            verb: Callable[..., Any] = getattr(self._store, call.verb)
            if call.verb == "insert":
                verb, arguments = self._async_store.insert_now, _insertion(arguments)
            result = await self._async_store.call(verb, **arguments)
            self._notify(call.verb, arguments, result)
            return Reply(call.call, result=encode(result))
        except Exception as error:
            return Reply(call.call, fault=fault_of(error))

    def _notify(self, verb: str, arguments: Mapping[str, Any], result: Any) -> None:
        """Why: what a pipe does itself it tells its own runner at once; the child has another one."""
        if verb in _WAKING:
            self._signals.notify_work()
        elif verb == "pause":
            self._signals.notify_pause(arguments["queue"])
        elif verb == "cancel":
            leased = (JobStatus.RUNNING, JobStatus.QUEUED)
            found = zip(arguments["ids"], result, strict=True)
            self._signals.notify_cancel([id for id, status in found if status in leased])


def _insertion(arguments: Mapping[str, Any]) -> dict[str, Any]:
    bounds = Bounds(*(arguments.get(name, 0) for name in ("capacity", "scheduled", "names")))
    return {"batches": arguments["batches"], "bounds": bounds}
