"""What a worker and a child say to each other over their socket pair: frames of a length and a value in MessagePack.

Payloads and results are JSON, as bytes within it. Nothing is ever unpickled. Each message of a run has the run's number, so
that what a thread of an earlier run says late is not taken for the next one's.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
from msgspec import Struct

from ... import errors
from ...model.job import Progress
from ...model.lease import Claim, Outcome
from ...model.logs import LogChunk
from ...settings import Settings
from ...stores.base import Capabilities

LARGEST: Final = 256 * 1_048_576
"""Bytes of a frame; more than any result, or page of jobs, takes."""
_LENGTH = struct.Struct(">I")


class Fault(Struct, frozen=True):
    """An error of ours, to be raised on the other side."""

    type: str
    text: str
    fields: dict[str, Any] = {}


# What the worker says


class Setup(Struct, frozen=True, tag=True):
    """How to be like the worker; the first message."""

    addresses: dict[str, str]
    """`module:attribute` of the pipe, or of a job type, by the type's name."""
    settings: Settings
    capabilities: Capabilities
    log_level: int
    """Of the root logger."""


class Start(Struct, frozen=True, kw_only=True, tag=True):
    """Run a job."""

    run: int
    claim: Claim
    started_at: float
    store_now: float
    """What time it is by the store's clock."""
    keeps_logs: bool
    memory: int | None = None
    """Bytes that it may have."""
    trace: dict[str, str] = {}
    """The headers of the span of the run."""


class Reply(Struct, frozen=True, tag=True):
    """The answer to a call."""

    call: int
    result: bytes = b""
    """MessagePack, where there is no fault."""
    fault: Fault | None = None


class Leave(Struct, frozen=True, tag=True):
    """End in peace."""


ToChild = Setup | Start | Reply | Leave


# What the child says


class Ready(Struct, frozen=True, tag=True):
    """It runs jobs from now on."""


class Broken(Struct, frozen=True, tag=True):
    """It cannot run jobs, and ends."""

    text: str
    traceback: str


class Call(Struct, frozen=True, tag=True):
    """Call a verb of the store."""

    call: int
    verb: str
    arguments: bytes


class Finishing(Struct, frozen=True, tag=True):
    """The run is about to write its outcome in a transaction of its own; the reply is what it has logged, as chunks."""

    call: int
    run: int


class Report(Struct, frozen=True, tag=True):
    """How far the run is."""

    run: int
    progress: Progress


class Line(Struct, frozen=True, tag=True):
    """What the run has logged; for the job's log."""

    run: int
    level: str
    logger: str
    message: str


class Printed(Struct, frozen=True, tag=True):
    """What the run has printed; for the job's log."""

    run: int
    text: str


class Record(Struct, frozen=True, tag=True):
    """What the child has logged; for the log of the worker."""

    level: int
    logger: str
    message: str
    job: tuple[str, str, int] | None
    """Its id, type and attempt."""


class Lends(Struct, frozen=True, tag=True):
    """The run writes in a transaction of its own, which may stay open."""

    run: int


class Lost(Struct, frozen=True, tag=True):
    """The store says that the lease of the run is lost."""

    run: int


class End(Struct, frozen=True, tag=True):
    """The run has ended."""

    run: int
    outcome: Outcome
    is_finishing: bool
    """Has it written its outcome in a transaction of its own?"""
    cpu: float
    """Seconds of CPU that the process has used since it started."""


ToWorker = Ready | Broken | Call | Finishing | Report | Line | Printed | Record | Lends | Lost | End

CHUNKS: Final = msgspec.msgpack.Decoder(tuple[LogChunk, ...])
to_child: Final = msgspec.msgpack.Decoder(ToChild)
to_worker: Final = msgspec.msgpack.Decoder(ToWorker)


def plain(text: str) -> str:
    """The text as it can be sent: neither of a class of its own, nor with lone surrogates, as names of files may have."""
    return text.encode("utf-8", "backslashreplace").decode()


def fault_of(error: BaseException) -> Fault:
    """An error as a message. Why no fields of those that are not ours: they may be anything."""
    fields = dict(vars(error)) if isinstance(error, errors.JobpipeError) else {}
    return Fault(type(error).__name__, plain(str(error)), fields)


def error_of(fault: Fault) -> Exception:
    """The error that it stands for. Why not by its class: each has arguments of its own."""
    kind = getattr(errors, fault.type, None)
    if not (isinstance(kind, type) and issubclass(kind, errors.JobpipeError)):
        return errors.StoreError(f"{fault.type}: {fault.text}")
    error = kind.__new__(kind)
    error.args = (fault.text,)
    vars(error).update(fault.fields)
    return error


def _as_known(value: object) -> Fault | str:
    """What msgspec does not know by itself."""
    if isinstance(value, BaseException):
        return fault_of(value)
    if isinstance(value, str):  # of a class of its own
        return plain(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be sent to another process")


encode = msgspec.msgpack.Encoder(enc_hook=_as_known).encode


def frame(message: ToChild | ToWorker) -> bytes:
    """The message as it is sent."""
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now; ValueError for one that is too large."""
        buffer = self._buffer
        buffer += data
        found, at = [], 0
        while len(buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if length > LARGEST:
                raise ValueError(f"a message of {length:,} bytes is too large")
            if len(buffer) - at - _LENGTH.size < length:
                break
            at += _LENGTH.size
            found.append(bytes(buffer[at : at + length]))
            at += length
        del buffer[:at]
        return found
