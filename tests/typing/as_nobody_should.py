"""Calls that must be errors: an unused `type: ignore` here means that one no longer is."""

from __future__ import annotations

from rate_envelope_queue import AsyncRateEnvelopeQueue, Context, Envelope, RateEnvelopeQueue


def work(ctx: Context, envelope: Envelope[int]) -> None: ...
def wrong_number(ctx: Context) -> None: ...


Envelope()  # type: ignore[call-arg]
Envelope(wrong_number)  # type: ignore[arg-type]
Envelope(work, deadline="soon")  # type: ignore[arg-type]
Envelope(work, interwal=5)  # type: ignore[call-arg]
RateEnvelopeQueue("q")  # type: ignore[call-arg]
RateEnvelopeQueue("q", workers="4")  # type: ignore[arg-type]
RateEnvelopeQueue("q", workers=4, stop_mode="halt")  # type: ignore[arg-type]
RateEnvelopeQueue("q", workers=4, wokers=4)  # type: ignore[call-arg]
AsyncRateEnvelopeQueue("q", workers=4, rates={"t": 5})  # type: ignore[dict-item]
RateEnvelopeQueue("q", workers=4).send(work)  # type: ignore[arg-type]
RateEnvelopeQueue("q", workers=4).submit(len, 5)  # type: ignore[arg-type]
