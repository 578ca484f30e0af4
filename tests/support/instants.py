"""Instants, and steps between them, for tests of schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # Berlin
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
]


moments = st.one_of(
    st.datetimes(datetime(2025, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),
    st.builds(lambda at, away: at + away, st.sampled_from(CHANGES), st.timedeltas(-4 * HOUR, 4 * HOUR)),
)
