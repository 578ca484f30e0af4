"""A shop with background jobs: a mail after each order, a reminder a day later, a report each night."""

import sqlite3
from datetime import timedelta

from jobpipe import Jobpipe, Retry, current_job

pipe = Jobpipe("sqlite:///shop_jobs.db")
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, buyer TEXT, paid INTEGER DEFAULT 0)")
db.execute("CREATE TABLE payments (order_id TEXT, job TEXT UNIQUE)")


class Mailer:
    """Stands for a mail server."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.is_down = False

    def send(self, to: str, text: str) -> None:
        if self.is_down:
            raise ConnectionError("the mail server does not answer")
        self.sent.append((to, text))


mailer = Mailer()


@pipe.job("email", max_retries=5, queue="mail")
async def send_email(to: str, text: str) -> None:
    mailer.send(to, text)


@pipe.job("pay", retry_on=ConnectionError)
def pay(order_id: str) -> int:
    """Paid once, however often it runs: the payment has the id of the job."""
    with db:
        db.execute("INSERT OR IGNORE INTO payments VALUES (?, ?)", (order_id, current_job().id))
        db.execute("UPDATE orders SET paid = 1 WHERE id = ?", (order_id,))
    return payments(order_id)


@pipe.job("remind")
async def remind(order_id: str, buyer: str) -> None:
    if db.execute("SELECT paid FROM orders WHERE id = ?", (order_id,)).fetchone() is None:
        raise Retry(timedelta(hours=1))
    await send_email.enqueue({"to": buyer, "text": f"How is {order_id}?"})


@pipe.cron("0 3 * * *", tz="Europe/Berlin")
async def nightly_report() -> None:
    mailer.send("boss@example.org", "the report")


def place_order(order_id: str, buyer: str) -> None:
    with db:
        db.execute("INSERT INTO orders (id, buyer) VALUES (?, ?)", (order_id, buyer))
    pay.enqueue_sync(order_id)
    send_email.enqueue_sync({"to": buyer, "text": f"Thanks for {order_id}"}, tags=["order"])
    remind.enqueue_sync({"order_id": order_id, "buyer": buyer}, delay=timedelta(days=1))


def payments(order_id: str) -> int:
    (count,) = db.execute("SELECT count(*) FROM payments WHERE order_id = ?", (order_id,)).fetchone()
    return int(count)
