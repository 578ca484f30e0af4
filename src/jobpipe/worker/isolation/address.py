"""Address: `module:attribute` by which a child finds a job type; and which types cannot have one.

Wherever a type cannot be isolated, that is a SettingsError before anything starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import SettingsError
from ...jobtypes.builtin import is_built_in
from ...jobtypes.terms import MOST_JOBS
from .usage import CAN_MEASURE

if TYPE_CHECKING:
    from ...jobtypes.jobtype import JobType

ALL = "all"
_FIELD = "isolate (JOBPIPE_ISOLATE)"


def isolated(types: Mapping[str, JobType[..., Any]], mode: str, app: str | None) -> dict[str, str]:
    """The addresses of the types to isolate, by name; `app` is that of the pipe, where it was loaded by one.

    With the mode ALL these are all types that do not say otherwise, but for the built-in ones, which never block.
    """
    chosen = {
        name: job_type
        for name, job_type in types.items()
        if job_type.isolate or (mode == ALL and job_type.isolate is None and not is_built_in(job_type))
    }
    if not chosen:
        return {}
    if not (CAN_MEASURE and hasattr(os, "killpg")):
        raise SettingsError(_FIELD, f"works on Linux and macOS only, and this is {sys.platform}")
    if not sys.executable:
        raise SettingsError(_FIELD, "needs a Python interpreter to start, and sys.executable names none")
    return {name: app or _address_of(job_type) for name, job_type in chosen.items()}


def warnings_of(types: Mapping[str, JobType[..., Any]], isolated: Container[str]) -> Iterator[str]:
    """What is said of types that are not isolated here, and holds only where they are; one line for each type."""
    for name, job_type in types.items():
        given = {
            "memory": job_type.memory is not None,
            "max_jobs_per_child": job_type.max_jobs_per_child != MOST_JOBS,
        }
        options = " and ".join(option for option, is_given in given.items() if is_given)
        if options and name not in isolated:
            otherwise = "" if job_type.isolate is False else ", or set JOBPIPE_ISOLATE=all"
            yield f"the type {name!r} is not isolated and ignores {options}: give it isolate=True{otherwise}"


def _address_of(job_type: JobType[..., Any]) -> str:
    name = job_type.__wrapped__.__module__
    if name == "__main__":
        raise SettingsError(
            _FIELD,
            f"cannot be had for the type {job_type.name!r}: its handler is in the main program, "
            "which child processes cannot import; move it to a module of its own",
        )
    for attribute, value in vars(sys.modules.get(name, object)).items():
        if value is job_type or value is job_type.pipe:
            return f"{name}:{attribute}"
    raise SettingsError(
        _FIELD,
        f"cannot be had for the type {job_type.name!r}: the module {name!r} of its handler has neither the job type nor "
        "its Jobpipe as an attribute, and so child processes cannot find it",
    )
