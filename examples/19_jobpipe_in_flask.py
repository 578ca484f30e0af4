"""From Flask: views enqueue and inspect jobs, without asyncio; workers run elsewhere."""

import asyncio
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from flask import Flask
from flask.typing import ResponseReturnValue

from jobpipe import BadInputError, Jobpipe, QueueFullError


def make_app(pipe: Jobpipe) -> Flask:
    app = Flask(__name__)

    @app.post("/mails/<name>")
    def send(name: str) -> ResponseReturnValue:
        receipt = pipe.enqueue_sync("mail", f"{name}@example.org", id=f"mail-{name}")
        return {"job": receipt.id, "new": receipt.is_new}, 202

    @app.get("/mails/<name>")
    def look(name: str) -> ResponseReturnValue:
        job = pipe.store.get(f"mail-{name}")
        return ({"status": job.status, "result": job.result}, 200) if job else ({}, 404)

    @app.errorhandler(BadInputError)
    def bad(error: BadInputError) -> ResponseReturnValue:
        return {"field": error.field, "error": str(error)}, 422

    @app.errorhandler(QueueFullError)
    def full(error: QueueFullError) -> ResponseReturnValue:
        return {"error": str(error)}, 503

    return app


def make_pipe(url: str) -> Jobpipe:
    pipe = Jobpipe(url)

    @pipe.job
    def mail(to: str) -> str:
        return f"sent to {to}"

    return pipe


async def work(pipe: Jobpipe, id: str) -> None:
    """In production: `jobpipe worker shop:pipe`, in its own process."""
    async with pipe.running(workers=1):
        await pipe.wait(id)


def main() -> None:
    with TemporaryDirectory() as folder, closing(make_pipe(f"sqlite:///{Path(folder) / 'jobs.db'}")) as pipe:
        client = make_app(pipe).test_client()
        print(f"first: {client.post('/mails/ada').json}")
        print(f"again: {client.post('/mails/ada').json}")
        print(f"a name that is none: {client.post('/mails/a%20b').status_code}")
        print(f"before: {client.get('/mails/ada').json}")
        asyncio.run(work(pipe, "mail-ada"))
        print(f"after: {client.get('/mails/ada').json}")


if __name__ == "__main__":
    main()
