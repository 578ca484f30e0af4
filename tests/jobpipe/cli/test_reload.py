"""`serve --reload`: a changed file restarts the service, a broken one is told of and waited for."""

from __future__ import annotations

import signal
from pathlib import Path

from jobpipe import Client

from .conftest import Start

APP = "from jobpipe import Jobpipe\npipe = Jobpipe('memory://')\n@pipe.job\ndef {name}() -> None: ...\n"


def test_a_changed_file_restarts_the_service_and_a_broken_one_is_waited_for(
    start: Start, folder: Path
) -> None:
    app = folder / "app.py"
    app.write_text(APP.format(name="first"))
    serving = start("serve", "app:pipe", "--port", "0", "--reload")
    url = serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
    app.write_text(APP.format(name="the_second"))
    serving.line(r"app\.py has changed: restarting")
    assert serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1] == url
    with Client(url) as client:
        assert [worker.types for worker in client.workers_sync()] == [("echo", "the_second")]
    app.write_text("this is no Python\n")
    serving.line(r"cannot start: .*SyntaxError")
    app.write_text(APP.format(name="yet_another"))
    serving.line("listening on")
    serving.kill(signal.SIGTERM)
    assert serving.code() == 0
