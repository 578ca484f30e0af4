"""Benchmarks: every figure that the docs claim is measured here, next to its peer, in one run."""
