"""The thread queue is a concurrent.futures.Executor: submit, map, run_in_executor, next to ordinary envelopes."""

import asyncio
from concurrent.futures import as_completed
from hashlib import sha256

from rate_envelope_queue import RateEnvelopeQueue

DOCUMENTS = ["contract", "invoice", "receipt"]


def digest(name: str) -> str:
    return f"{name} {sha256(name.encode()).hexdigest()[:8]}"


async def from_asyncio(queue: RateEnvelopeQueue) -> None:
    loop = asyncio.get_running_loop()
    print(f"run_in_executor: {await loop.run_in_executor(queue, digest, 'minutes')}")


def main() -> None:
    with RateEnvelopeQueue("digests", workers=4) as queue:
        futures = [queue.submit(digest, name) for name in DOCUMENTS]
        for line in sorted(future.result() for future in as_completed(futures)):
            print(f"submit: {line}")

        for line in queue.map(digest, DOCUMENTS):  # in the order of the documents
            print(f"map: {line}")

        error = queue.submit(int, "many").exception()
        print(f"an error is the future's: {error}")

        asyncio.run(from_asyncio(queue))

    queue.shutdown()  # final, as for any executor
    print(queue.state.value)


if __name__ == "__main__":
    main()
