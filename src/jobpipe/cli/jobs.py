"""`enqueue`, `jobs` and `job`: put a job in, and look at jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .guard import fail, guarded
from .options import with_target

Json = Annotated[bool, typer.Option("--json", help="JSON, for programs")]
Type = Annotated[str | None, typer.Option("--type", help="only of this type", show_default=False)]
Queue = Annotated[str | None, typer.Option("--queue", help="only of this queue", show_default=False)]


@guarded
@with_target
def enqueue(
    *,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="the job type: echo, sleep, …")],
    payload: Annotated[
        str, typer.Argument(metavar="PAYLOAD", help='JSON, such as \'{"to": "a@b"}\'')
    ] = "null",
    id: Annotated[
        str | None, typer.Option(help="its id; the same id again is the same job", show_default=False)
    ] = None,
    queue: Annotated[str | None, typer.Option(help="its queue", show_default="default")] = None,
    max_retries: Annotated[
        int | None, typer.Option(help="runs after the first, 0-100", show_default="3")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="-1000 to 1000, higher first", show_default="0")
    ] = None,
    delay: Annotated[
        float | None, typer.Option(help="seconds to wait before the run", show_default=False)
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option(help="when to run: ISO 8601 with a zone, 2030-01-31T12:00:00Z", show_default=False),
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(help="seconds that one run may take", show_default=False)
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="wait until it is finished; code 1 unless it is done")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(help="seconds to wait at the most, with --wait", min=0, show_default=False)
    ] = None,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Put a job in."""
    from .tables import print_job, print_json
    from .target import open_target

    value = _payload(payload)
    with open_target(flags, may_make=True) as target:
        receipt = target.enqueue(
            type,
            value,
            id=id,
            queue=queue,
            max_retries=max_retries,
            priority=priority,
            delay=delay,
            run_at=run_at,
            deadline=deadline,
        )
        if not wait:
            if json:
                print_json({"id": receipt.id, "status": receipt.status})
            else:
                typer.echo(
                    f"{receipt.id} {receipt.status}{'' if receipt.is_new else ' (it was there already)'}"
                )
            return
        job = target.wait(receipt.id, timeout, lambda text: typer.echo(text, err=True))
    print_json(job) if json else print_job(job)
    if job.status != "done":
        raise typer.Exit(1)


@guarded
@with_target
def jobs(
    *,
    status: Annotated[
        str | None, typer.Option(help="only with this status: queued, done, …", show_default=False)
    ] = None,
    type: Type = None,
    queue: Queue = None,
    limit: Annotated[int, typer.Option(help="how many at the most")] = 50,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """List jobs, newest first."""
    from .tables import print_jobs, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = target.jobs(status=status, type=type, queue=queue, limit=limit)
    if json:
        print_json(found, without=("payload", "result", "history"))
    else:
        print_jobs(found)


@guarded
@with_target
def job(
    *,
    id: Annotated[str, typer.Argument(metavar="ID")],
    explain: Annotated[bool, typer.Option("--explain", help="say why it is not running")] = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Show a job with its history."""
    from .tables import print_explanation, print_job, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = None if explain else target.job(id)
        explanation = target.explain(id) if explain else None
    if json:
        print_json(found or explanation)
    elif found is not None:
        print_job(found)
    elif explanation is not None:
        print_explanation(explanation)


COMMANDS = (enqueue, jobs, job)


def _payload(text: str) -> Any:
    from ..payload import BadJsonError, parse

    try:
        return parse(text.encode("utf-8", "surrogateescape"))
    except BadJsonError as error:
        from shlex import quote

        hint = (
            quote(f'"{text}"')
            if len(text) <= 60 and '"' not in text and "\\" not in text
            else '\'{"key": "value"}\''
        )
        problem = str(error).replace("the body", "PAYLOAD")
        raise fail(f"{problem}; quote it for JSON and for the shell, such as {hint}", 2) from None
