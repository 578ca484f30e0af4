"""What if: a day of mails and reports, replayed with other workers and limits before anything is changed."""

import random

from rate_envelope_queue.testing import Arrival, simulate

HOUR = 3600


def a_day(seed: int) -> list[Arrival]:
    """Mails all day long, more of them around noon, and a bunch of reports at every full hour."""
    rng = random.Random(seed)
    mails = [Arrival(rng.uniform(0, 24 * HOUR), "mail") for _ in range(12_000)]
    mails += [Arrival(rng.gauss(12 * HOUR, HOUR), "mail") for _ in range(6_000)]
    reports = [Arrival(hour * HOUR, "report", priority=-1) for hour in range(24) for _ in range(20)]
    return mails + reports


def service_time(arrival: Arrival, rng: random.Random) -> float:
    """A report takes a minute and a half, a mail about four seconds."""
    return 90.0 if arrival.type == "report" else rng.expovariate(1 / 4)


def main() -> None:
    day = a_day(seed=7)
    for workers in (1, 2, 4):
        result = simulate({"workers": workers, "capacity": 500}, day, service_time)
        p99 = result.waits.p99
        print(
            f"{workers} workers: {result.rejected} rejected, wait p99 {p99:.0f} s, busy {result.utilisation:.0%}"
        )

    # Four would do, were it not for the hour: the reports take all workers, and mails wait for them.
    print(simulate({"workers": 4, "concurrency": {"report": 2}}, day, service_time))


if __name__ == "__main__":
    main()
