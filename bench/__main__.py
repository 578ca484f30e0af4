"""`python -m bench [case …]`: measure, print one table, write it as JSON."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path

from . import (
    asyncio_,
    delayed,
    draining,
    engines,
    http,
    isolation,
    joblogs,
    limits,
    memory,
    metrics,
    periodic,
    pickup,
    rates,
    sqlite,
    startup,
    steps,
    streams,
    threads,
    waiting,
)
from .harness import Case, measure
from .report import Session, as_text, begin_session, write_json, write_markdown

# Why in this order: what needs much memory comes last, when it can disturb nothing.
LIBRARY = (threads, asyncio_, metrics, rates, startup, memory, periodic, delayed)
SERVICE = (sqlite, pickup, http, streams, limits, draining, joblogs, steps, isolation, engines, waiting)
GROUPS = (*LIBRARY, *SERVICE)
"""Each has `cases(quick)`; a new group of cases is one more module here."""
FEWEST_REPEATS = 5
QUICK_REPEATS = 3
RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    parser = _parser()
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # Why: servers that were started end with this process
    cases = [case for group in GROUPS for case in group.cases(quick=options.quick)]
    names = list(dict.fromkeys(case.name for case in cases))
    unknown = set(options.case) - set(names)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if options.list:
        _print_list(cases)
        return
    default = QUICK_REPEATS if options.quick else FEWEST_REPEATS
    repeats = default if options.repeats is None else options.repeats
    if repeats < (1 if options.quick else FEWEST_REPEATS):
        parser.error(f"--repeats must be at least {FEWEST_REPEATS}, or 1 with --quick")
    chosen = [case for case in cases if not options.case or case.name in options.case]
    session = _run(chosen, repeats, is_quick=options.quick)
    print(as_text(session))
    write_json(options.json, session)
    if options.markdown is not None:
        write_markdown(options.markdown, session)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the library next to its peers."
    )
    parser.add_argument("case", nargs="*", help="names of cases; all without any")
    parser.add_argument("--list", action="store_true", help="list the cases and what they show")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="measurements a case (at least 5, the default)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small and few: to try things out, not for claims"
    )
    parser.add_argument(
        "--json", type=Path, default=RESULTS, metavar="PATH", help="default: bench/results.json"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="PATH", help="put the table between the page's markers"
    )
    return parser


def _print_list(cases: list[Case]) -> None:
    for case in cases:
        goals = "; ".join(case.describe(goal) for goal in case.goals)
        print(f"{case.title}\n    {case.shows}\n    goal: {goals or 'none'}")


def _run(cases: list[Case], repeats: int, *, is_quick: bool) -> Session:
    at, load = begin_session()
    results = []
    for number, case in enumerate(cases, 1):
        progress = partial(_progress, f"[{number}/{len(cases)}] ")
        results.append(measure(case, repeats, progress))
    _progress("", "")
    return Session(tuple(results), repeats, is_quick, at, load)


def _progress(where: str, text: str) -> None:
    """One line that is written over again; in a log, where that is impossible, a line each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{where}{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(f"{where}{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
