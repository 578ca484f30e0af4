"""`promote`: move to another store."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer

from ..model.text import counted
from .guard import guarded
from .jobs import Json
from .render.progress import bar

if TYPE_CHECKING:
    from ..gateway.promote import Moved


@guarded
def promote(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="store to move from, such as sqlite:///jobpipe.db")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="store to move to, such as postgresql://host/name")
    ],
    json: Json = False,
) -> None:
    """Move unfinished jobs and schedules to another store. Ids and attempts are kept.

    They are removed from the source. If it is interrupted, run it again. Finished jobs stay in the source.
    """
    from ..gateway.promote import promote as move
    from ..stores import open_store
    from .render.tables import print_json
    from .target import check_url

    check_url("SOURCE", source, may_make=False)
    check_url("TARGET", target, may_make=True)
    reached: list[Moved] = []
    with ExitStack() as stack:
        old, new = (stack.enter_context(closing(open_store(url))) for url in (source, target))
        old.migrate()
        new.migrate()
        shown = stack.enter_context(bar("moving", None, is_quiet=json))

        def report(moved: Moved) -> None:
            reached[:] = [moved]
            shown.reach(moved.jobs, moved.of)

        try:
            moved = move(old, new, report, lambda what: shown.say(f"waiting for {what} …"))
        except KeyboardInterrupt:
            how_far = f"{reached[0].jobs:,} of {reached[0].of:,} jobs were" if reached else "nothing was"
            shown.say(f"interrupted: {how_far} moved; run it again to move the rest")
            raise typer.Exit(130) from None
    if json:
        print_json({"jobs": moved.jobs, "already": moved.already, "schedules": moved.schedules})
    else:
        were = counted(moved.already, "job", "was", "were")
        already = f" ({were} already there)" if moved.already else ""
        what = f"{counted(moved.jobs, 'job')} and {counted(moved.schedules, 'schedule')}"
        typer.echo(f"{what} moved to {new.url}{already}")


COMMANDS = (promote,)
