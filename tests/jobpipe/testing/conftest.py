"""A pipe whose own store cannot be opened: what reaches it fails the test."""

from __future__ import annotations

import pytest

from jobpipe import Jobpipe


@pytest.fixture
def pipe() -> Jobpipe:
    return Jobpipe("sqlite:////nowhere/at/all/jobs.db")
