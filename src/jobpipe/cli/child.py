"""What a supervised process does: load the pipe, then serve or work until it is asked to stop."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import JobpipeError, SettingsError, StoreError
from ..model.text import counted, masked
from ..process.logs import escape, setup_logging

if TYPE_CHECKING:
    from ..app import Jobpipe
    from ..process.link import SupervisorLink
    from ..settings import Settings
    from ..worker.service import Service


_SHORTEST_TOKEN = 16
"""Characters below which a token can be guessed."""
_LAST_SPANS = 1.0
"""Seconds that the last spans may take to be exported."""
_MOST_LISTED = 20
"""Names in the line at the start."""


def run_child(link: SupervisorLink, *, app: str | None, flags: Mapping[str, Any], is_web: bool) -> int:
    """The whole life of the process; its exit code."""
    from ..jobtypes.current import JobLogFilter
    from ..process.loading import AppBrokenError, load_pipe

    try:
        pipe = load_pipe(app)
        pipe.configure(**flags)
        service = (
            pipe.make_service()
        )  # Why already: types that the app does not have are refused before anything starts
        if not is_web and not pipe.settings.workers:
            raise SettingsError(
                "WORKERS",
                "must be at least 1 for `jobpipe worker`, got 0: use `jobpipe serve` for the API alone",
            )
    except AppBrokenError as error:
        return link.fault(f"{error.details}error: {error}", 1)
    except JobpipeError as error:
        return link.fault(escape(str(error)), _code(error))
    except Exception:
        return link.fault(traceback.format_exc(), 1)
    told = _settings_to_tell(pipe, service)
    setup_logging(pipe.settings.log, level=pipe.settings.log_level, filters=[JobLogFilter()])
    loop = _new_loop()
    commands: asyncio.Queue[bool] = asyncio.Queue()
    link.on_accept(lambda accepts: loop.call_soon_threadsafe(commands.put_nowait, accepts))
    sockets = link.greet(told)
    if link.is_stopping:
        return 0
    stop = asyncio.Event()
    link.on_stop(lambda: loop.call_soon_threadsafe(stop.set))
    main: Coroutine[Any, Any, None]
    if is_web:
        from ..web.serve import serve

        main = serve(pipe, sockets, stop, link.ready, commands.get, link.closed)
    else:
        main = work(pipe, stop, link.ready)
    try:
        # Why not asyncio.run: it would wait for threads, and a handler may be stuck in one.
        loop.run_until_complete(main)
    except (SettingsError, StoreError) as error:
        return link.fault(escape(str(error)), _code(error))
    if pipe.tracing is not None:
        pipe.tracing.flush(_LAST_SPANS)  # Why here: the process ends without what others do at its exit
    return 0


async def work(pipe: Jobpipe, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
    """Run jobs until the event; a store that is away at the start is waited for."""
    service = pipe.make_service()
    if await service.start_when_possible(stop):
        on_ready()
        await stop.wait()
        await service.stop()
    await service.close()


def _settings_to_tell(pipe: Jobpipe, service: Service) -> dict[str, Any]:
    """What the supervisor needs to know; no secrets."""
    settings = pipe.settings
    return {
        "host": settings.host,
        "port": settings.port,
        "grace": settings.grace,
        "log": settings.log,
        "log_level": settings.log_level,
        "has_token": settings.token is not None,
        "has_short_token": any(
            token is not None and len(token) < _SHORTEST_TOKEN
            for token in (settings.token, settings.read_token)
        ),
        "is_shared": not settings.store.startswith("memory:"),
        "about": _about(settings, [name for name, each in service.types.items() if each.is_on]),
    }


def _about(settings: Settings, types: Iterable[str]) -> str:
    """What runs here, for the line at the start."""
    from importlib.metadata import version

    queues = "all queues"
    if settings.queues:
        queues = f"queues {_listed(settings.queues)}"
    elif settings.except_queues:
        queues = f"all queues but {_listed(settings.except_queues)}"
    runs = f"types {_listed(sorted(types))}; {queues}; {counted(settings.workers, 'slot')}"
    return f"jobpipe {version('rate-envelope-queue')}; store {masked(settings.store)}; {runs if settings.workers else 'API only'}"


def _listed(names: Collection[str]) -> str:
    """The names, or the first ones and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(islice(names, _MOST_LISTED)) + (f" and {more} more" if more > 0 else "")


def _code(error: JobpipeError) -> int:
    return 2 if isinstance(error, SettingsError) else 1


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
