"""The example of a Django project: its own tests pass, and a real worker runs its tasks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from ...support.processes import program

EXAMPLE = Path(__file__).parents[3] / "examples" / "django_shop"

_VISIT = """
import json
import django

django.setup()
from django.test import Client
from shop.models import Order
from shop.tasks import count_orders

client = Client(headers={"host": "localhost"})
bread, sold_out = (client.post(f"/orders/{article}").json()["task"] for article in ("bread", "sold-out"))
counted = count_orders.enqueue()
pipe = counted.task.get_backend().pipe
for id in (bread, counted.id):
    pipe.wait_sync(id, timeout=60)
counted.refresh()
answer = client.get(f"/tasks/{bread}").json()
print(json.dumps([answer, counted.return_value, len(pipe.page_sync().jobs), [o.receipt for o in Order.objects.all()]]))
"""


def test_a_worker_of_the_project_runs_what_its_views_enqueue(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("JOBPIPE_")}
        ended = subprocess.run(
            [sys.executable, "-W", "error", *arguments],
            cwd=tmp_path,  # Why not its own folder: manage.py is found from anywhere, and so is the project
            env={**clean, "DJANGO_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    manage = str(folder / "manage.py")
    python(manage, "migrate", "--verbosity=0")
    assert "0001_jobs" in python(manage, "jobpipe", "migrate").stdout
    with program(
        ["-W", "error", manage, "jobpipe", "worker", "--queues", "mail=2,default=1"], tmp_path
    ) as worker:
        worker.line("working")
        assert "OK" in python(manage, "test", "shop").stderr
        answer, count, jobs, receipts = json.loads(python("-c", _VISIT).stdout)
        assert answer == {"status": "SUCCESSFUL", "value": "receipt 1: bread, attempt 1"}
        assert (count, jobs, receipts) == (1, 2, ["receipt 1: bread"])
        assert "shop.tasks.send_receipt" in python(manage, "jobpipe", "jobs").stdout
        worker.kill(signal.SIGTERM)
        assert worker.code() == 0
    assert "No changes detected" in python(manage, "makemigrations", "--check", "--dry-run").stdout
