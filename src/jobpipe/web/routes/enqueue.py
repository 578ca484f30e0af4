"""Putting jobs in. One job is the hot path of the service, so it is plain ASGI down to the bytes.

Nothing is answered before the store has accepted it, and nothing is accepted in part.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from ...gateway.async_store import unwrap
from ...model.job import Job, JobStatus
from ...model.json import parse
from ...model.request import LARGEST_BATCH, JobRequest, convert, read
from .. import problems
from ..body import LARGEST_BATCH_BODY, LONG, ClientGone, read_body
from ..operation import Operation, encode, json_response
from ..query import NoQuery, read_query
from ..site import Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ...model.newjob import NewJob, Receipt


NEW = "jobpipe-new"
"""The header that tells how many jobs of a batch were not there before."""


class Accepted(Struct, frozen=True):
    """A job that was enqueued; in a batch, also one that already existed."""

    id: str
    status: JobStatus
    is_new: bool | UnsetType = UNSET
    """False for a job that already existed, in a batch with new ones."""
    warning: str | UnsetType = UNSET
    """That no worker knows its type."""


def _accepted(receipt: Receipt, is_new: bool = True) -> Accepted:
    return Accepted(receipt.id, receipt.status, UNSET if is_new else False, receipt.warning or UNSET)


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs to enqueue together: all of them, or none."""

    jobs: Annotated[list[JobRequest], Meta(min_length=1, max_length=LARGEST_BATCH)]


class AcceptedBatch(Struct, frozen=True):
    """The jobs of a batch, in its order."""

    jobs: list[Accepted]


class Enqueue:
    """`POST /enqueue`, and `/enqueue/batch`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pipe = site.pipe

    @Operation(
        "POST",
        "/enqueue",
        "Enqueue a job; if the same job already exists, answers 200 with it",
        answers={202: Accepted, 200: Job},
        body=JobRequest,
        refusals=(409,),
    )
    async def one(self, _: Request) -> ASGIApp:
        return self  # Why: the application calls it without the router, and without an Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["query_string"]:
                read_query(scope["query_string"], NoQuery)
            self._site.check_takes_jobs()
            body = await read_body(scope, receive, self._site.largest_body)
            job = self._one(body) if len(body) < LONG else await asyncio.to_thread(self._one, body)
            receipt = (await self._insert([job], scope))[0]
            if receipt.is_new:
                await _accept(send, encode(_accepted(receipt)))
                return
            response = json_response(await self._pipe.get(receipt.id))
        except ClientGone:
            return
        except Exception as error:
            response = problems.answer(error, scope, self._site.retry_after(error))
        await response(scope, receive, send)

    async def _insert(self, batch: list[NewJob], scope: Scope) -> list[Receipt]:
        """In the trace of the caller, where there is tracing."""
        tracing = self._pipe.tracing
        with nullcontext() if tracing is None else tracing.request(scope["headers"]):
            return unwrap(await self._pipe.insert(batch, self._site.door))

    def _one(self, body: bytes) -> NewJob:
        return self._pipe.prepare(read(parse(body)))

    @Operation(
        "POST",
        "/enqueue/batch",
        "Enqueue jobs, all or none; 200 if all of them already exist",
        answers={202: AcceptedBatch, 200: AcceptedBatch},
        body=Batch,
        refusals=(409,),
    )
    async def batch(self, request: Request) -> Response:
        self._site.check_takes_jobs()
        body = await read_body(request.scope, request.receive, LARGEST_BATCH_BODY)
        batch = self._many(body) if len(body) < LONG else await asyncio.to_thread(self._many, body)
        try:
            receipts = await self._insert(batch, request.scope)
        except Exception as error:
            return problems.answer(error, request.scope, self._site.retry_after(error))
        new = sum(receipt.is_new for receipt in receipts)
        jobs = [_accepted(receipt, receipt.is_new or not new) for receipt in receipts]
        response = json_response(AcceptedBatch(jobs), 202 if new else 200)
        response.headers[NEW] = str(new)
        return response

    def _many(self, body: bytes) -> list[NewJob]:
        batch: Batch = convert(parse(body), Batch)
        return self._pipe.prepare_many(batch.jobs)


async def _accept(send: Send, body: bytes) -> None:
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": body})
