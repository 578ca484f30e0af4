"""A command loads what it needs: the help of all of them is there at once."""

from __future__ import annotations

import subprocess
import sys


def test_help_loads_nothing_that_takes_long() -> None:
    """Why by name: what a machine takes for it depends on the machine."""
    script = (
        "import sys\n"
        "from jobpipe.cli.main import app\n"
        "try:\n"
        "    app(['--help'], prog_name='jobpipe')\n"
        "except SystemExit:\n"
        "    print('loaded', *sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    loaded = set(ended.stdout.partition("loaded ")[2].split())
    assert "jobpipe.cli.enqueue" in loaded
    heavy = {"asyncio", "msgspec", "rich", "sqlite3", "starlette", "urllib.request", "uvicorn"}
    assert not loaded & {*heavy, "jobpipe.app", "jobpipe.cli.target"}
