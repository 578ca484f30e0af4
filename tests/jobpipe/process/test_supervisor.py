"""The supervisor, with real processes that run a few lines instead of the service."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ...support.processes import Program, program

PRELUDE = """
import os, signal, sys, threading, time
from jobpipe.process import supervisor
from jobpipe.errors import JobpipeError, SettingsError
from jobpipe.process.logs import setup_logging
from jobpipe.process.supervisor import Terms, run

setup_logging("text")

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # in one piece, unlike print

def good(link):
    asked = threading.Semaphore(0)
    link.on_stop(asked.release)
    link.greet({})
    link.ready()
    say("child", os.getpid())
    asked.acquire()
    say("stopped", os.getpid())
    return 0

def slow(link):
    asked, ended = threading.Semaphore(0), threading.Semaphore(0)
    signal.signal(signal.SIGUSR1, lambda *_: ended.release())
    link.on_stop(asked.release)
    link.greet({})
    link.ready()
    say("child", os.getpid())
    asked.acquire()
    say("asked")
    ended.acquire()
    return 0

def deaf(link):
    link.greet({})
    link.ready()
    say("child", os.getpid())
    while True:
        time.sleep(100)
"""

Start = Callable[[str], Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda code: stack.enter_context(program(["-c", f"{PRELUDE}\n{code}"], tmp_path))


def test_a_signal_stops_the_children_and_the_code_is_0(start: Start) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        supervisor = start("sys.exit(run(good, processes=2))")
        supervisor.line("child")
        supervisor.line("child")
        supervisor.kill(number)
        assert supervisor.code() == 0
        assert sum("stopped" in line for line in supervisor.rest()) == 2, supervisor.seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_for_the_whole_group_is_one_signal(start: Start, number: int) -> None:
    supervisor = start("sys.exit(run(good, processes=2))")
    supervisor.line("child")
    supervisor.line("child")
    os.killpg(supervisor.pid, number)
    assert supervisor.code() == 0
    assert sum("stopped" in line for line in supervisor.rest()) == 2, supervisor.seen


def test_the_same_signal_twice_at_once_is_one_signal(start: Start) -> None:
    """As `timeout` does: to the process, and then to its group."""
    supervisor = start("supervisor._SAME = 60; sys.exit(run(slow))")
    child = int(supervisor.line(r"child (\d+)")[1])
    supervisor.kill(signal.SIGTERM)
    supervisor.line("asked")
    os.killpg(supervisor.pid, signal.SIGTERM)
    os.kill(child, signal.SIGUSR1)
    assert supervisor.code() == 0


@pytest.mark.parametrize(("first", "second"), [("SIGINT", "SIGTERM"), ("SIGTERM", "SIGHUP")])
def test_a_second_signal_ends_all_at_once_with_130(start: Start, first: str, second: str) -> None:
    supervisor = start("sys.exit(run(deaf, processes=2))")
    supervisor.line("child")
    supervisor.line("child")
    supervisor.kill(signal.Signals[first])
    supervisor.line(f"{first}: stopping")
    supervisor.kill(signal.Signals[second])
    assert supervisor.code() == 130
    supervisor.rest()


def test_a_child_that_does_not_stop_is_killed_after_the_grace(start: Start) -> None:
    supervisor = start("sys.exit(run(deaf, prepare=lambda _: Terms(grace=0.1)))")
    supervisor.line("child")
    supervisor.kill(signal.SIGTERM)
    supervisor.line("did not end in time: killed")
    assert supervisor.code() == 0
    supervisor.rest()


def test_a_child_that_dies_is_replaced(start: Start) -> None:
    supervisor = start("sys.exit(run(good))")
    for _ in range(3):
        pid = int(supervisor.line(r"child (\d+)")[1])
        os.kill(pid, signal.SIGKILL)
        supervisor.line(rf"process {pid} was killed by SIGKILL; starting another")
    supervisor.line("child")
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0


def test_children_that_cannot_live_are_started_ever_more_slowly(start: Start) -> None:
    supervisor = start("sys.exit(run(lambda link: 7))")
    for pause in ("0.1", "0.2", "0.4", "0.8"):
        supervisor.line(rf"ended with code 7; starting another in {pause} s$")
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0


def test_an_exception_in_a_child_is_one_line(start: Start) -> None:
    supervisor = start("def bad(link):\n    raise ValueError('boo')\nsys.exit(run(bad))")
    supervisor.line("process .* failed exception=.*ValueError: boo")
    supervisor.line("ended with code 1; starting another")


@pytest.mark.parametrize("die_with", ["supervisor.die_with", "lambda parent: None"])
def test_children_end_with_a_supervisor_that_is_killed(start: Start, die_with: str) -> None:
    """By the kernel where it can, and by the link elsewhere, also while they hear nothing."""
    supervisor = start(f"supervisor.die_with = {die_with}\nsys.exit(run(deaf, processes=3))")
    for _ in range(3):
        supervisor.line("child")
    supervisor.kill(signal.SIGKILL)
    assert supervisor.code() == -signal.SIGKILL
    supervisor.rest()  # it waits for the children: they hold the outputs


def test_children_end_with_a_supervisor_that_is_killed_while_they_start(start: Start) -> None:
    supervisor = start(
        "supervisor.die_with = lambda parent: None\n"
        "def slow(link):\n    say('child')\n    time.sleep(100)\n"
        "sys.exit(run(slow, processes=2))"
    )
    supervisor.line("child")
    supervisor.line("child")
    supervisor.kill(signal.SIGKILL)
    supervisor.code()
    supervisor.rest()


def test_a_child_that_can_never_start_ends_all_with_its_code_and_one_line(start: Start) -> None:
    supervisor = start("sys.exit(run(lambda link: link.fault('no\\x1b such store', 2), processes=3))")
    assert supervisor.code() == 2
    assert supervisor.rest() == [r"error: no\x1b such store"]


def test_a_replacement_that_cannot_start_does_not_end_the_others(start: Start) -> None:
    supervisor = start(
        "def main(link):\n"
        "    if os.path.exists('broken'):\n"
        "        return link.fault('broken meanwhile', 2)\n"
        "    return good(link)\n"
        "sys.exit(run(main, processes=2))"
    )
    first = int(supervisor.line(r"child (\d+)")[1])
    second = int(supervisor.line(r"child (\d+)")[1])
    broken = Path(f"/proc/{supervisor.pid}/cwd/broken") if sys.platform == "linux" else None
    if broken is None:
        pytest.skip("needs /proc")
    broken.touch()
    os.kill(first, signal.SIGKILL)
    supervisor.line("cannot start: broken meanwhile")
    broken.unlink()
    supervisor.line("child")
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0
    assert f"stopped {second}" in supervisor.rest()


@pytest.mark.parametrize(
    ("error", "code"), [("SettingsError('--host', 'is wrong')", 2), ("JobpipeError('taken')", 1)]
)
def test_what_prepare_refuses_ends_all(start: Start, error: str, code: int) -> None:
    supervisor = start(
        f"def refuse(told):\n    raise {error}\nsys.exit(run(good, processes=3, prepare=refuse))"
    )
    assert supervisor.code() == code
    assert len(supervisor.rest()) == 1


def test_a_stop_before_the_child_is_ready_is_heard(start: Start) -> None:
    supervisor = start(
        "def slow(link):\n"
        "    say('child')\n"
        "    sys.stdin.read(0)\n"
        "    while not link.is_stopping:\n        time.sleep(0.001)\n"
        "    return 0 if link.greet({}) == [] else 9\n"
        "sys.exit(run(slow))"
    )
    supervisor.line("child")
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0
    assert not any("ended with code" in line for line in supervisor.rest())


def test_end_of_the_terminal_is_ignored_under_nohup(start: Start) -> None:
    supervisor = start("signal.signal(signal.SIGHUP, signal.SIG_IGN); sys.exit(run(good))")
    supervisor.line("child")
    os.killpg(supervisor.pid, signal.SIGHUP)
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0
    assert any("SIGTERM: stopping" in line for line in supervisor.rest()), supervisor.seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_a_child_stops_it_gracefully_and_it_is_replaced(start: Start, number: int) -> None:
    supervisor = start("sys.exit(run(good))")
    pid = int(supervisor.line(r"child (\d+)")[1])
    os.kill(pid, number)
    supervisor.line(f"stopped {pid}")
    supervisor.line("child")
    supervisor.kill(signal.SIGTERM)
    assert supervisor.code() == 0


def test_every_child_gets_the_sockets_also_a_replacement(start: Start) -> None:
    supervisor = start(
        "import socket\n"
        "def main(link):\n"
        "    (listener,) = link.greet({'port': 0})\n"
        "    listener.setblocking(True)\n"
        "    link.ready()\n"
        "    while True:\n"
        "        connection, _ = listener.accept()\n"
        "        connection.sendall(b'%d' % os.getpid())\n"
        "        connection.close()\n"
        "def prepare(told):\n"
        "    listener = socket.create_server(('127.0.0.1', told['port']))\n"
        "    return Terms(sockets=(listener,), announcement=f'port {listener.getsockname()[1]}')\n"
        "sys.exit(run(main, prepare=prepare))"
    )
    port = int(supervisor.line(r"port (\d+)")[1])

    def ask() -> int:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            return int(connection.recv(100))

    first = ask()
    os.kill(first, signal.SIGKILL)
    supervisor.line("starting another")
    assert ask() not in (first, supervisor.pid)


def test_the_supervisor_needs_no_asyncio(tmp_path: Path) -> None:
    """`jobpipe` itself imports its public names: here an empty package stands in its place."""
    code = (
        "import sys, types, importlib.util\n"
        "package = types.ModuleType('jobpipe')\n"
        "package.__path__ = importlib.util.find_spec('jobpipe').submodule_search_locations\n"
        "sys.modules['jobpipe'] = package\n"
        "import jobpipe.cli.main, jobpipe.process.supervisor, jobpipe.process.listening\n"
        "print('found', {'asyncio', 'rich', 'msgspec'} & set(sys.modules))"
    )
    with program(["-c", code], tmp_path) as found:
        found.line(r"found set\(\)")
