"""The OpenAPI document, held against the tools of others: `make openapi`, which needs node and npm's registry.

A linter finds nothing to say about it; of the client that is made from it, a TypeScript program is type-checked and run
against a real service.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from jobpipe import Jobpipe
from jobpipe.web.app import make_app
from jobpipe.web.openapi import document

from ..support.processes import program

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "openapi"
PACKAGES = ("@redocly/cli@2", "openapi-typescript@7", "openapi-fetch@0.17", "typescript@5", "@types/node@20")
STRICT = ("--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--types", "node")
MODULES = ("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")


def call(*command: str) -> None:
    subprocess.run(command, cwd=FOLDER, check=True)


def main() -> None:
    """Each step ends the program where it fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with closing(Jobpipe("memory://")) as pipe:
        (FOLDER / "openapi.json").write_text(json.dumps(document(make_app(pipe).calls), indent=2))
    shutil.copy(Path(__file__).parent / "client.ts", FOLDER)
    (FOLDER / "package.json").write_text('{"private": true, "type": "module"}\n')
    call("npm", "install", "--no-audit", "--no-fund", "--no-save", *PACKAGES)
    call("npx", "redocly", "lint", "--extends=recommended-strict", "openapi.json")
    call("npx", "openapi-typescript", "openapi.json", "--output", "api.d.ts")
    call("npx", "tsc", *STRICT, *MODULES, "client.ts")
    serve = ["-m", "jobpipe", "serve", "--port", "0", "--store", "memory://"]
    with TemporaryDirectory() as folder, program(serve, Path(folder)) as service:
        call("node", "client.js", service.line(r"listening on (\S+)")[1])


if __name__ == "__main__":
    main()
