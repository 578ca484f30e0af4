"""Which files of a program count, and when they have changed."""

from __future__ import annotations

import os
from pathlib import Path

from jobpipe.process.changes import Changes


def test_a_file_that_is_changed_added_or_removed_is_named_once(tmp_path: Path) -> None:
    app = tmp_path / "pack" / "app.py"
    app.parent.mkdir()
    app.write_text("a = 1")
    changes = Changes(tmp_path)
    assert changes.next() is None
    os.utime(app, (1, 1))
    assert changes.next() == str(app)
    assert changes.next() is None
    (tmp_path / ".env").write_text("WORKERS=1")
    assert changes.next() == str(tmp_path / ".env")
    app.unlink()
    assert changes.next() == str(app)


def test_other_files_do_not_count(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    for name in ("jobs.db", ".git/hook.py", "__pycache__/a.py", "env/lib/a.py", "env/pyvenv.cfg"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("")
    assert changes.next() is None
