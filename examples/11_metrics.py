"""Metrics for Prometheus: two queues behind one /metrics page, which the program scrapes itself."""

from urllib.request import urlopen

from prometheus_client import CollectorRegistry, start_http_server

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue, retry_now
from rate_envelope_queue.integrations.prometheus import Exporter

SHOWN = (
    "workqueue_adds",
    "workqueue_retries",
    "workqueue_work_duration_seconds_count",
    "rate_envelope_queue_occupied",
)


def deliver(ctx: Context, envelope: Envelope[str]) -> None:
    if envelope.payload == "grace" and ctx.attempt == 1:
        raise ConnectionError("the mail server sleeps")


def main() -> None:
    registry = CollectorRegistry()  # a real program would use the global one: Exporter(mails, reports)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)  # port 0: any free port

    with (
        RateEnvelopeQueue("mails", workers=2, capacity=100) as mails,
        RateEnvelopeQueue("reports", workers=1) as reports,
    ):
        exporter = Exporter(mails, registry=registry)
        exporter.add(reports)  # you can add a queue later

        for name in ("ada", "grace", "alan"):
            mails.send(Envelope(deliver, payload=name, failure_hook=lambda ctx, envelope, error: retry_now()))
        reports.send(Envelope(lambda ctx, envelope: None), delay=3600)
        mails.join()

        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            page = answer.read().decode()
        for line in page.splitlines():
            if line.startswith(SHOWN):
                print(line)

    exporter.close()
    server.shutdown()
    server.server_close()
    thread.join()


if __name__ == "__main__":
    main()
