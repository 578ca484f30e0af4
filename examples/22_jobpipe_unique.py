"""Unique jobs: a search index is rebuilt once for many changes, and never twice at the same time."""

import asyncio

from jobpipe import Jobpipe

pipe = Jobpipe("memory://")
is_running, may_end = asyncio.Event(), asyncio.Event()


@pipe.job
async def reindex(change: int) -> str:
    is_running.set()
    await may_end.wait()
    return f"index with change {change}"


@pipe.job
async def render(draft: str) -> str:
    is_running.set()
    if draft == "first draft":
        await asyncio.sleep(60)  # is broken off when the job is cancelled
    return draft


async def begun() -> None:
    await is_running.wait()
    is_running.clear()


async def main() -> None:
    async with pipe, pipe.running(workers=4):
        first = await reindex.enqueue(0, unique="index", on_duplicate="replace")
        await begun()
        receipts = [await reindex.enqueue(n, unique="index", on_duplicate="replace") for n in range(1, 100)]
        print(f"99 changes while it runs: {len({each.id for each in receipts})} more job")
        print(f"it waits: {(await pipe.explain(receipts[0].id)).reason}")
        may_end.set()
        for id in (first.id, receipts[0].id):
            print(f"built: {(await pipe.wait(id)).result}")

        is_running.clear()
        old = await render.enqueue("first draft", unique="page", on_duplicate="restart")
        await begun()
        new = await render.enqueue("second draft", unique="page", on_duplicate="restart")
        print(f"first draft: {(await pipe.wait(old.id)).status}")
        print(f"rendered: {(await pipe.wait(new.id)).result}")

        kept = await reindex.enqueue(1, unique="nightly", delay=3600)
        again = await reindex.enqueue(2, unique="nightly", delay=3600)
        print(f"nightly again: a new job? {again.is_new}; the payload is {(await pipe.get(kept.id)).payload}")


if __name__ == "__main__":
    asyncio.run(main())
