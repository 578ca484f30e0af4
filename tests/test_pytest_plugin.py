"""The fixtures that ship as a pytest plug-in, in a real run of pytest."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

USERS_TEST = """
    import asyncio
    from rate_envelope_queue import AsyncRateEnvelopeQueue, Envelope, RateEnvelopeQueue

    def test_threads(manual_clock):
        with RateEnvelopeQueue("q", workers=1, clock=manual_clock) as queue:
            queue.send(Envelope(lambda ctx, envelope: None, interval=3600))
            manual_clock.advance("3 days")
            assert queue.stats().done == 73

    def test_asyncio(async_manual_clock):
        async def noop(ctx, envelope): ...

        async def main():
            async with AsyncRateEnvelopeQueue("q", workers=1, clock=async_manual_clock) as queue:
                await queue.send(Envelope(noop, interval=3600))
                await async_manual_clock.advance("3 days")
                assert queue.stats().done == 73

        asyncio.run(main())
"""


def test_the_fixtures_are_there_for_users(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(textwrap.dedent(USERS_TEST))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
