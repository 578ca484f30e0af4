"""How tests wait: for an event or a condition, with one limit for all of them, and never for a fixed time."""

from __future__ import annotations

LIMIT = 60.0
"""Seconds until a test gives up on what should come at once: a busy machine must fail none."""
