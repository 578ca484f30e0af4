"""Logs: Django logs each task, too. A failure is an ERROR once, and the log of a job has what its task has logged."""

from __future__ import annotations

import logging

from ...model.outcome import cause_of
from ...worker.capture import not_kept
from .framework import LOGGER

_TOLD = "_jobpipe_told"
_django = logging.getLogger(LOGGER)
_jobs = logging.getLogger("jobpipe.jobs")


def told_by_django(error: BaseException) -> None:
    """The error that a task has failed with for good, after `task_finished`: Django's own receiver has logged it."""
    if _django.isEnabledFor(logging.ERROR):
        vars(cause_of(error))[_TOLD] = True


def _once(record: logging.LogRecord) -> bool:
    """Turn the second ERROR into a line at INFO. Why this one: Django's users collect errors from Django's logger."""
    if record.levelno < logging.ERROR or not record.exc_info or not hasattr(record.exc_info[1], _TOLD):
        return True
    record.levelno, record.levelname = logging.INFO, logging.getLevelName(logging.INFO)
    record.exc_info = record.exc_text = None
    return _jobs.isEnabledFor(logging.INFO)


not_kept.add(LOGGER)
_jobs.addFilter(_once)
