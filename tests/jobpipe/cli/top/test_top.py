"""`jobpipe top` in a real terminal, on a real service with real jobs."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import Start
from .screens import Service, service_in, top, window

_COLOUR = rb"\x1b\[(\d+;)*[349][0-7]m"
UP, DOWN, ESCAPE = "\x1b[A", "\x1b[B", "\x1b"


@pytest.fixture
def service(start: Start, folder: Path) -> Service:
    return Service(start, folder)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One without jobs, for the tests that change nothing."""
    with service_in(tmp_path_factory.mktemp("idle")) as found:
        yield found


# What is shown


def test_all_panels_are_shown_in_80_by_24(service: Service) -> None:
    service.put("film-1", "step", "page 5 of 10", queue="media")
    service.put("later", "step", delay=600)
    service.put_failed("mail-1", "no such address", queue="mails")
    with top(service) as shell:
        shell.until(r"^  \S+ +1/4 +\d+ s +\d+ s film-1$")
        shown = shell.until(r"film-1 .*████░░░░  50% page 5 of 10$")
    assert re.search(r"^ jobpipe top +http://127.0.0.1:\d+ +live +\d\d:\d\d:\d\d UTC$", shown, re.MULTILINE)
    assert re.search(r"^ done/s [\d.]+ .*failed/s [\d.]+", shown, re.MULTILINE)
    assert " scheduled 1  waiting 0  queued 0  running 1  done 0  failed 1  cancelled 0" in shown
    assert re.search(r"^▸ QUEUES 3 +SCHEDULED +WAITING +QUEUED +RUNNING STATE", shown, re.MULTILINE)
    assert re.search(r"^▸ default +1 +0 +0 +0 open", shown, re.MULTILINE)
    assert re.search(r"^  media +0 +0 +0 +1 open", shown, re.MULTILINE)
    assert re.search(r"^  film-1 +step +media +\d+ s", shown, re.MULTILINE)
    assert re.search(r"^  WORKERS 1", shown, re.MULTILINE)
    assert re.search(r"^  mail-1 +crash +mails +\d+ s +1/1 ValueError: no such a…$", shown, re.MULTILINE)
    assert re.search(r"Tab panel .*q quit$", shown, re.MULTILINE)
    assert len(shown.splitlines()) == 24


def test_rates_and_depths_become_pictures_as_time_goes_by(service: Service) -> None:
    service.pause("mails")
    service.put("one", "crash", queue="mails")
    with top(service) as shell:
        shell.until(r"^▸ mails .* paused █{3,}$")
        service.put_failed("two")
        shell.until(r"failed/s 0\.[1-9] .*[▂-█]")


def test_what_jobs_bring_is_never_raw(service: Service) -> None:
    service.put("loud", "step", "\x1b[2J\x1b]0;owned\x07 \u202e\r")
    service.put_failed("rude", "\x1b[31mred\nline")
    with top(service) as shell:
        shell.until(r"loud .*\\x1b")
        shell.press("\t\t\t")
        shell.until(r"^ ValueError: \\x1b\[31mred\\nline$")
        assert shell.raw.count(b"\x1b[2J") <= 2, "ours: when it begins"
        assert b"\x1b]0" not in shell.raw
        assert b"\x07" not in shell.raw


def test_it_follows_the_size_of_the_terminal(service: Service) -> None:
    service.put("film-1", "step", "a note that needs some room to be read to its end", queue="media")
    with top(service) as shell:
        shell.until("film-1")
        assert "to its end" not in shell.shown
        shell.resize(170, 30)
        shown = shell.until(r"QUEUES .* RUNNING 1 (?:.*\n)*.*\S\Z")  # the last line comes last
        assert len(shown.splitlines()) == 30
        shell.resize(30, 5)
        shell.until("too small: 40x13 at")
        shell.resize(140, 40)
        shell.until(r"read to its end$")


def test_it_writes_only_the_lines_that_changed(idle: Service) -> None:
    with top(idle) as shell:
        shell.press("?")
        shell.until("any key closes it")
        begin = len(shell.raw)
        shell.press("x")
        shell.until("QUEUES")
        assert b"\x1b[2J" not in shell.raw[begin:]
        assert b"scheduled 0" not in shell.raw[begin:], "a line that is the same in both"


def test_without_colours_it_says_the_same(service: Service) -> None:
    service.put_failed("mail-1")
    service.pause("default")
    with top(service, env={"NO_COLOR": "1"}) as shell:
        shell.until(r"^▸ default .*paused")
        assert not re.search(_COLOUR, shell.raw)
    with top(service) as shell:
        assert re.search(_COLOUR, shell.raw)


def test_a_terminal_without_unicode_gets_ascii(service: Service) -> None:
    service.put("film-1", "step", "日本")
    with top(service, env={"PYTHONIOENCODING": "ascii"}) as shell:
        shell.until(r"film-1 .*####\.\.\.\.  50% \?\?")
        assert shell.raw.isascii()


# Keys


def test_p_pauses_the_chosen_queue_and_resumes_it(service: Service) -> None:
    for queue in ("a", "b"):
        service.put(f"job-{queue}", "step", delay=600, queue=queue)
    with top(service) as shell:
        shell.until("^▸ a ")
        shell.press(DOWN)
        shell.until("^▸ b .*open")
        shell.press("p")
        shell.until("^▸ b .*paused")
        assert "queue b is paused" in shell.shown
        assert re.search("^  a .*open", shell.shown, re.MULTILINE)
        shell.press("p")
        shell.until("^▸ b .*open")
        shell.press(UP)
        shell.until("^▸ a ")


def test_r_runs_the_chosen_failed_job_again(service: Service) -> None:
    service.put_failed("first")
    service.put_failed("second")
    service.pause("default")
    with top(service) as shell:
        shell.until("FAILED 2")
        shell.press("\x1b[Z")
        shell.until("^▸ second ")
        shell.press("j")
        shell.until("^▸ first ")
        shell.press("r")
        shell.until("FAILED 1")
        shell.until("^▸ second ")
        assert "job first is queued again" in shell.shown
    assert (service.status("first"), service.status("second")) == ("queued", "failed")


def test_c_cancels_the_chosen_job_after_a_question(service: Service) -> None:
    service.put("film-1", "step", "…")
    with top(service) as shell:
        shell.until("RUNNING 1")
        shell.press("\tc")
        shell.until(r"^ cancel job film-1\? \[y/N\]$")
        shell.press("\r")
        shell.until("nothing was changed")
        assert service.status("film-1") == "running"
        shell.press("cy")
        shell.until("no jobs are running")
        shell.until("cancelled 1")
    assert service.status("film-1") == "cancelled"


def test_a_key_in_the_wrong_panel_says_where_it_belongs(idle: Service) -> None:
    with top(idle) as shell:
        for key, words in {
            "r": "r runs a failed job again: go to failed with Tab",
            "c": "c cancels a running job: go to running with Tab",
            "p": "p pauses and resumes a queue: there is none here",
        }.items():
            shell.press(key)
            shell.until(words)


def test_a_slash_filters_by_queue_type_and_id(service: Service) -> None:
    service.put("film-1", "step", "…", queue="media")
    service.put("song-1", "step", "…", queue="audio")
    service.put_failed("mail-1", queue="mails")
    with top(service) as shell:
        shell.until("RUNNING 2")
        shell.press("/FILN")
        shell.until("filter: FILN_")
        shell.until("RUNNING 0 of 2")
        shell.press("\x7fM")
        shell.until("RUNNING 1 of 2")
        assert "film-1" in shell.shown
        assert "song-1" not in shell.shown
        assert "nothing matches the filter" in shell.shown
        shell.press("\x7f\x7f\x7f\x7faudio\r")
        shell.until(r"filter: audio \(Esc clears it\)")
        assert "song-1" in shell.shown
        assert re.search("^▸ audio ", shell.shown, re.MULTILINE)
        shell.press(ESCAPE)
        shell.until("RUNNING 2 ")
        assert "filter:" not in shell.shown
        shell.press("/crash\r")
        shell.until("RUNNING 0 of 2")
        assert "mail-1" in shell.shown


def test_tab_goes_round_the_panels(idle: Service) -> None:
    with top(idle) as shell:
        for name in ("RUNNING", "WORKERS", "FAILED", "QUEUES"):
            shell.press("\t")
            shell.until(f"^▸ {name}")
        shell.press("\x1b[Z")
        shell.until("^▸ FAILED")


def test_a_question_mark_lists_the_keys(idle: Service) -> None:
    with top(idle) as shell:
        shell.press("?")
        shown = shell.until("Keys")
        assert "Shift+Tab" in shown
        assert "…" not in shown, "no line is cut in 80 columns"
        shell.press(" ")
        shell.until("QUEUES")
        shell.press("?q")
        assert shell.code() == 0


# The service


def test_it_outlives_the_service_and_recovers(service: Service, start: Start, folder: Path) -> None:
    service.put("film-1", "step", "…", delay=600)
    with top(service) as shell:
        shell.until("scheduled 1")
        service.program.kill(signal.SIGTERM)
        assert service.program.code() == 0
        shell.until("connection lost, trying again$")
        shell.until("^ the service at .* cannot be reached: ")
        assert "scheduled 1" in shell.shown, "what was known stays"
        shell.press("p")
        shell.until("cannot be reached")
        again = Service(start, folder, port=service.port)
        shell.until(" live ")
        again.put("film-2", "step", "…", delay=600)
        shell.until("scheduled 2")
        shell.press("q")
        assert shell.code() == 0


def test_keys_do_not_wait_for_a_service_that_hangs(service: Service) -> None:
    with top(service) as shell:
        os.killpg(service.program.pid, signal.SIGSTOP)
        shell.press("?")
        shell.until("any key closes it")
        shell.press("q")
        assert shell.code() == 0
        assert shell.attributes() == shell.before


def test_a_token_that_is_not_taken_any_more_ends_it(service: Service, start: Start, folder: Path) -> None:
    with top(service) as shell:
        service.program.kill(signal.SIGTERM)
        service.program.code()
        shell.until("connection lost")
        Service(start, folder, port=service.port, token="another")
        assert shell.code() == 1
        assert shell.attributes() == shell.before
        after = shell.raw.rpartition(b"\x1b[?1049l")[2].decode()
        assert re.match(r"error: the service at \S+ refuses: .*--token", after)


# The end


@pytest.mark.parametrize(
    ("how", "code"), [("q", 0), ("\x03", 0), (signal.SIGTERM, 143), (signal.SIGINT, 0)], ids=str
)
def test_the_terminal_is_given_back_as_it_was(idle: Service, how: str | int, code: int) -> None:
    with top(idle) as shell:
        assert shell.attributes() != shell.before
        assert b"\x1b[?1049h" in shell.raw
        if isinstance(how, str):
            shell.press(how)
        else:
            shell.process.send_signal(how)
        assert shell.code() == code
        assert shell.attributes() == shell.before
        assert shell.raw.endswith(b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l")


def test_it_ends_with_its_terminal(idle: Service) -> None:
    with top(idle) as shell:
        shell.hang_up()
        assert shell.process.wait(30) == 129


def test_it_ends_with_its_terminal_even_if_nobody_tells(idle: Service) -> None:
    """As under nohup: the signal is ignored, and the terminal gone all the same."""
    command = " ".join([sys.executable, "-m", "jobpipe", "top", *idle.flags])
    with window("bash", "-c", f"trap '' HUP; exec {command}") as shell:
        shell.until("live")
        shell.hang_up()
        assert shell.process.wait(30) == 129


def test_it_can_be_stopped_and_continued(idle: Service) -> None:
    """Ctrl+Z gives the terminal to the shell, and `fg` takes it again."""
    with window("bash", "--norc", "--noediting", "-i", env={"PS1": "ready> "}) as shell:
        shell.until("ready>")
        before = shell.attributes()
        shell.press(" ".join([sys.executable, "-m", "jobpipe", "top", *idle.flags]) + "\n")
        shell.until("^▸ QUEUES")
        shell.press("\x1a")
        shell.until("Stopped")
        assert shell.attributes() == before
        assert shell.raw.rpartition(b"\x1b[?1049l")[0]
        shell.press("fg\n")
        shell.without("Stopped")
        shell.until("^▸ QUEUES")
        shell.press("q")
        shell.until("^ready>")
        assert shell.attributes() == before
        shell.press("exit\n")
        assert shell.code() == 0
