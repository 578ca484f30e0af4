"""A what-if: how many workers does a day of mails need? Replayed with the real rules, without waiting."""

from random import Random

from rate_envelope_queue.testing import Arrival, simulate

DAY = 86_400
MAILS = 20_000


def trace() -> list[Arrival]:
    """A day of mails: most of them in the morning, a few of them urgent."""
    rng = Random(7)
    moments = sorted(rng.triangular(0, DAY, DAY / 3) for _ in range(MAILS))
    return [Arrival(at, type="mail", priority=int(rng.random() < 0.05)) for at in moments]


def main() -> None:
    arrivals = trace()
    for workers in (1, 2, 4):
        result = simulate(
            {"workers": workers, "capacity": 1000},
            arrivals,
            lambda arrival, rng: rng.expovariate(1 / 5),  # five seconds per mail on average
        )
        print(
            f"{workers} workers: {result.rejected} rejected, "
            f"wait p99 {result.waits.p99:.0f} s, busy {result.utilisation:.0%}"
        )
    print(simulate({"workers": 4, "rates": {"mail": "15/min"}}, arrivals, 5))


if __name__ == "__main__":
    main()
