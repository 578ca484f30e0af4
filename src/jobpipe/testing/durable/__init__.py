"""Durable state: steps are recorded once and only under the lease; sleeps and waits end when they should; no signal is lost."""

from __future__ import annotations

from .signals import Signals
from .steps import Steps
from .suspending import Suspending


class Durable(Steps, Suspending, Signals):
    """What is asked of a store."""
