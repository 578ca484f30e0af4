"""Loading: the pipe that `module:attribute` names, as the command line gives it.

What is wrong with the name is a SettingsError; what goes wrong inside the user's module is an AppBrokenError
that carries its traceback. Nothing from a store ever comes here.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from types import ModuleType, TracebackType

from ..app import Jobpipe
from ..errors import JobpipeError, SettingsError


class AppBrokenError(JobpipeError):
    """The user's module failed while it was imported; `details` is its traceback."""

    def __init__(self, module: str, error: BaseException) -> None:
        super().__init__(f"the module {module!r} cannot be imported: {type(error).__name__}: {error}")
        self.details = "".join(traceback.format_exception(type(error), error, _outside(error.__traceback__)))


def load_pipe(spec: str | None) -> Jobpipe:
    """The pipe that the text names; without one, a pipe with the built-in job types."""
    if spec is None:
        return Jobpipe(builtins=True)
    name, path = _split(spec)
    module = _imported(name)
    found: object = module
    for step in path.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            raise SettingsError("APP", f"{spec!r}: {name!r} has no {path!r}{_candidates(module)}") from None
    if not isinstance(found, Jobpipe):
        raise SettingsError(
            "APP",
            f"{spec!r} is not a Jobpipe but a value of type {type(found).__name__!r}{_candidates(module)}",
        )
    found.address = spec
    return found


def _split(spec: str) -> tuple[str, str]:
    module, _, path = spec.partition(":")
    parts = [*module.split("."), *path.split(".")]
    if module.endswith(".py") or os.sep in module:
        likely = module.removesuffix(".py").strip("./").replace(os.sep, ".")
        raise SettingsError(
            "APP", f"must name a module, not a file: try {likely}:{path or 'pipe'}, got {spec!r}"
        )
    if not all(part.isidentifier() for part in parts):
        raise SettingsError("APP", f"must be module:attribute, such as app:pipe, got {spec!r}")
    return module, path


def _imported(name: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path:  # a console script has its own folder there
        sys.path.insert(0, folder)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise SettingsError(
                "APP",
                f"names the module {name!r}, but there is no {error.name!r} in {folder} or the installed packages",
            ) from None
        raise AppBrokenError(name, error) from error
    except (Exception, SystemExit) as error:
        raise AppBrokenError(name, error) from error


def _candidates(module: ModuleType) -> str:
    """The names of the pipes that are there."""
    names = [name for name, value in vars(module).items() if isinstance(value, Jobpipe)]
    return f"; try {module.__name__}:{names[0]}" if names else ""


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in the user's module: how we got there is of no interest."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file != __file__ and "importlib" not in file:
            return trace
        trace = trace.tb_next
    return None
