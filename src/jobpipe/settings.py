"""Settings: what can be set, from flags, the environment, a `.env` file and the constructor, in this order.

One table says all of a setting: its name, how it is read, and its default. A wrong value is a SettingsError
that names the setting as the user wrote it, and never shows a secret.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, Self, TypedDict

from .errors import BadInputError, SettingsError
from .failpoints import VARIABLE
from .model.ids import read_names, read_queues, slots_of
from .model.text import did_you_mean
from .model.url import BadUrlError, read_target

_PREFIX = "JOBPIPE_"
DEFAULT_STORE = "sqlite:///jobpipe.db"
_LONGEST = 10.0**9
"""Seconds, some 30 years: what every clock and every wait can still count."""
_SWITCH = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}


def _integer(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.strip().isascii() or "_" in text:
            raise ValueError
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    read.__doc__ = f"a whole number from {least} to {most}"
    return read


def _seconds(least: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = float(text)
        if not isfinite(value) or not least <= value <= _LONGEST or "_" in text:
            raise ValueError
        return value

    read.__doc__ = f"a number of seconds from {least:g} to {_LONGEST:,.0f}"
    return read


def _text(text: str) -> str:
    """a non-empty text"""
    if not text.strip():
        raise ValueError
    return text.strip()


def _token(text: str) -> str:
    """printable ASCII characters without spaces, not empty"""
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError  # what no header can carry, no caller can show
    return text


def _list(text: str) -> tuple[str, ...]:
    """a comma-separated list"""
    return tuple(part.strip() for part in text.split(",") if part.strip())


class _WrongPart(ValueError):
    """Says itself which part of a value is wrong."""


def _targets(text: str) -> tuple[str, ...]:
    """a comma-separated list of origins, such as https://api.example.com or https://*.example.com"""
    texts = _list(text)
    for each in texts:
        try:
            read_target(each)
        except BadUrlError as error:
            shown = each.rpartition("@")[2].partition("?")[0]  # there may be secrets before and behind
            raise _WrongPart(f"{shown[:60]!r} {error}") from None
    return texts


def _switch(text: str) -> bool:
    """on or off (also: true or false, yes or no, 1 or 0)"""
    try:
        return _SWITCH[text.strip().lower()]
    except KeyError:
        raise ValueError from None


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        text = text.strip().lower()
        if text not in words:
            raise ValueError
        return text

    read.__doc__ = f"{', '.join(words[:-1])} or {words[-1]}"
    return read


def _setting(default: Any, env: str, read: Callable[[str], Any], help: str, *, secret: bool = False) -> Any:
    metadata = {"env": env, "read": read, "help": help, "secret": secret}
    return field(default=default, repr=not secret, metadata=metadata)


class Chosen(TypedDict, total=False):
    """Which jobs a process runs, where a call says so."""

    queues: Mapping[str, int] | Collection[str] | None
    except_queues: Collection[str] | None
    types: Collection[str] | None


class _Given(NamedTuple):
    """A value as it was found."""

    rank: int
    """0 for a flag; the higher, the weaker."""
    source: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, read and checked."""

    workers: int = _setting(
        4, "WORKERS", _integer(0, 10_000), "jobs to run at once in each process; 0: API only"
    )
    queues: tuple[str, ...] = _setting(
        (),
        "JOBPIPE_QUEUES",
        read_queues,
        "run only jobs of these queues; with slots for each: mail=6,media=2",
    )
    except_queues: tuple[str, ...] = _setting(
        (), "JOBPIPE_EXCEPT_QUEUES", read_names, "run no jobs of these queues"
    )
    types: tuple[str, ...] = _setting((), "JOBPIPE_TYPES", read_names, "run only jobs of these types")
    queue_size: int = _setting(
        64,
        "QUEUE_SIZE",
        _integer(0, 10**12),
        "ready jobs a queue may have before HTTP callers are refused; 0: no limit",
    )
    scheduled_size: int = _setting(
        100_000,
        "JOBPIPE_SCHEDULED_SIZE",
        _integer(0, 10**12),
        "scheduled and waiting jobs the store may have before HTTP callers are refused; 0: no limit",
    )
    max_names: int = _setting(
        10_000,
        "JOBPIPE_MAX_NAMES",
        _integer(0, 10**9),
        "pairs of queue and type that may have jobs before HTTP callers are refused a new one; 0: no limit",
    )
    store: str = _setting(
        DEFAULT_STORE,
        "JOBPIPE_STORE",
        _text,
        "URL of the store: sqlite:///path, postgresql://…, redis://… or memory://",
        secret=True,
    )
    host: str = _setting("127.0.0.1", "JOBPIPE_HOST", _text, "address to listen on")
    port: int = _setting(8080, "JOBPIPE_PORT", _integer(0, 65_535), "port to listen on; 0: any free port")
    token: str | None = _setting(None, "JOBPIPE_TOKEN", _token, "token that callers must send", secret=True)
    read_token: str | None = _setting(
        None, "JOBPIPE_READ_TOKEN", _token, "token that allows only reading", secret=True
    )
    token_file: str | None = _setting(None, "JOBPIPE_TOKEN_FILE", _text, "file that contains the token")
    max_payload: int = _setting(
        262_144, "JOBPIPE_MAX_PAYLOAD", _integer(1, 2**30), "maximum size of a payload, in bytes of JSON"
    )
    keep: float = _setting(
        604_800.0, "JOBPIPE_KEEP", _seconds(0), "seconds to keep finished jobs, except failed ones"
    )
    keep_failed: float = _setting(
        2_592_000.0, "JOBPIPE_KEEP_FAILED", _seconds(0), "seconds to keep failed jobs"
    )
    lease: float = _setting(
        30.0,
        "JOBPIPE_LEASE",
        _seconds(0.1),
        "seconds without a heartbeat after which a worker counts as lost",
    )
    grace: float = _setting(
        30.0, "JOBPIPE_GRACE", _seconds(0), "seconds that running jobs get to finish at a stop"
    )
    http_targets: tuple[str, ...] = _setting(
        (), "JOBPIPE_HTTP_TARGETS", _targets, "origins that http jobs may call; none: http jobs are off"
    )
    allowed_hosts: tuple[str, ...] = _setting(
        (), "JOBPIPE_ALLOWED_HOSTS", _list, "additional host names of this service"
    )
    builtins: bool = _setting(
        False,
        "JOBPIPE_BUILTINS",
        _switch,
        "enable the built-in types sleep and fail; always on without APP",
    )
    tracing: bool = _setting(
        False, "JOBPIPE_TRACING", _switch, "OpenTelemetry spans of jobs; needs the extra opentelemetry"
    )
    log: str = _setting("text", "JOBPIPE_LOG", _one_of("text", "json"), "log format: text or json")
    log_level: str = _setting(
        "info",
        "JOBPIPE_LOG_LEVEL",
        _one_of("debug", "info", "warning", "error"),
        "least important lines to log: debug, info, warning or error",
    )
    job_logs: str = _setting(
        "logging",
        "JOBPIPE_JOB_LOGS",
        _one_of("off", "logging", "all"),
        "what to keep of the logs of jobs: off, logging, or all (also print)",
    )
    isolate: str = _setting(
        "none", "JOBPIPE_ISOLATE", _one_of("none", "all"), "job types to run in child processes: none or all"
    )

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        *,
        defaults: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        env_file: Path | str = ".env",
        arguments: Mapping[str, Any] | None = None,
    ) -> Self:
        """Flags win over the environment, that over the `.env` file, that over the defaults of the program.

        Arguments of a call win over all. All are given by field name; None counts as not given.
        """
        flags, defaults, arguments = flags or {}, defaults or {}, arguments or {}
        table = {each.name: each for each in fields(cls)}
        unknown = sorted((flags.keys() | defaults.keys()) - table.keys())
        if unknown:
            raise SettingsError(unknown[0], f"is not a known setting{did_you_mean(unknown[0], table)}")
        environ = os.environ if environ is None else environ
        from_file = read_env_file(Path(env_file))
        given = {}
        for name, each in table.items():
            names = variables_of(each)
            sources = [
                _Given(0, name, arguments.get(name)),
                _Given(0, flag_of(name), flags.get(name)),
                *(_Given(1, env, environ.get(env)) for env in names),
                *(_Given(2, f"{env} (in {env_file})", from_file.get(env)) for env in names),
                _Given(3, name, defaults.get(name)),
            ]
            found = next((each for each in sources if each.value is not None), None)
            if found is not None:
                given[name] = found._replace(value=_read(found.source, each, found.value))
        _open_token_file(given, table["token"])
        _check_read_token(given)
        _check_queues(given)
        return cls(**{name: each.value for name, each in given.items()})


def own_queue_size(flags: Mapping[str, Any], defaults: Mapping[str, Any]) -> int:
    """The `queue_size` that a program was given. Why not that of the environment: it is for callers over HTTP."""
    flags, defaults = (
        {name: value for name, value in given.items() if name == "queue_size"} for given in (flags, defaults)
    )
    return Settings.load(
        flags, defaults={"queue_size": 0} | defaults, environ={}, env_file=os.devnull
    ).queue_size


def flag_of(name: str) -> str:
    """The flag of a setting on the command line."""
    return "--" + name.replace("_", "-")


def variables_of(setting: Field[Any]) -> list[str]:
    """The names of a setting in the environment, the one that wins first: `WORKERS` has a longer one, too."""
    name = setting.metadata["env"]
    return [name] if name.startswith(_PREFIX) else [f"{_PREFIX}{name}", name]


def _read(source: str, setting: Field[Any], value: Any) -> Any:
    read = setting.metadata["read"]
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    is_many = isinstance(value, Collection) and not isinstance(value, str)
    text = ",".join(map(str, value)) if is_many else str(value)
    try:
        return read(text)
    except (_WrongPart, BadInputError) as error:
        raise SettingsError(source, f"must be {read.__doc__}: {error}") from None
    except ValueError:
        shown = repr(text) if len(text) <= 60 else f"{text[:60]!r}…"
        if setting.metadata["secret"]:
            shown = "another value (not shown)" if text.strip() else "an empty value"
        raise SettingsError(source, f"must be {read.__doc__}, got {shown}") from None


def _open_token_file(given: dict[str, _Given], setting: Field[Any]) -> None:
    """Take the token from the file, unless it was given itself, and no weaker than the file was."""
    file = given.get("token_file")
    if file is None or ("token" in given and given["token"].rank <= file.rank):
        return
    try:
        text = Path(file.value).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(file.source, f"cannot be read: {error.strerror}: {file.value!r}") from None
    except UnicodeDecodeError:
        raise SettingsError(file.source, f"is not a text file: {file.value!r}") from None
    given["token"] = file._replace(value=_read(f"the token in {file.value!r} ({file.source})", setting, text))


def _check_read_token(given: Mapping[str, _Given]) -> None:
    if "read_token" not in given:
        return
    if "token" not in given:
        raise SettingsError(
            given["read_token"].source, "requires JOBPIPE_TOKEN: without it, every caller could write"
        )
    if given["read_token"].value == given["token"].value:
        raise SettingsError(
            given["read_token"].source, "must differ from JOBPIPE_TOKEN: it must not allow writing"
        )


def _check_queues(given: dict[str, _Given]) -> None:
    """Slots by queue say how many workers there are."""
    queues, others, workers = (given.get(name) for name in ("queues", "except_queues", "workers"))
    if queues is None:
        return
    if others is not None:
        raise SettingsError(
            others.source,
            f"cannot be combined with {queues.source}: name the queues to serve, or those not to",
        )
    slots = [own for own in slots_of(queues.value).values() if own is not None]
    if not slots:
        return
    # Why not always: the environment may be meant for other processes than this one.
    if workers is not None and workers.rank <= queues.rank and workers.value != sum(slots):
        raise SettingsError(
            workers.source,
            f"must be the sum of the slots in {queues.source}, which is {sum(slots)}, got {workers.value}: leave it out",
        )
    given["workers"] = queues._replace(value=sum(slots))


def unknown_settings(environ: Mapping[str, str] | None = None, env_file: Path | str = ".env") -> list[str]:
    """Variables that begin with JOBPIPE_ but are not settings: most likely misspelt."""
    known = {VARIABLE, *(name for each in fields(Settings) for name in variables_of(each))}
    given = {**(os.environ if environ is None else environ), **read_env_file(Path(env_file))}
    return sorted(name for name in given if name.startswith(_PREFIX) and name not in known)


def read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` a line; `#` begins a comment, quotes around a value and `export` before a name are taken off."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(str(path), "cannot be read: it is not UTF-8") from None
    found = {}
    for line in lines:
        text = line.strip().removeprefix("export ").strip()
        name, separator, value = text.partition("=")
        if text.startswith("#") or not separator:
            continue  # other programs' lines are none of our business
        found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    """Without the quotes around it, or without the comment behind it."""
    quote = value[:1]
    if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
        rest = value[end + 1 :].strip()
        if not rest or rest.startswith("#"):
            return value[1:end]
    if value.startswith("#"):
        return ""
    return value.partition(" #")[0].rstrip()
