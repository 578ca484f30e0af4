"""View: the whole screen as lines of text, made from the state alone; and a snapshot of it for paper and pipes.

Nothing depends on colour: what is chosen has a mark, what is paused says so.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from ...model.job import JobStatus
from ...process.logs import escape
from .glyphs import Glyphs, fit, sparkline
from .model import Mode, Panel, State, chosen
from .rows import count, panel_lines

SMALLEST = (40, 13)
_HEAD, _FOOT = 3, 2
_SIDE_BY_SIDE = 150
"""Cells from which on there are two columns of panels."""
_LONGEST_DETAIL = 1_000
_COUNTS = ("queued", "running", "failed", "scheduled", "waiting", "done", "cancelled", "expired")
"""Which of the numbers matter most."""
_KEYS_OF = {
    Panel.QUEUES: "p pause/resume",
    Panel.RUNNING: "c cancel",
    Panel.WORKERS: "",
    Panel.FAILED: "r retry",
}
_HELP = (
    ("{arrows}, j, k", "select a row; also PgUp, PgDn, Home and End"),
    ("Tab, Shift+Tab", "go to the next or the previous panel"),
    ("p", "pause or resume the selected queue"),
    ("r", "retry the selected failed job"),
    ("c", "cancel the selected running job (asks first)"),
    ("/", "filter by queue, type or id; Esc clears the filter"),
    ("?", "this help; any key closes it"),
    ("q, Ctrl+C", "quit"),
)


class Size(NamedTuple):
    """Of a terminal, in cells."""

    width: int
    height: int


def screen_lines(state: State, size: Size, now: datetime, glyphs: Glyphs) -> list[Text]:
    """As many lines as the terminal has, none wider than it."""
    width, height = size
    if width < SMALLEST[0] or height < SMALLEST[1]:
        text = f"too small: {SMALLEST[0]}x{SMALLEST[1]} at least, q quits"
        return [Text(fit(text, width, glyphs)), *[Text("")] * (height - 1)][:height]
    room = height - _HEAD - _FOOT
    # Why: of a service that cannot be reached nobody knows whether its jobs still grow older.
    then = now if state.lost is None else state.snapshot.at
    middle = (
        _help(width, room, glyphs) if state.mode is Mode.HELP else _panels(state, width, room, then, glyphs)
    )
    return [
        _title(state, width, now, glyphs),
        _rates(state, width, glyphs),
        _counts(state, width, glyphs),
        *middle,
        _status(state, width, glyphs),
        _keys(state, width, glyphs),
    ]


def snapshot_lines(state: State, width: int, now: datetime, glyphs: Glyphs) -> list[Text]:
    """All that was seen, as long as it takes."""
    snapshot = state.snapshot
    lines = [
        Text(f" jobpipe top  {escape(snapshot.url)}  {snapshot.at:%Y-%m-%d %H:%M:%S} UTC", "bold"),
        _rates(state, width, glyphs),
        _counts(state, width, glyphs),
    ]
    for panel in Panel:
        lines.append(Text(""))
        lines += panel_lines(state, panel, width, 1 + count(state, panel), now, glyphs, has_keys=False)
    return lines


def _title(state: State, width: int, now: datetime, glyphs: Glyphs) -> Text:
    shown, style = f"live  {now:%H:%M:%S} UTC", "green"
    if state.lost is not None:
        shown, style = "connection lost, trying again", "bold red"
    left = fit(f" jobpipe top  {escape(state.snapshot.url)}", width - len(shown) - 2, glyphs)
    return Text.assemble((left, "bold"), " ", (shown, style), " ")


def _rates(state: State, width: int, glyphs: Glyphs) -> Text:
    """Two rates with their pictures, side by side."""
    half = (width - 1) // 2
    parts = []
    for name, values, style in (
        ("done/s", state.trend.done, "green"),
        ("failed/s", state.trend.failed, "red"),
    ):
        label = f" {name} {values[-1] if values else 0.0:,.1f} "
        room = half - len(label) if len(values) > 1 else 0  # a single value makes no picture
        parts += [(label, ""), (sparkline(values, room, glyphs), style)]
    return Text.assemble(*parts)


def _counts(state: State, width: int, glyphs: Glyphs) -> Text:
    stats = state.snapshot.stats
    words = [f"{status} {getattr(stats, status):,}" for status in JobStatus]
    ranks = [_COUNTS.index(status) for status in JobStatus]
    return Text(fit(f" {'  '.join(_whole(words, ranks, width, 2))}", width, glyphs))


def _panels(state: State, width: int, height: int, now: datetime, glyphs: Glyphs) -> list[Text]:
    """The panels one below the other, or, where there is room, two and two."""

    def stacked(panels: list[Panel], width: int) -> list[Text]:
        shares = zip(panels, _heights(state, panels, height), strict=True)
        return [
            line
            for panel, share in shares
            for line in panel_lines(state, panel, width, share, now, glyphs, has_keys=panel is state.panel)
        ]

    if width < _SIDE_BY_SIDE:
        return stacked(list(Panel), width)
    half = (width - 2) // 2
    sides = stacked([Panel.QUEUES, Panel.WORKERS], half), stacked([Panel.RUNNING, Panel.FAILED], half)
    return [_beside(left, right, half) for left, right in zip(*sides, strict=True)]


def _beside(left: Text, right: Text, half: int) -> Text:
    gap = " " * (half + 2 - cell_len(left.plain))
    return Text.assemble(left, gap, right)


def _heights(state: State, panels: list[Panel], height: int) -> list[int]:
    """The lines for each panel.

    Queues and workers, which seldom change, get what they need up to a fair share; jobs, which come and go, share the rest:
    so nothing moves while they do.
    """
    fair = height // len(panels)
    needed: dict[Panel, int] = {
        panel: min(count(state, panel) + 1, fair)
        for panel in panels
        if panel in (Panel.QUEUES, Panel.WORKERS)
    }
    rest = height - sum(needed.values())
    others = [panel for panel in panels if panel not in needed]
    for place, panel in enumerate(others):
        needed[panel] = rest // (len(others) - place)
        rest -= needed[panel]
    if rest > 0:  # only queues and workers, in their own column
        needed[panels[-1]] += rest
    return [needed[panel] for panel in panels]


def _help(width: int, height: int, glyphs: Glyphs) -> list[Text]:
    lines = [Text(""), Text(" Keys", "bold"), Text("")]
    for keys, meaning in _HELP:
        lines.append(Text(fit(f"  {keys.format(arrows=glyphs.arrows):<18}{meaning}", width, glyphs)))
    return (lines + [Text("")] * height)[:height]


def _status(state: State, width: int, glyphs: Glyphs) -> Text:
    """The one thing that matters most now."""
    text, style = "", ""
    if state.mode is Mode.ASK and state.order is not None:
        text, style = f"{state.order.verb} job {escape(state.order.name)}? [y/N]", "bold yellow"
    elif state.mode is Mode.FILTER:
        text, style = f"filter: {escape(state.filter)}_", "bold"
    elif state.notice is not None:
        text, style = escape(state.notice.text), "red" if state.notice.is_error else "green"
    elif state.lost is not None:
        text, style = escape(state.lost), "red"
    elif state.filter:
        text = f"filter: {escape(state.filter)} (Esc clears it)"
    else:
        text = _detail(state)
    return Text(fit(f" {text}", width, glyphs, keeps_end=state.mode is Mode.FILTER), style)


def _detail(state: State) -> str:
    """More of the chosen job than its row has room for."""
    name = chosen(state)
    jobs = {Panel.RUNNING: state.snapshot.running, Panel.FAILED: state.snapshot.failed}.get(state.panel, [])
    job = next((job for job in jobs if job.id == name), None)
    if job is None:
        return ""
    if state.panel is Panel.FAILED:
        return "" if job.error is None else escape(f"{job.error.type}: {job.error.message}"[:_LONGEST_DETAIL])
    note = "" if job.progress is None else f"  {job.progress.note or ''}"
    return escape(f"{job.id}{note}")


def _keys(state: State, width: int, glyphs: Glyphs) -> Text:
    words = {
        Mode.ASK: ["y yes", "any other key: no"],
        Mode.FILTER: ["Enter keep", "Esc clear"],
        Mode.HELP: ["any key: back", "q quit"],
    }.get(
        state.mode,
        [f"{glyphs.arrows} select", "Tab panel", _KEYS_OF[state.panel], "/ filter", "? help", "q quit"],
    )
    words = list(filter(None, words))
    ranks = list(range(len(words), 0, -1))  # what is not told by itself is told by the help
    return Text(fit(" " + "   ".join(_whole(words, ranks, width, 3)), width, glyphs), "dim")


def _whole(words: list[str], ranks: list[int], width: int, gap: int) -> list[str]:
    """The words that there is room for, after one cell: those of the lowest ranks, and none of them cut."""
    kept: set[int] = set()
    for place in sorted(range(len(words)), key=lambda place: ranks[place]):
        if 1 + sum(cell_len(words[each]) + gap for each in kept) + cell_len(words[place]) > width:
            break
        kept.add(place)
    return [words[place] for place in sorted(kept)]
