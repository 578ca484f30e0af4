"""A Ctrl+C that waits until a step is done."""

from __future__ import annotations

import os
import signal

import pytest
import typer

from jobpipe.cli.guard import guarded
from jobpipe.cli.interrupts import held


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_of_a_command_is_a_line_and_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        guarded(interrupt)()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_interrupt_is_raised_when_the_block_has_ended() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), held():
        interrupt()
        done.append("the step")
    assert done == ["the step"]


def test_a_second_interrupt_is_raised_at_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), held():
        interrupt()
        interrupt()
        done.append("the step")
    assert done == []


def test_an_error_of_the_block_is_not_hidden_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(LookupError), held():
        raise LookupError
    assert signal.getsignal(signal.SIGINT) is before
    with held():
        pass
    assert signal.getsignal(signal.SIGINT) is before
