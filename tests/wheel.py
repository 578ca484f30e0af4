"""`python -m tests.wheel dist/*.whl`: does a wheel install, and does the service start, in an empty environment?"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from urllib.request import urlopen

from .support.waiting import LIMIT


def main(wheel: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        scripts = folder / "venv" / "bin"
        install = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"{Path(wheel).absolute()}[service]"], check=True)
        # Why its own folder and no path: the sources at hand must not stand in for what is installed.
        with subprocess.Popen(
            [str(scripts / "jobpipe"), "serve", "--port", "0"],
            cwd=folder,
            env={},
            stderr=subprocess.PIPE,
            text=True,
        ) as service:
            try:
                assert service.stderr is not None
                lines = iter(service.stderr.readline, "")
                found = next(filter(None, (re.search(r"listening on (http://\S+)", line) for line in lines)))
                with urlopen(f"{found[1]}/health", timeout=LIMIT) as answer:
                    assert answer.status == 200
                service.terminate()
                code = service.wait(LIMIT)
            finally:
                service.kill()
    print(f"{wheel} installs, starts, answers and stops (code {code})")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
