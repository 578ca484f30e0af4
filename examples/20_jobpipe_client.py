"""A program without the store: it enqueues, waits for and manages the jobs of a running service."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from jobpipe import Client, JobNotFoundError, JobRequest, UnauthorizedError

TOKEN = "a token that is not in the code"  # a real one comes from the environment


@contextmanager
def service(token: str) -> Iterator[str]:
    """The URL of a service with the built-in types; `jobpipe serve` in a terminal does the same."""
    command = [sys.executable, "-m", "jobpipe", "serve", "--store", "memory://", "--port", "0"]
    env = {**os.environ, "JOBPIPE_TOKEN": token}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as program,
    ):
        assert program.stderr is not None
        found = next(filter(None, (re.search(r"http://\S+", line) for line in program.stderr)))
        yield found[0]
        program.terminate()
        program.stderr.read()


async def enqueue_many(url: str, token: str) -> None:
    async with Client(url, token) as client:
        receipts = await client.enqueue_many([JobRequest(type="echo", payload=n) for n in range(3)])
        jobs = await asyncio.gather(*(client.wait(receipt.id) for receipt in receipts))
        print(f"results: {[job.result for job in jobs]}")
        typo = await client.enqueue("ecko", delay=3600)
        print(f"warning: {typo.warning}")
        print(f"cancelled: {await client.cancel_many(type='ecko')}")


def main() -> None:
    token = TOKEN.replace(" ", "-")
    with service(token) as url:
        # From any thread, with the same names and `_sync`. A lost answer makes no second job.
        with Client(url, token) as client:
            receipt = client.enqueue_sync("echo", {"to": "ada@example.org"}, id="order-17")
            print(f"{receipt.id}: a new job? {receipt.is_new}")
            print(f"{receipt.id}: {client.wait_sync(receipt.id).status}")
            try:
                client.get_sync("order-18")
            except JobNotFoundError as error:
                print(error)
        asyncio.run(enqueue_many(url, token))
        try:
            with Client(url, "another") as stranger:
                stranger.stats_sync()
        except UnauthorizedError:
            print("refused: another token")


if __name__ == "__main__":
    main()
