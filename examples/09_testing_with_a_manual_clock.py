"""Testing with a manual clock: three days of an hourly report, and a retry the next morning, in milliseconds."""

import time
from datetime import UTC, datetime

from rate_envelope_queue import Context, Decision, Envelope, RateEnvelopeQueue, every, retry_after
from rate_envelope_queue.testing import ManualClock

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def test_a_report_is_made_each_hour() -> None:
    clock = ManualClock(start=MONDAY)
    reports: list[str] = []

    def report(ctx: Context, envelope: Envelope[None]) -> None:
        reports.append(f"{clock.wall():%A %H:%M}")

    with RateEnvelopeQueue("reports", workers=1, clock=clock) as queue:
        queue.send(every(3600, report))
        clock.advance("3 days")  # returns when everything due has run

    assert len(reports) == 1 + 72  # one at once, then one for each hour
    print(f"{len(reports)} reports, from {reports[0]} to {reports[-1]}")


def test_a_failed_backup_is_tried_again_in_the_morning() -> None:
    clock = ManualClock(start=MONDAY)
    attempts: list[str] = []

    def back_up(ctx: Context, envelope: Envelope[None]) -> None:
        attempts.append(f"{clock.wall():%H:%M}")
        if ctx.attempt == 1:
            raise ConnectionError("the server sleeps")

    def in_the_morning(ctx: Context, envelope: Envelope[None], error: Exception) -> Decision:
        return retry_after(8 * 3600)

    with RateEnvelopeQueue("backups", workers=1, clock=clock) as queue:
        queue.send(Envelope(back_up, failure_hook=in_the_morning))
        clock.advance("7 hours")
        assert attempts == ["00:00"]
        clock.advance("1 hour")
        assert attempts == ["00:00", "08:00"]

    print(f"backup attempts at {' and '.join(attempts)}")


def main() -> None:
    began = time.perf_counter()
    test_a_report_is_made_each_hour()
    test_a_failed_backup_is_tried_again_in_the_morning()
    print(f"three days and eight hours took {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
