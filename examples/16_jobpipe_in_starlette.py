"""Inside a Starlette application: views enqueue jobs, the API is mounted under a prefix, workers run with the lifespan."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.request import Request as Call
from urllib.request import urlopen

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from jobpipe import Jobpipe

pipe = Jobpipe("memory://")


@pipe.job
async def resize(photo: str) -> str:
    return f"{photo} is smaller"


async def upload(request: Request) -> JSONResponse:
    name = request.path_params["name"]
    receipt = await resize.enqueue(name, id=f"resize-{name}")
    return JSONResponse({"job": receipt.id, "new": receipt.is_new}, 202)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with pipe, pipe.running(workers=2):
        yield


app = Starlette(
    routes=[Route("/photos/{name}", upload, methods=["POST"]), Mount("/queue", app=pipe.asgi())],
    lifespan=lifespan,
)
"""`uvicorn module:app` serves it."""


def call(method: str, url: str) -> Any:
    with urlopen(Call(url, method=method)) as answer:
        return json.load(answer)


async def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    serving = asyncio.create_task(server.serve([listener]))

    uploaded = await asyncio.to_thread(call, "POST", f"{here}/photos/cat.jpg")
    print(f"uploaded: {uploaded}")
    job = await asyncio.to_thread(call, "GET", f"{here}/queue/jobs/{uploaded['job']}/wait")
    print(f"{job['status']}: {job['result']}")
    print(f"ready: {await asyncio.to_thread(call, 'GET', f'{here}/queue/readyz')}")
    document = await asyncio.to_thread(call, "GET", f"{here}/queue/openapi.json")
    print(f"the API is at {document['servers'][0]['url']}")

    server.should_exit = True
    await serving
    print("stopped, with its workers")


if __name__ == "__main__":
    asyncio.run(main())
