"""From Django: a view enqueues a job in `transaction.atomic()`, in Django's own SQLite database: both, or neither."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import django
from django.conf import settings
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from jobpipe import Job, Jobpipe

folder = TemporaryDirectory()
database = Path(folder.name) / "shop.db"
settings.configure(
    ALLOWED_HOSTS=["testserver"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": database,
            "OPTIONS": {"transaction_mode": "IMMEDIATE"},  # else two writers may fail with "locked"
        }
    },
)
django.setup()

pipe = Jobpipe(f"sqlite:///{database}")


@pipe.job
def bill(number: int) -> str:
    return f"bill for order {number}"


def order(request: HttpRequest, number: int, stock: int) -> HttpResponse:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES (%s)", [number])
        # Django's own connection to the file, in its open transaction:
        bill.enqueue_sync(number, id=f"bill-{number}", connection=connection.connection)
        if not stock:
            raise RuntimeError("no stock")
    return HttpResponse(f"order {number} is taken", status=202)


urlpatterns = [path("orders/<int:number>/<int:stock>", order)]


async def run_bills(id: str) -> Job:
    """In production: `jobpipe worker shop:pipe`, in its own process."""
    async with pipe.running(workers=1):
        return await pipe.wait(id)


def main() -> None:
    pipe.store.migrate()  # before any transaction; in production: `jobpipe migrate`, beside Django's own
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)")

    client = Client(raise_request_exception=False)
    print(client.post("/orders/17/5").content.decode())
    print(f"without stock: {client.post('/orders/18/0').status_code}")

    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM orders")
        print(f"orders: {[number for (number,) in cursor.fetchall()]}")
    for id in ("bill-17", "bill-18"):
        print(f"job {id}: {'there' if pipe.store.get(id) else 'not there'}")
    job = asyncio.run(run_bills("bill-17"))
    print(f"{job.status}: {job.result}")

    connection.close()
    pipe.close()
    folder.cleanup()


if __name__ == "__main__":
    main()
