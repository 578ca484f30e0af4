"""The settings of the shop: its orders and its tasks are in one file, so both are in one transaction."""

from pathlib import Path

import django

BASE_DIR = Path(__file__).parent.parent
DATABASE = BASE_DIR / "shop.db"

SECRET_KEY = "only for this example"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop", "jobpipe.integrations.django"]
if django.VERSION < (6, 0):
    INSTALLED_APPS += ["django_tasks"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE,
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},  # else two writers may fail with "locked"
    }
}
TASKS = {
    "default": {
        "BACKEND": "jobpipe.integrations.django.JobpipeBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"store": f"sqlite:///{DATABASE}", "queue_limits": {"mail": {"rate": "50/s"}}},
    }
}
