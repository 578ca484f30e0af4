"""`enqueue`: enqueue a job, or the jobs of a file, and optionally wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInputError, JobpipeError
from ..process.logs import escape
from .completion.candidates import complete_queue, complete_type
from .guard import fail, guarded
from .jobs import Json, Utc, zone_of
from .options import seconds, whole_number, with_intake
from .payload import typed_payload

if TYPE_CHECKING:
    from ..gateway.explain import Explanation
    from .bulk import Bulk
    from .lines import Source
    from .render.progress import Bar
    from .target import Target

_WORTH_A_WORD = {"no_worker", "paused"}
"""Reasons for which a batch does not run until somebody does something about it."""


@guarded
@with_intake
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
        typer.Option(
            metavar="FILE",
            help="enqueue the jobs of a file, one JSON object per line; - for stdin. Other options are defaults "
            "for its lines",
            show_default=False,
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="id of the job; the same id again is the same job", show_default=False
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE", help="queue of the job", show_default="default", autocompletion=complete_queue
        ),
    ] = None,
    max_retries: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="retries after the first run, 0-100",
            parser=whole_number,
            show_default="10",
        ),
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(metavar="N", help="-1000 to 1000, higher first", parser=whole_number, show_default="0"),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="seconds to wait before the run", parser=seconds, show_default=False
        ),
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="when to run: ISO 8601 with a zone, 2030-01-31T12:00:00Z", show_default=False
        ),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="time limit of one run, in seconds", parser=seconds, show_default=False
        ),
    ] = None,
    expires_in: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="seconds after which it is not begun any more, but ends as expired",
            parser=seconds,
            show_default=False,
        ),
    ] = None,
    unique: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="a name for the work: of its jobs one waits and one runs at most",
            show_default=False,
        ),
    ] = None,
    on_duplicate: Annotated[
        str | None,
        typer.Option(
            metavar="keep|replace|restart",
            help="while another job of the --unique name waits",
            show_default="keep",
        ),
    ] = None,
    max_wait: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="with --unique: seconds by which a job can be put off by being replaced",
            parser=seconds,
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="a tag, 1-50 characters; up to 10 of them", show_default=False),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="wait until all jobs are finished; exit code 1 unless all are done")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="maximum number of seconds to wait, with --wait; exit code 1 on timeout",
            parser=seconds,
            show_default=False,
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            metavar="APP",
            help="module:attribute of your Jobpipe: the defaults and checks of its types apply, and its store",
            show_default=False,
        ),
    ] = None,
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Enqueue a job, or the jobs of a file."""
    options = {
        "queue": queue,
        "max_retries": max_retries,
        "priority": priority,
        "delay": delay,
        "run_at": run_at,
        "deadline": deadline,
        "expires_in": expires_in,
        "unique": unique,
        "max_wait": max_wait,
        "on_duplicate": on_duplicate,
        "tags": tag or None,
    }
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
        defaults = {name: value for name, value in {"type": type, **options}.items() if value is not None}
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
