"""Cron: a preview over a clock change in two time zones, and a weekend of a cron envelope without waiting."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from rate_envelope_queue import Context, Cron, Envelope, RateEnvelopeQueue
from rate_envelope_queue.testing import ManualClock

BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = datetime(2026, 3, 27, 7, tzinfo=UTC)  # on Sunday, Berlin goes from 02:00 to 03:00


def look_ahead() -> None:
    """The same expression in two time zones: one of them has no 02:30 on Sunday."""
    for zone in ("Europe/Berlin", "America/New_York"):
        print(zone)
        for moment in Cron("30 2 * * *", tz=zone).preview(3, start=FRIDAY):
            print(f"  {moment:%a %H:%M %Z} is {moment.astimezone(UTC):%a %H:%M} UTC")


def drive() -> None:
    """The queue follows it: each working day at nine in Berlin, whatever that is in UTC."""
    clock = ManualClock(start=FRIDAY)

    def report(ctx: Context, envelope: Envelope[None]) -> None:
        print(f"report on {clock.wall().astimezone(BERLIN):%a %H:%M}, {clock.wall():%H:%M} UTC")

    weekdays = Cron("0 9 * * mon-fri", tz="Europe/Berlin")
    with RateEnvelopeQueue("reports", workers=1, clock=clock) as queue:
        envelope = Envelope(report, schedule=weekdays)
        queue.send(envelope)  # unlike an interval, the first run is at the next match
        print(queue.explain(envelope))
        clock.advance("3 days")
    print(f"{queue.stats().done} reports, the next at {weekdays.next_after(clock.wall()):%a %H:%M}")


def main() -> None:
    look_ahead()
    drive()


if __name__ == "__main__":
    main()
