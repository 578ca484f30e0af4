"""Supervisor: keeps child processes running, replaces those that die, and ends them all.

It forks, and so has one thread, imports nothing of the user's and no asyncio. Each child is held by a
socket pair (`link.py`): the child tells what it was set to, is given the listening sockets, and says when it is
ready; a byte asks it to stop, and the end of the stream, which a killed supervisor leaves, ends it at once.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NoReturn

from ..errors import JobpipeError, SettingsError
from ..worker.isolation.orphans import die_with
from .acceptors import Acceptor, State, update
from .link import CLOSE, GO, OPEN, STOP, SupervisorLink
from .logs import escape

logger = logging.getLogger("jobpipe.process.supervisor")

_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Each asks to stop; SIGHUP comes when the terminal is closed."""
_SIGNALS = (*_STOPS, signal.SIGCHLD)
_SAME = 0.05
"""Seconds within which the same signal is one: `timeout` and others signal the process, then its group."""
_EXTRA = 2.0
"""Seconds that children have beyond the grace."""
_QUICK = 1.0
"""Seconds that a child must have lived to be replaced without a pause."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LOOK = 0.5
"""Seconds between two looks for changed files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for all children, once the first has told what it was set to."""

    sockets: tuple[socket.socket, ...] = ()
    grace: float = 30.0
    announcement: str = "ready"


@dataclass(slots=True)
class _Child:
    """A process, and our end of its link."""

    pid: int
    channel: socket.socket
    started_at: float
    quick_deaths: int
    """Of its predecessors in a row."""
    unread: bytes = b""
    is_ready: bool = False
    is_leaving: bool = False
    """Was it asked to stop, it alone?"""
    is_told: bool = False
    """Was it told to stop then?"""
    acceptor: Acceptor = field(default_factory=Acceptor)
    has_sockets: bool = False


def run(
    main: Callable[[SupervisorLink], int],
    *,
    processes: int = 1,
    prepare: Callable[[Mapping[str, Any]], Terms] = lambda _: Terms(),
    watch: Callable[[], str | None] | None = None,
) -> int:
    """Keep so many processes running `main` until a signal comes; the exit code.

    `prepare` gets what the first child tells, and may refuse it with a JobpipeError. When `watch` names something that has
    changed, all children are replaced. The program has nothing to do but to end after it.
    """
    return _Supervisor(main, processes, prepare, watch).run()


class _Supervisor:
    def __init__(
        self,
        main: Callable[[SupervisorLink], int],
        processes: int,
        prepare: Callable[[Mapping[str, Any]], Terms],
        watch: Callable[[], str | None] | None,
    ) -> None:
        self._main = main
        self._prepare = prepare
        self._watch = watch
        self._look_at = inf if watch is None else 0.0
        self._terms: Terms | None = None
        self._children: dict[int, _Child] = {}
        self._starts: list[tuple[float, int]] = [(0.0, 0)] * processes
        """When to start a child, and how many before it died quickly."""
        self._was_ready = False
        """Was any child ever?"""
        self._is_announced = False
        self._about = ""
        """What the children run, as the last one told it."""
        self._code: int | None = None
        """The exit code, as soon as the end is decided; then no child is started any more."""
        self._is_stopping = False
        self._kill_at: float | None = None
        self._last_signal = (0, 0.0)
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()

    def run(self) -> int:
        for end in (self._wake, self._waker):
            end.setblocking(False)
        self._selector.register(self._wake, selectors.EVENT_READ)
        # Why handlers that do nothing: only a signal that has one is written to the wake-up socket.
        # They stay: the program ends after this, and a late signal must not change how.
        for number in _SIGNALS:
            if not _is_ignored(number):
                signal.signal(number, lambda *_: None)
        old_waker = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        try:
            while self._children or self._starts:
                self._start_due()
                for key, _ in self._selector.select(self._patience()):
                    if key.data is None:
                        self._handle_signals()
                    elif key.data.pid in self._children:
                        self._read_messages(key.data)
                self._reload()
                self._update_acceptors()
                if self._kill_at is not None and time.monotonic() >= self._kill_at:
                    self._kill_late()
            if self._is_stopping:
                logger.info("all processes have ended")
            return self._code or 0
        finally:
            signal.set_wakeup_fd(old_waker)
            self._close_all()

    def _patience(self) -> float | None:
        """Seconds until there is something to do by the clock."""
        times = [at for at, _ in self._starts] + ([] if self._kill_at is None else [self._kill_at])
        times += [self._look_at] if self._watch is not None else []
        acceptors = [child.acceptor for child in self._children.values()] if self._code is None else []
        times += [acceptor.awaited_until for acceptor in acceptors if acceptor.state is State.CLOSING]
        return max(min(times) - time.monotonic(), 0.0) if times else None

    # Starting

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [start for start in self._starts if start[0] <= now]
        self._starts = [start for start in self._starts if start[0] > now]
        for _, quick_deaths in due:
            self._start(quick_deaths)

    def _start(self, quick_deaths: int) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        # Why blocked: a signal between the fork and the child's own handlers would wake the supervisor instead.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become_child(theirs, parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        theirs.close()
        ours.setblocking(False)
        child = _Child(pid, ours, time.monotonic(), quick_deaths)
        self._children[pid] = child
        self._selector.register(ours, selectors.EVENT_READ, child)

    def _become_child(self, channel: socket.socket, parent: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            self._close_all()  # above all the leashes of others: they must end with the supervisor
            die_with(parent)
            link = SupervisorLink(channel)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # Why: the terminal sends it to the whole group; the supervisor passes it on.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for number in (signal.SIGTERM, signal.SIGHUP):
                if not _is_ignored(number):
                    signal.signal(number, lambda *_: link.leave())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            code = self._main(link)
        except BaseException:
            logger.exception("process %d failed", os.getpid())
        finally:
            try:
                logging.shutdown()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)  # without waiting for threads: a handler may be stuck in one

    def _close_all(self) -> None:
        self._selector.close()
        for end in (self._wake, self._waker, *(child.channel for child in self._children.values())):
            end.close()
        for listener in self._terms.sockets if self._terms else ():
            listener.close()

    # Listening to children

    def _read_messages(self, child: _Child) -> None:
        """Read what the child has told; how it ended comes with SIGCHLD."""
        while True:
            try:
                data = child.channel.recv(65_536)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(child.channel)
                break
            *lines, child.unread = (child.unread + data).split(b"\n")
            for line in lines:
                self._handle_message(child, json.loads(line))

    def _handle_message(self, child: _Child, message: dict[str, Any]) -> None:
        if "fault" in message:
            self._handle_fault(child, message["fault"], message["code"])
        elif "ready" in message:
            child.is_ready = True
            self._was_ready = True
            child.acceptor.is_ready = not child.is_leaving
            self._announce()
        elif "closed" in message:
            if child.acceptor.state is State.CLOSING:
                child.acceptor.state = State.CLOSED
        elif "leaves" in message:
            child.is_leaving, child.acceptor.is_ready = True, False
        elif self._code is None:
            self._about = f"{about}; " if (about := message["settings"].get("about")) else ""
            self._give_sockets(child, message["settings"])

    def _announce(self) -> None:
        """Say so once, as soon as all are ready: who is told to come in must meet none that is not."""
        is_complete = not self._starts and all(child.is_ready for child in self._children.values())
        if is_complete and not self._is_announced and self._code is None and self._terms is not None:
            self._is_announced = True
            logger.info("%s%s", self._about, self._terms.announcement)

    def _give_sockets(self, child: _Child, settings: Mapping[str, Any]) -> None:
        if self._terms is None:
            try:
                self._terms = self._prepare(settings)
            except JobpipeError as error:
                self._give_up(str(error), 2 if isinstance(error, SettingsError) else 1)
                return
        numbers = [listener.fileno() for listener in self._terms.sockets]
        try:
            socket.send_fds(child.channel, [GO], numbers)
            child.has_sockets = bool(numbers)
        except OSError:
            pass  # it is dead; SIGCHLD will tell

    def _update_acceptors(self) -> None:
        """Have the right ones accept connections. One that leaves is stopped once it has none, or if no other is ready."""
        if self._code is not None:
            return
        children = {child.acceptor: child for child in self._children.values() if child.has_sockets}
        for acceptor in update(list(children), time.monotonic()):
            _tell(children[acceptor], OPEN if acceptor.state is State.OPEN else CLOSE)
        for child in self._children.values():
            if child.is_leaving and not child.is_told and child.acceptor.state is not State.CLOSING:
                child.is_told = True
                _tell(child, STOP)

    def _handle_fault(self, child: _Child, text: str, code: int) -> None:
        """A child cannot even start: then none can, unless one could before, or the program is about to change."""
        if self._was_ready or self._watch is not None:
            logger.error("process %d cannot start: %s", child.pid, text)
        elif self._code is None:
            self._give_up(text, code)

    def _give_up(self, text: str, code: int) -> None:
        lines = "\n".join(map(escape, text.splitlines()))
        sys.stderr.write(f"{lines}\n" if "\n" in lines else f"error: {lines}\n")
        self._end(code)
        self._kill_all()

    # Reloading

    def _reload(self) -> None:
        """Replace all children if something has changed; one that could not start is tried again only then."""
        now = time.monotonic()
        if self._watch is None or self._code is not None or now < self._look_at:
            return
        self._look_at = now + _LOOK
        changed = self._watch()
        if changed is None:
            return
        logger.info("%s has changed: restarting", escape(changed))
        self._is_announced = False
        self._starts = [(now, 0) for _ in self._starts]
        for child in self._children.values():
            child.is_leaving, child.acceptor.is_ready = True, False

    # Ending

    def _handle_signals(self) -> None:
        for number in self._wake.recv(4096):
            if number == signal.SIGCHLD:
                self._reap()
            elif number in _STOPS:
                self._handle_stop(number)

    def _handle_stop(self, number: int) -> None:
        now = time.monotonic()
        last, at = self._last_signal
        self._last_signal = (number, now)
        if number == last and now - at < _SAME:
            return
        name = signal.Signals(number).name
        if self._is_stopping:
            logger.warning("%s again: ending at once", name)
            self._end(130)
            self._kill_all()
        elif self._code is None:
            grace = (self._terms or Terms()).grace
            logger.info("%s: stopping, running jobs have %g s to end", name, grace)
            self._is_stopping = True
            self._kill_at = now + grace + _EXTRA
            self._end(0)
            for child in self._children.values():
                _tell(child, STOP)

    def _end(self, code: int) -> None:
        self._code = code
        self._starts = []

    def _kill_late(self) -> None:
        for pid in self._children:
            logger.warning("process %d did not end in time: killed", pid)
        self._kill_all()

    def _kill_all(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)  # not yet waited for, so the number is still its own
        self._kill_at = None

    def _reap(self) -> None:
        """Wait for all that have ended; also for orphans, which come to us where we are process 1."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.get(pid)
            if child is not None:
                if child.channel in self._selector.get_map():
                    self._read_messages(child)
                if child.channel in self._selector.get_map():
                    self._selector.unregister(child.channel)
                del self._children[pid]
                child.channel.close()
                self._replace(child, os.waitstatus_to_exitcode(status))

    def _replace(self, child: _Child, code: int) -> None:
        how = f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        if self._code is not None:
            if code > 0 and self._is_stopping:
                logger.warning("process %d %s", child.pid, how)
            return
        if self._watch is not None and (child.is_leaving or not child.is_ready):
            self._starts.append((time.monotonic() if child.is_leaving else inf, 0))
            return
        was_quick = not child.is_ready or time.monotonic() - child.started_at < _QUICK
        quick_deaths = child.quick_deaths + 1 if was_quick else 0
        pause = min(_FIRST_PAUSE * 2 ** (quick_deaths - 1), _LONGEST_PAUSE) if quick_deaths else 0.0
        logger.error("process %d %s; starting another%s", child.pid, how, f" in {pause:g} s" if pause else "")
        self._starts.append((time.monotonic() + pause, quick_deaths))


def _tell(child: _Child, command: bytes) -> None:
    try:
        child.channel.send(command)
    except OSError:
        pass  # it is dead; SIGCHLD will tell


def _is_ignored(number: int) -> bool:
    """Was it so when we began? `nohup` has the end of a terminal ignored."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
