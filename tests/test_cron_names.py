"""`@daily` and its kin stand for the fields that everybody knows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rate_envelope_queue import BadFieldsError, Cron

NAMES = {
    "@hourly": ("0 * * * *", datetime(2026, 5, 13, 15, tzinfo=UTC)),
    "@daily": ("0 0 * * *", datetime(2026, 5, 14, tzinfo=UTC)),
    "@weekly": ("0 0 * * 0", datetime(2026, 5, 17, tzinfo=UTC)),
    "@monthly": ("0 0 1 * *", datetime(2026, 6, 1, tzinfo=UTC)),
    "@yearly": ("0 0 1 1 *", datetime(2027, 1, 1, tzinfo=UTC)),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_ticks_as_its_fields_do(name: str) -> None:
    fields, expected = NAMES[name]
    moment = datetime(2026, 5, 13, 14, 30, tzinfo=UTC)
    named = Cron(name)
    assert named.next_after(moment) == Cron(fields).next_after(moment) == expected
    assert repr(named) == f"Cron({name!r}, tz='UTC')"


def test_at_midnight_of_a_day_whose_midnight_is_skipped_it_runs_once() -> None:
    """In Beirut the clocks go from 0:00 to 1:00."""
    before = datetime(2024, 3, 30, 12, tzinfo=UTC)
    assert [each.isoformat() for each in Cron("@daily", tz="Asia/Beirut").preview(2, before)] == [
        "2024-03-31T01:00:00+03:00",
        "2024-04-01T00:00:00+03:00",
    ]


@pytest.mark.parametrize("name", ["@", "@reboot", "@Daily", "@daily "])
def test_another_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(
        BadFieldsError, match="expr must be a cron expression, or one of @hourly, @daily"
    ) as error:
        Cron(name)
    assert repr(name) in str(error.value)
