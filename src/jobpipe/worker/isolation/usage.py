"""Usage: how much memory a process has resident, and how much CPU time it has used, as the system tells it."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from pathlib import Path

CAN_MEASURE = sys.platform in ("linux", "darwin")


def resident(pid: int) -> int:
    """Bytes in memory; 0 for a process that has ended."""
    if sys.platform == "darwin":
        return _task_info(pid)[1]
    try:
        pages = Path(f"/proc/{pid}/statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * _page_size()


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that it has used; 0 for a process that has ended."""
    if sys.platform == "darwin":
        _, _, user, system, *_ = _task_info(pid)
        return (user + system) * _seconds_per_tick()
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def has_ended(child: int) -> bool:
    """Has this child of the process ended? It is not waited for by that, so that its number stays its own."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return not resident(child)
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # others have waited for it


@lru_cache(maxsize=1)
def _page_size() -> int:
    return os.sysconf("SC_PAGE_SIZE")


# macOS, which has no /proc

_PROC_PIDTASKINFO = 4
_FIELDS = ("virtual_size", "resident_size", "total_user", "total_system", "threads_user", "threads_system")
_COUNTS = 12
"""32-bit counters that follow: faults, messages, switches and so on."""


class _TaskInfo(ctypes.Structure):
    """`struct proc_taskinfo` of <sys/proc_info.h>."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in _FIELDS),
        ("counts", ctypes.c_int32 * _COUNTS),
    )


class _Timebase(ctypes.Structure):
    """`struct mach_timebase_info` of <mach/mach_time.h>."""

    _fields_ = (("numer", ctypes.c_uint32), ("denom", ctypes.c_uint32))


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _task_info(pid: int) -> tuple[int, ...]:
    """The sizes and times of a process; zeros for one that has ended."""
    info = _TaskInfo()
    size = ctypes.sizeof(info)
    if _libc().proc_pidinfo(pid, _PROC_PIDTASKINFO, ctypes.c_uint64(0), ctypes.byref(info), size) != size:
        return (0,) * len(_FIELDS)
    return tuple(getattr(info, name) for name in _FIELDS)


@lru_cache(maxsize=1)
def _seconds_per_tick() -> float:
    timebase = _Timebase()
    _libc().mach_timebase_info(ctypes.byref(timebase))
    return float(timebase.numer / timebase.denom / 1e9)
