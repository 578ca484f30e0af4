"""A job and the rows that it is about, in one SQLite transaction: both exist, or neither."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from jobpipe import Job, Jobpipe


def order(connection: sqlite3.Connection, pipe: Jobpipe, number: int, stock: int) -> None:
    """Take an order and enqueue its bill, or neither if there is no stock."""
    with connection:  # commits, or rolls back if something is raised
        connection.execute("INSERT INTO orders VALUES (?)", (number,))
        pipe.enqueue_sync("bill", number, id=f"bill-{number}", connection=connection)
        if not stock:
            raise RuntimeError("no stock")


async def run_bills(pipe: Jobpipe, id: str) -> Job:
    async with pipe.running(workers=1):
        return await pipe.wait(id)


def main() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        pipe = Jobpipe(f"sqlite:///{path}")

        @pipe.job
        def bill(number: int) -> str:
            return f"bill for order {number}"

        pipe.store.migrate()  # creates the tables; inside our own transaction it would be locked out
        with closing(sqlite3.connect(path)) as connection, closing(pipe):
            connection.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)")
            order(connection, pipe, 17, stock=5)
            try:
                order(connection, pipe, 18, stock=0)
            except RuntimeError as error:
                print(f"order 18 is rolled back: {error}")

            rows = connection.execute("SELECT number FROM orders").fetchall()
            print(f"orders: {[number for (number,) in rows]}")
            print(f"job bill-17: {'there' if pipe.store.get('bill-17') else 'not there'}")
            print(f"job bill-18: {'there' if pipe.store.get('bill-18') else 'not there'}")

            job = asyncio.run(run_bills(pipe, "bill-17"))
            print(f"{job.status}: {job.result}")


if __name__ == "__main__":
    main()
