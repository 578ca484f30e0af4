"""A Django project whose tasks are jobs of jobpipe, in Django's own SQLite database.

python manage.py migrate && python manage.py jobpipe migrate
python manage.py runserver
python manage.py jobpipe worker        # or `jobpipe serve`: with the dashboard on http://localhost:8080
curl -d '' localhost:8000/orders/bread
"""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
