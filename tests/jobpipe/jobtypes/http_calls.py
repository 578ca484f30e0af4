"""What the tests of the type `http` call with: a network of their own, and a job from its start to its end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from jobpipe import Job, Jobpipe, JobStatus
from jobpipe.jobtypes.builtin import register_http
from jobpipe.jobtypes.http.address import Address
from jobpipe.jobtypes.http.job import HttpJob
from jobpipe.jobtypes.http.network import Network

from ...support.jobs import finished
from ...support.waiting import run

PUBLIC = "93.184.216.34"
"""Stands for any public address: nothing is ever connected to it."""


class World:
    """A network of names that lead to addresses, and of addresses that lead to canaries; it notes what is asked of it."""

    def __init__(self, names: dict[str, Sequence[str]], ports: dict[str, int] | None = None) -> None:
        self.names = names
        self.ports = ports or {}
        self.asked: list[str] = []
        self.reached: list[str] = []

    def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.names[host]

    def connect(self, address: Address, port: int, timeout: float) -> socket.socket:
        self.reached.append(str(address))
        if str(address) not in self.ports:
            raise ConnectionRefusedError("nobody is there")
        return connect_to(self.ports[str(address)], timeout)

    def network(self, tls: ssl.SSLContext | None = None) -> Network:
        return Network(self.resolve, self.connect, lambda: tls or ssl.create_default_context())


def connect_to(port: int, timeout: float) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout)


def pipe_for(*targets: str, network: Network | None = None) -> Jobpipe:
    pipe = Jobpipe("memory://", http_targets=targets)
    if network is not None:
        register_http(pipe.job, HttpJob(lambda: pipe.settings.http_targets, network))
    return pipe


def call(pipe: Jobpipe, url: str, max_retries: int = 0, deadline: float | None = None, **payload: Any) -> Job:
    """Put a call in, run it, and return what became of it."""

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue(
                "http", {"url": url, **payload}, id="call", max_retries=max_retries, deadline=deadline
            )
            return await finished(pipe, receipt.id)

    return run(scenario())


def result_of(job: Job) -> Any:
    assert job.error is None, job.error
    return job.result


def message_of(job: Job) -> str:
    """Why it failed."""
    assert job.status is JobStatus.FAILED, job
    assert job.error is not None
    return job.error.message
