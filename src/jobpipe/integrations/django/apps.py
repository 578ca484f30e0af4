"""The app for INSTALLED_APPS: it brings the command `manage.py jobpipe`."""

from django.apps import AppConfig


class JobpipeConfig(AppConfig):  # type: ignore[misc] # Why: Django is not typed
    """The app."""

    name = "jobpipe.integrations.django"
    label = "jobpipe"
    verbose_name = "Jobpipe"
