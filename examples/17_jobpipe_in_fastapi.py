"""Inside a FastAPI application: one model for body and payload, and a mounted API that requires a token."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import uvicorn
from fastapi import FastAPI

from jobpipe import Jobpipe

pipe = Jobpipe("memory://", token="s3cret")  # in production: JOBPIPE_TOKEN


@dataclass
class Order:
    number: int
    to: str


@pipe.job(max_retries=5)
async def confirm(order: Order) -> str:
    return f"order {order.number} is confirmed to {order.to}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with pipe, pipe.running(workers=2):
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/queue", pipe.asgi(allowed_hosts=["shop.example.org"]))


@app.post("/orders", status_code=202)
async def take(order: Order) -> dict[str, str]:
    receipt = await confirm.enqueue(order, id=f"confirm-{order.number}")
    return {"job": receipt.id}


def call(url: str, body: Any = None, token: str = "") -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, headers)) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            return json.load(error)


async def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    serving = asyncio.create_task(server.serve([listener]))

    taken = await asyncio.to_thread(call, f"{here}/orders", asdict(Order(17, "ada@example.org")))
    print(f"taken: {taken}")
    where = f"{here}/queue/jobs/{taken['job']}/wait"
    refused = await asyncio.to_thread(call, where)
    print(f"without a token: {refused['status']} {refused['title']}")
    job = await asyncio.to_thread(call, where, token="s3cret")
    print(f"{job['status']}: {job['result']}")

    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
