"""Trying: how often one call is sent, and what its caller gets in the end. No clock and no network of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import JobpipeError, UnreachableError
from .call import Answer, Attempt, Call, Failure, Pause, Steps, T, Verb
from .refusals import error_of, is_passing, retry_after

_BASE, _CAP = 0.1, 5.0
"""Seconds: the first pause between two attempts is at most the base, later ones double up to the cap."""
_TRIES = 3
"""A call that may be repeated waits no longer for an answer than this part of the patience."""
_SHORTEST = 1.0
"""Seconds that every attempt gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trying:
    """How a client tries."""

    url: str
    patience: float
    has_retries: bool
    now: Callable[[], float]
    jitter: Callable[[], float] = random.random

    def run(self, verb: Verb[T]) -> Steps[T]:
        """What the verb comes to."""
        try:
            call = next(verb)
            while True:
                call = verb.send((yield from self.answer(call)))
        except StopIteration as end:
            result: T = end.value
            return result

    def answer(self, call: Call) -> Steps[Answer]:
        """The answer to a call, which is one of success; raises what the service refuses, or the last failure."""
        until = self.now() + call.seconds + self.patience
        repeats = call.is_repeatable and self.has_retries
        limit = self.patience / _TRIES if repeats else self.patience
        tries = 0
        while True:
            timeout = max(min(limit, until - self.now()), _SHORTEST)
            came: Answer | Failure = yield Attempt(call, call.seconds + timeout)
            if isinstance(came, Answer) and 200 <= came.status < 300:
                return came
            error = self._error(came)
            pause = _CAP if tries > 9 else min(_CAP, _BASE * 2**tries)
            pause *= self.jitter()
            if isinstance(came, Answer):
                pause += retry_after(came)
            tries += 1
            if not repeats or not is_passing(error) or self.now() + pause >= until:
                raise error
            yield Pause(pause)

    def _error(self, came: Answer | Failure) -> JobpipeError:
        if isinstance(came, Answer):
            return error_of(came, self.url)
        text = f"the service at {self.url} cannot be reached: {came.reason}"
        return UnreachableError(text, may_have_arrived=came.may_have_arrived)
