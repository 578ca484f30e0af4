"""`enqueue`: enqueue a job, or the jobs of a file, and optionally wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInputError, JobpipeError
from ..process.logs import escape
from .completion.candidates import complete_queue, complete_type
from .guard import fail
from .jobs import Json, Utc, zone_of
from .options import option, seconds, typed_payload, whole_number, with_intake, with_options

if TYPE_CHECKING:
    from ..gateway.explain import Explanation
    from .bulk import Bulk
    from .lines import Source
    from .render.progress import Bar
    from .target import Target

_WORTH_A_WORD = {"no_worker", "paused", "signal"}
"""Reasons for which a batch does not run until somebody does something about it."""


def _seconds(help: str) -> Any:
    return Annotated[float | None, option("SECONDS", help, parser=seconds)]


def _number(help: str, default: str) -> Any:
    return Annotated[int | None, option("N", help, parser=whole_number, show_default=default)]


_OPTIONS = {
    "queue": Annotated[
        str | None,
        option("QUEUE", "queue of the job", show_default="default", autocompletion=complete_queue),
    ],
    "max_retries": _number("retries after the first run, 0-100", "10"),
    "priority": _number("-1000 to 1000, higher first", "0"),
    "delay": _seconds("seconds to wait before the run"),
    "run_at": Annotated[
        str | None, option("TIME", "when to run: ISO 8601 with a zone, 2030-01-31T12:00:00Z")
    ],
    "deadline": _seconds("time limit of one run, in seconds"),
    "expires_in": _seconds("seconds after which it is not begun any more, but ends as expired"),
    "unique": Annotated[
        str | None, option("NAME", "a name for the work: of its jobs one waits and one runs at most")
    ],
    "on_duplicate": Annotated[
        str | None,
        option("keep|replace|restart", "while another job of the --unique name waits", show_default="keep"),
    ],
    "max_wait": _seconds("with --unique: seconds by which a job can be put off by being replaced"),
    "tags": Annotated[list[str] | None, option("TAG", "a tag, 1-50 characters; up to 10 of them", "--tag")],
}
"""Those of a job, by their names in a request."""


@with_intake
@with_options("options", _OPTIONS)
def enqueue(
    *,
    type: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE",
            help="the job type: echo, sleep, …",
            show_default=False,
            autocompletion=complete_type,
        ),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Argument(metavar="PAYLOAD", help='JSON, such as \'{"to": "a@b"}\'', show_default="null"),
    ] = None,
    file: Annotated[
        str | None,
        option(
            "FILE",
            "enqueue the jobs of a file, one JSON object per line; - for stdin. Other options are defaults "
            "for its lines",
        ),
    ] = None,
    id: Annotated[str | None, option("ID", "id of the job; the same id again is the same job")] = None,
    options: Mapping[str, Any],
    wait: Annotated[
        bool, typer.Option("--wait", help="wait until all jobs are finished; exit code 1 unless all are done")
    ] = False,
    timeout: Annotated[
        float | None,
        option(
            "SECONDS",
            "maximum number of seconds to wait, with --wait; exit code 1 on timeout",
            parser=seconds,
        ),
    ] = None,
    app: Annotated[
        str | None,
        option(
            "APP",
            "module:attribute of your Jobpipe: the defaults and checks of its types apply, and its store",
        ),
    ] = None,
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Enqueue a job, or the jobs of a file."""
    if timeout is not None and not wait:
        raise BadInputError("--timeout", "requires --wait")
    if timeout is not None and not timeout >= 0:
        raise BadInputError("--timeout", f"must be 0 or more seconds, got {timeout:g}")
    if flags.get("url") is not None and "queue_size" in flags:
        raise BadInputError("--queue-size", "cannot be used with --url: the service has its own limit")
    if app is not None:
        if flags.get("url") is not None:
            raise BadInputError("--app", "and --url exclude each other: the service knows its own types")
        flags = {**flags, "app": app}
    if file is not None:
        if payload is not None or id is not None:
            raise BadInputError(
                "PAYLOAD" if payload is not None else "--id",
                "cannot be used with --file: write it in the lines of the file",
            )
        defaults = dict(options) if type is None else {"type": type, **options}
        _put_file(file, defaults, wait, timeout, json, flags)
    elif type is None:
        raise BadInputError("TYPE", "or --file is required, for example: jobpipe enqueue echo '\"hello\"'")
    else:
        given = typed_payload(payload or "null")
        _put_one(type, given, {"id": id, **options}, wait, timeout, zone_of(utc), json, flags)


COMMANDS = (enqueue,)


def _put_one(
    type: str,
    payload: Any,
    options: dict[str, Any],
    wait: bool,
    timeout: float | None,
    zone: tzinfo | None,
    as_json: bool,
    flags: Mapping[str, Any],
) -> None:
    from .render.tables import print_job, print_json
    from .target import open_target

    with open_target(flags, may_make=True) as target:
        receipt = target.enqueue(type, payload, **options)
        if receipt.warning is not None:
            typer.echo(f"warning: {escape(receipt.warning)}", err=True)
        if not wait:
            if as_json:
                print_json({"id": receipt.id, "status": receipt.status})
            else:
                typer.echo(
                    f"{receipt.id} {receipt.status}{'' if receipt.is_new else _why_known(receipt.id, options)}"
                )
            return
        try:
            job = target.wait(receipt.id, timeout, lambda why: typer.echo(why.text, err=True))
        except KeyboardInterrupt:
            raise fail(f"interrupted: the job {receipt.id} is enqueued and continues", 130) from None
        except JobpipeError as error:
            raise fail(
                f"the job {receipt.id} is enqueued, but waiting for it failed: {error}; "
                f"jobpipe job {receipt.id} shows it later"
            ) from None
    print_json(job) if as_json else print_job(job, zone)
    if not job.is_finished and timeout is not None:
        raise fail(
            f"timed out after {timeout:g} s: the job {job.id} is {job.status} and continues; "
            f"jobpipe job {job.id} shows it"
        )
    if job.status != "done":
        raise typer.Exit(1)


def _why_known(id: str, options: Mapping[str, Any]) -> str:
    """Why no job was stored: the same was there, or another of its unique name waits."""
    if options.get("unique") is None or id == options.get("id"):
        return " (already existed)"
    is_kept = options.get("on_duplicate") in (None, "keep")
    return " (kept: the new payload was dropped)" if is_kept else " (replaced)"


def _put_file(
    path: str,
    defaults: dict[str, Any],
    wait: bool,
    timeout: float | None,
    as_json: bool,
    flags: Mapping[str, Any],
) -> None:
    from ..model.text import counted
    from .bulk import Bulk
    from .lines import open_source
    from .render.progress import bar
    from .target import open_target

    with open_source(path, defaults) as source, open_target(flags, may_make=True) as target:
        bulk = Bulk(target, source.name, keeps_ids=wait)
        with bar("enqueuing", source.size, is_quiet=as_json, in_bytes=True) as shown:
            problem = _fill(bulk, source, shown)
        found: dict[str, int] = {}
        if wait and problem is None:
            with bar("waiting", len(bulk.ids), is_quiet=as_json) as shown:
                problem = _await(target, bulk.ids, timeout, shown, found)
    for warning in sorted(bulk.warnings):
        typer.echo(f"warning: {escape(warning)}", err=True)
    _print_outcome(bulk, found, as_json)
    if problem is not None:
        raise problem
    if (left := found.get("unfinished")) and timeout is not None:
        jobs = counted(left, "job", "is", "are")
        raise fail(f"timed out after {timeout:g} s: {jobs} not finished; jobpipe jobs shows them")
    if found.keys() - {"done"}:
        raise typer.Exit(1)


def _fill(bulk: Bulk, source: Source, shown: Bar) -> typer.Exit | None:
    """Put all of it in; what stops it comes back, told."""
    from .lines import BadLineError

    try:
        for chunk in source.chunks():
            bulk.put(chunk)
            shown.reach(chunk[-1].end)
    except KeyboardInterrupt:
        return fail(f"interrupted; {bulk.how_far()}", 130)
    except JobpipeError as error:
        return fail(f"{error}; {bulk.how_far()}", 2 if isinstance(error, BadLineError) else 1)
    return None


def _await(
    target: Target, ids: list[str], timeout: float | None, shown: Bar, found: dict[str, int]
) -> typer.Exit | None:
    """Wait for all, and note what came of them; what stops it comes back, told."""
    said = set[str]()
    reached = 0

    def tell(why: Explanation) -> None:
        if why.reason in _WORTH_A_WORD and why.text not in said:
            said.add(why.text)
            shown.say(why.text)

    def reach(number: int) -> None:
        nonlocal reached
        reached = number
        shown.reach(number)

    try:
        found.update(target.wait_all(ids, timeout, tell, reach))
    except KeyboardInterrupt:
        return fail(
            f"interrupted: at least {reached:,} of {len(ids):,} jobs are finished; all are enqueued and continue",
            130,
        )
    except JobpipeError as error:
        return fail(f"{error}; at least {reached:,} of {len(ids):,} jobs are finished; all are enqueued", 1)
    return None


def _print_outcome(bulk: Bulk, found: dict[str, int], as_json: bool) -> None:
    from .render.tables import print_json

    if as_json:
        print_json({"new": bulk.new, "known": bulk.known, **found})
        return
    typer.echo(f"{bulk.new:,} enqueued, {bulk.known:,} already existed")
    if found:
        typer.echo(", ".join(f"{number:,} {status}" for status, number in sorted(found.items())))
