"""What is said of a URL, and what is not."""

from __future__ import annotations

import pytest

from jobpipe.errors import SettingsError
from jobpipe.masking import masked
from jobpipe.stores import open_store


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite:////tmp/jobs.db?key=hunter2", "sqlite:////tmp/jobs.db?***"),
        ("postgresql://me:hunter2@host:5432/db", "postgresql://***@host:5432/db"),
        ("postgresql://hunter2@host/db#hunter2", "postgresql://***@host/db?***"),
        ("postgresql://me:a@hunter2/b@host/db", "postgresql://***"),
        ("redis://:hunter2@[::1/0", "redis://***@[::1/0"),
        ("redis://host?password=a@hunter2", "redis://***"),
        ("hunter2", "***"),
        ("://hunter2", "***"),
        ("", "***"),
    ],
)
def test_only_what_is_no_secret_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        *(
            "hunter2",
            "hunter2:x",
            "sqlite://me:hunter2@host/x",
            "sqlite:///:memory:?key=hunter2",
        ),
        *("mysql://me:hunter2@host", "mysql://me:hunter2@[host", "mysql://me:hunter2@h\u2100st/x"),
    ],
)
def test_a_wrong_store_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingsError, match="JOBPIPE_STORE must") as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
