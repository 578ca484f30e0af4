"""Guard: what goes wrong in a command is one line on stderr and an exit code, never a traceback.

2 for what was asked wrongly (a setting, a value), 130 for Ctrl+C, 1 for everything else.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import typer

from ..errors import BadInputError, JobpipeError, SettingsError
from ..process.logs import escape
from .render.spelling import as_given, as_typed

P = ParamSpec("P")
R = TypeVar("R")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """The command, with its errors as lines."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            raise fail("interrupted", 130) from None
        except BadInputError as error:
            raise fail(as_typed(error, command), 2) from None
        except SettingsError as error:
            raise fail(as_given(error, kwargs), 2) from None
        except JobpipeError as error:
            raise fail(str(error)) from None
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # who read our output has seen enough: not worth a word
            raise fail(f"unexpected {type(error).__name__}: {error}") from None

    return run


def fail(text: str, code: int = 1) -> typer.Exit:
    """Say what is wrong; raise what comes back."""
    typer.echo(f"error: {escape(text)}", err=True)
    return typer.Exit(code)
