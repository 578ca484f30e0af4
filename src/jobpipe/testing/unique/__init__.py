"""Unique names: of the jobs of one name at most one waits and at most one runs, whatever happens to them."""

from __future__ import annotations

from .crowd import Crowd
from .running import WhileOneRuns
from .waiting import WaitingAgain, WhileOneWaits


class Unique(WhileOneWaits, WhileOneRuns, WaitingAgain, Crowd):
    """What is asked of a store."""
