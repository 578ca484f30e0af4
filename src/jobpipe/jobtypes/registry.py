"""Registry: what a program declares: job types and their schedules. `Jobpipe` is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from rate_envelope_queue import Stamp

from ..errors import BadInputError, seconds_of
from ..gateway.timetable import ScheduleRequest, Timetable
from ..model.ids import check_name
from ..model.job import Job
from ..model.request import convert
from ..model.schedule import Missed
from . import builtin
from .jobtype import Enqueues, JobType
from .signature import Signature
from .terms import TypeOptions, check_stamps, terms_of

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[[Job], object])


class Registry(Enqueues):
    """The job types of a program by name."""

    def __init__(self, schedules: Timetable, stamps: Iterable[Stamp]) -> None:
        self._types: dict[str, JobType[..., Any]] = {}
        self._stamps = check_stamps(stamps)
        self.failure_hooks: list[Callable[[Job], object]] = []
        """What `on_failure` was given, in order."""
        self.schedules = schedules
        """The schedules in the store; those of the program are made by `every` and `cron`."""

    @overload
    def job(self, name: Callable[P, R], /) -> JobType[P, R]: ...
    @overload
    def job(
        self, name: str | None = None, /, **options: Unpack[TypeOptions]
    ) -> Callable[[Callable[P, R]], JobType[P, R]]: ...
    def job(self, name: str | Callable[P, R] | None = None, /, **options: Unpack[TypeOptions]) -> Any:
        """Make a function the handler of a job type, named after the function unless a name is given.

        It takes the payload (its annotation is the model), several arguments (the payload is an object of them) or
        nothing; `async def`, or a plain `def`, which runs
        in a thread. `queue`, `max_retries`, `priority` and `deadline` are the defaults of its jobs;
        `base`, `cap` and `jitter` set the back-off between retries. `rate` ("5/s" or a Rate) and
        `concurrency` apply to all processes on the store together: to the type, or to each `key` of a payload.
        `retry_on` and `fail_on` choose by its class whether an error is retried; `stamps` are middleware around the handler;
        with `logs=False`, what it logs is not kept with its jobs.
        `check` is called with the payload at enqueue and before each run; it raises BadInputError to refuse the job.
        """
        if callable(name):
            return self.job()(name)

        terms = terms_of(options)

        def register(handler: Callable[P, R]) -> JobType[P, R]:
            type = check_name("the name of the job type", name or getattr(handler, "__name__", None))
            if type in self._types and not builtin.is_built_in(self._types[type]):
                raise BadInputError("the name of the job type", f"{type!r} is taken: names must be unique")
            self._types[type] = job_type = JobType(self, type, handler, terms, self._stamps)
            return job_type

        return register

    def on_failure(self, hook: H) -> H:
        """Call a function with each job that has failed for good, at least once for each time; not for expired ones.

        A plain `def` is called in a thread. What it raises is logged and changes nothing.
        """
        if not callable(hook):
            raise BadInputError("on_failure", f"must be a function of the job, got {hook!r}")
        self.failure_hooks.append(hook)
        return hook

    def every(
        self,
        seconds: float | timedelta,
        *,
        name: str | None = None,
        missed: Missed | str = Missed.ONE,
        **options: Unpack[TypeOptions],
    ) -> Callable[[Callable[[], R]], JobType[[], R]]:
        """Enqueue a function without arguments as a job at a fixed interval, once for all processes.

        Schedule and job type are named after the function unless a name is given. `missed` decides what
        happens to ticks that passed while nothing ran: "one" job for all of them, or "none". Options are those of `job`.
        """
        return self._scheduled(name, {"every": seconds_of("every", seconds), "missed": missed}, options)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        missed: Missed | str = Missed.ONE,
        **options: Unpack[TypeOptions],
    ) -> Callable[[Callable[[], R]], JobType[[], R]]:
        """Like `every`, at the times of a cron expression in a time zone."""
        return self._scheduled(name, {"cron": expression, "tz": tz, "missed": missed}, options)

    def _scheduled(
        self, name: str | None, timing: dict[str, Any], options: TypeOptions
    ) -> Callable[[Callable[[], R]], JobType[[], R]]:
        def register(handler: Callable[[], R]) -> JobType[[], R]:
            chosen = check_name("name", name or getattr(handler, "__name__", None))
            request = convert({"type": chosen, **timing}, ScheduleRequest)
            if Signature(handler, chosen).takes_arguments:
                raise BadInputError("handler", f"of a schedule must take no arguments, got {handler!r}")
            self.schedules.check(chosen, request)
            job_type: JobType[[], R] = self.job(chosen, **options)(handler)
            self.schedules.declare(chosen, request)
            return job_type

        return register
