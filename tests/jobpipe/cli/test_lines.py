"""Files of jobs: what a line may be, and which lines go in together."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from jobpipe.cli import lines
from jobpipe.cli.lines import BadLineError, Source, open_source
from jobpipe.errors import BadInputError, SettingsError


def source(text: str | bytes, **defaults: object) -> Source:
    raw = text.encode() if isinstance(text, str) else text
    return Source(io.BytesIO(raw), "jobs.jsonl", defaults)


def chunks(text: str | bytes, **defaults: object) -> list[list[int]]:
    return [[line.number for line in chunk] for chunk in source(text, **defaults).chunks()]


def test_blank_lines_are_skipped_and_counted() -> None:
    assert chunks('\n{"id": "a"}\r\n  \n{"id": "b"}') == [[2, 4]]
    assert chunks("") == chunks("\n \n") == []


def test_a_byte_order_mark_is_taken_off() -> None:
    assert chunks(b'\xef\xbb\xbf{"id": "a"}\n') == [[1]]


def test_options_hold_for_lines_that_do_not_say_otherwise() -> None:
    text = '{"priority": 7}\n{"type": "echo", "delay": 5}\n{"run_at": "2030-01-01T00:00:00Z"}\n'
    ((first, second, third),) = source(text, type="sleep", delay=9, priority=1).chunks()
    assert (first.request.type, first.request.priority, first.request.delay) == ("sleep", 7, 9)
    assert (second.request.type, second.request.priority, second.request.delay) == ("echo", 1, 5)
    assert third.request.run_at
    assert not third.request.delay, "it would contradict the line's own run_at"


def test_a_chunk_has_a_thousand_lines() -> None:
    assert [len(chunk) for chunk in chunks("{}\n" * 2_500)] == [1_000, 1_000, 500]


def test_an_id_that_is_there_twice_begins_a_new_chunk() -> None:
    assert chunks('{"id": "a"}\n{"id": "b"}\n{"id": "a"}\n{}\n{}\n') == [[1, 2], [3, 4, 5]]


def test_a_chunk_is_no_larger_than_a_service_takes() -> None:
    long = '{"payload": "' + "x" * 3_000_000 + '"}\n'
    assert [len(chunk) for chunk in chunks(long * 3)] == [2, 1]
    deep = '{"payload": ' + "[[], " * 60 + "1" + "]" * 60 + "}\n"
    wide = '{"payload": [' + ",".join(["[]"] * 100_000) + "]}\n"
    assert [len(chunk) for chunk in chunks(deep + wide * 3)] == [3, 1]


def test_the_end_of_a_line_is_told_in_bytes_of_the_file() -> None:
    text = '\n{"payload": "é"}\n{}\n'
    ((first, last),) = source(text).chunks()
    assert (first.end, last.end) == (19, len(text.encode()))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "the line is not JSON: "),
        ("[1]", "the line must be a JSON object"),
        ('{"id": "a", "id": "b"}', "the key 'id' appears twice"),
        ('{"payload": NaN}', "NaN is not JSON"),
        ('{"id": "a b"}', "id must consist of"),
        ('{"max_retries": 101}', "max_retries "),
        ('{"retries": 1}', "retries is not a known field"),
        ('{"delay": 1, "run_at": "2030-01-01T00:00:00Z"}', "delay and run_at exclude each other"),
        ("\udcff", "the line is not UTF-8"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number_and_field(line: str, said: str) -> None:
    raw = b'{"id": "x"}\n\n' + line.encode("utf-8", "surrogateescape") + b"\n{}\n"
    with pytest.raises(BadLineError) as caught:
        list(source(raw).chunks())
    assert str(caught.value).startswith(f"jobs.jsonl:3: {said}")


def test_a_bad_line_costs_its_own_chunk_only() -> None:
    given = source("{}\n" * 1_200 + "?\n").chunks()
    assert len(next(given)) == 1_000
    with pytest.raises(BadLineError, match=r"jobs\.jsonl:1201: "):
        next(given)


def test_a_line_without_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1_000)
    endless = io.BytesIO(b"{}\n" + b" " * 1_000_000)
    with pytest.raises(BadLineError, match=r"x:2: the line is longer than 1,000 bytes"):
        list(Source(endless, "x", {}).chunks())
    assert endless.tell() < 2_000


def test_a_long_file_is_not_held() -> None:
    class Endless(io.BytesIO):
        left = 20_000

        def readline(self, size: int | None = -1, /) -> bytes:
            self.left -= 1
            return b'{"payload": "' + b"x" * 1_000 + b'"}\n' if self.left >= 0 else b""

    tracemalloc.start()
    try:
        assert sum(len(chunk) for chunk in Source(Endless(), "x", {}).chunks()) == 20_000
        assert tracemalloc.get_traced_memory()[1] < 6_000_000, "of 20 MB"
    finally:
        tracemalloc.stop()


def test_a_file_that_cannot_be_read_is_refused() -> None:
    for path in ("missing.jsonl", "."):
        with pytest.raises(SettingsError, match="--file cannot be read"), open_source(path, {}):
            pass


def test_wrong_options_are_refused_before_the_file_is_opened() -> None:
    with pytest.raises(BadInputError, match="priority"), open_source("missing.jsonl", {"priority": 9_999}):
        pass
