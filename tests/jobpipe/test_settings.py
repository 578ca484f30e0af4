"""Where a setting comes from, how it is read, and what is said of a wrong one."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from jobpipe.errors import SettingsError
from jobpipe.settings import Settings, read_env_file, unknown_settings

NO_FILE = "/nowhere/.env"


def load(flags: dict[str, Any] | None = None, /, **environ: str) -> Settings:
    return Settings.load(flags, environ=environ, env_file=NO_FILE)


def test_without_anything_the_defaults_hold() -> None:
    settings = load()
    assert settings == Settings()
    assert (settings.workers, settings.queue_size, settings.host, settings.port) == (4, 64, "127.0.0.1", 8080)
    assert (settings.store, settings.lease, settings.grace, settings.keep) == (
        "sqlite:///jobpipe.db",
        30,
        30,
        604_800,
    )
    assert settings.max_payload == 256 * 1024


def test_flags_win_over_environment_over_file_over_program(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    given: dict[str, Any] = {"defaults": {"workers": 1}, "environ": {}, "env_file": file}
    assert Settings.load(**given).workers == 1
    file.write_text("WORKERS=2\n")
    assert Settings.load(**given).workers == 2
    given["environ"] = {"WORKERS": "3"}
    assert Settings.load(**given).workers == 3
    assert Settings.load({"workers": "5"}, **given).workers == 5
    assert Settings.load({"workers": None}, **given).workers == 3


def test_longer_names_win_over_the_short_ones_beside_them(tmp_path: Path) -> None:
    settings = load(WORKERS="1", JOBPIPE_WORKERS="2", QUEUE_SIZE="3", JOBPIPE_QUEUE_SIZE="5")
    assert (settings.workers, settings.queue_size) == (2, 5)
    with pytest.raises(SettingsError, match=r"^JOBPIPE_WORKERS must be"):
        load(WORKERS="1", JOBPIPE_WORKERS="x")
    file = tmp_path / ".env"
    file.write_text("WORKERS=1\nJOBPIPE_WORKERS=2\n")
    assert Settings.load(environ={}, env_file=file).workers == 2
    assert Settings.load(environ={"WORKERS": "3"}, env_file=file).workers == 3, "the environment wins"


def test_switches_are_read_as_people_write_them() -> None:
    for text in ("on", "true", "YES", "1"):
        assert load(JOBPIPE_BUILTINS=text).builtins is True
    for text in ("off", "False", "no", "0"):
        assert load({"builtins": True}).builtins is True
        assert load(JOBPIPE_BUILTINS=text).builtins is False


def test_values_are_read_by_their_kind() -> None:
    settings = load(
        JOBPIPE_GRACE="0.5",
        QUEUE_SIZE=" 0 ",
        JOBPIPE_ALLOWED_HOSTS="a.example, b.example,",
        JOBPIPE_LOG="json",
    )
    assert (settings.grace, settings.queue_size, settings.log) == (0.5, 0, "json")
    assert settings.allowed_hosts == ("a.example", "b.example")
    assert load({"http_targets": ("https://a", "https://b")}).http_targets == ("https://a", "https://b")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORKERS", "x"),
        ("WORKERS", "-1"),
        ("WORKERS", "1.5"),
        ("WORKERS", ""),
        ("WORKERS", "1_0"),
        ("WORKERS", "٣"),
        ("QUEUE_SIZE", "-1"),
        ("JOBPIPE_PORT", "65536"),
        ("JOBPIPE_GRACE", "nan"),
        ("JOBPIPE_GRACE", "inf"),
        ("JOBPIPE_GRACE", "-0.1"),
        ("JOBPIPE_KEEP", "1e300"),
        ("JOBPIPE_LEASE", "0"),
        ("JOBPIPE_MAX_PAYLOAD", "0"),
        ("JOBPIPE_BUILTINS", "perhaps"),
        ("JOBPIPE_BUILTINS", ""),
        ("JOBPIPE_LOG", "xml"),
        ("JOBPIPE_STORE", " "),
        ("JOBPIPE_HOST", ""),
    ],
)
def test_a_wrong_value_names_the_setting_in_one_line(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match="must be") as caught:
        load(**{name: value})
    assert caught.value.name == name
    assert "\n" not in str(caught.value)


def test_a_wrong_value_names_the_place_that_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^--max-payload must be a whole number .* got 'a\\nb'$"):
        load({"max_payload": "a\nb"})
    (tmp_path / ".env").write_text("WORKERS=many")
    with pytest.raises(SettingsError, match=r"^WORKERS \(in .*\.env\) must"):
        Settings.load(environ={}, env_file=tmp_path / ".env")
    with pytest.raises(SettingsError, match=r"^port must"):
        Settings.load(environ={}, env_file=NO_FILE, defaults={"port": True})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="wrkers is not a known setting"):
        Settings.load(environ={}, env_file=NO_FILE, defaults={"wrkers": 3})
    with pytest.raises(SettingsError, match=r"^wrkers is not a known setting; did you mean 'workers'\?$"):
        load({"wrkers": 3})


def test_secrets_are_in_no_text() -> None:
    settings = load(
        JOBPIPE_TOKEN="hunter2", JOBPIPE_READ_TOKEN="hunter3", JOBPIPE_STORE="postgresql://me:hunter4@host/db"
    )
    assert "hunter" not in repr(settings)
    with pytest.raises(SettingsError) as caught:
        load(JOBPIPE_TOKEN="hunter two")
    assert "hunter" not in str(caught.value)


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    assert load(JOBPIPE_TOKEN_FILE=str(file)).token == "s3cret"
    assert load(JOBPIPE_TOKEN_FILE=str(file), JOBPIPE_TOKEN="other").token == "other"
    assert load({"token_file": str(file)}, JOBPIPE_TOKEN="other").token == "s3cret", (
        "a flag wins over the environment"
    )


def test_a_token_file_that_holds_no_token_is_refused(tmp_path: Path) -> None:
    for name, content in [("empty", b"\n"), ("binary", b"\xff\xfe"), ("lines", b"two words")]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SettingsError, match="JOBPIPE_TOKEN_FILE") as caught:
            load(JOBPIPE_TOKEN_FILE=str(tmp_path / name))
        assert "two words" not in str(caught.value)
    with pytest.raises(SettingsError, match="--token-file cannot be read: No such file"):
        load({"token_file": str(tmp_path / "missing")})


def test_a_read_token_needs_another_token_beside_it() -> None:
    assert load(JOBPIPE_TOKEN="a", JOBPIPE_READ_TOKEN="b").read_token == "b"
    with pytest.raises(SettingsError, match="JOBPIPE_READ_TOKEN requires JOBPIPE_TOKEN"):
        load(JOBPIPE_READ_TOKEN="b")
    with pytest.raises(SettingsError, match="JOBPIPE_READ_TOKEN must differ"):
        load(JOBPIPE_TOKEN="a", JOBPIPE_READ_TOKEN="a")


def test_an_env_file_is_read_as_shells_and_others_write_it(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "\ufeffA=1\n# B=2\n\nexport C = three \nD='four # 4'\nE=\"five\" # 5\nF=six # 6\nG=a=b#c\nnonsense\nH=\nI=#\nJ='\n",
        encoding="utf-8",
    )
    assert read_env_file(file) == {
        "A": "1",
        "C": "three",
        "D": "four # 4",
        "E": "five",
        "F": "six",
        "G": "a=b#c",
        "H": "",
        "I": "",
        "J": "'",
    }
    assert read_env_file(tmp_path / "missing") == {}
    assert read_env_file(tmp_path) == {}


def test_an_env_file_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff")
    with pytest.raises(SettingsError, match=r"\.env cannot be read: it is not UTF-8"):
        read_env_file(tmp_path / ".env")


def test_every_setting_says_all_of_itself() -> None:
    for each in fields(Settings):
        assert each.metadata["env"] == each.metadata["env"].upper()
        assert each.metadata["help"]
        assert each.metadata["read"].__doc__


def test_names_that_look_like_settings_and_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("JOBPIPE_STOER=x\nOTHER=1\n")
    environ = {"JOBPIPE_WORKERS": "3", "JOBPIPE_STORE": "memory://", "WORKERS": "3"}
    assert unknown_settings(environ, tmp_path / ".env") == ["JOBPIPE_STOER"]
