"""Real processes: signals, the keyboard, and the end of a program."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from ..support.waiting import LIMIT


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False
    )


def test_stop_from_a_signal_handler_that_breaks_into_send_does_not_deadlock() -> None:
    done = run_script("""
        import itertools, signal, threading
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=2)
        answers = []
        signal.signal(signal.SIGALRM, lambda *_: answers.append(queue.stop()))
        queue.start()
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0003)
        work = lambda ctx, envelope: None
        starts = 0
        for i in itertools.count():
            try:
                queue.send(Envelope(work))
            except RuntimeError:
                starts += 1
                queue.start()
            if len(answers) > 300:
                break
        signal.setitimer(signal.ITIMER_REAL, 0)
        queue.start()
        queue.stop()
        stats = queue.stats()
        assert stats.done + stats.occupied == stats.added, stats
        print("ended", set(answers) <= {True, False})
    """)
    assert done.stdout == "ended True\n", done.stderr


def test_stop_from_atexit_drains() -> None:
    done = run_script("""
        import atexit
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=1)
        queue.start()
        atexit.register(lambda: print("stopped", queue.stop(), queue.stats().done))
        queue.send(*[Envelope(lambda ctx, envelope: None) for _ in range(100)])
    """)
    assert done.stdout == "stopped True 100\n", done.stderr


def test_a_program_that_forgets_to_stop_ends_all_the_same() -> None:
    done = run_script("""
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=2)
        queue.start()
        queue.send(Envelope(lambda ctx, envelope: None, interval=60))
        queue.join()
        print("end of main")
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("end of main\n", "", 0)


def test_an_interrupt_from_the_keyboard_in_send_leaves_no_lock_held() -> None:
    done = run_script("""
        import signal
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        work = lambda ctx, envelope: None
        for round in range(60):
            queue = RateEnvelopeQueue("q", workers=1)
            queue.start()
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + round * 0.00003)
                while True:
                    queue.send(Envelope(work))
            except KeyboardInterrupt:
                pass
            assert queue.stop(10), round
        print("all stopped")
    """)
    assert done.stdout == "all stopped\n", done.stderr


def test_a_parent_cancelled_by_a_signal_handler_that_breaks_into_send_does_not_deadlock() -> None:
    done = run_script("""
        import signal
        from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue
        work = lambda ctx, envelope: None
        for round in range(40):
            parent = Context()
            queue = RateEnvelopeQueue("q", workers=1, parent=parent)
            queue.start()
            signal.signal(signal.SIGALRM, lambda *_: parent.cancel())
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + round * 0.00005)
            try:
                while True:
                    queue.send(Envelope(work))
            except RuntimeError:
                pass
            assert queue.stop(10), round
        print("all stopped")
    """)
    assert done.stdout == "all stopped\n", done.stderr
