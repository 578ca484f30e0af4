"""compose.yaml: read, checked by a schema, and held against the program."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest
import yaml

from jobpipe import SettingsError

from .dockerfile import environment, only, read_dockerfile
from .program import MARGIN, ROOT, load, parse, probes, unknown
from .schemas import COMPOSE

FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
STORES = [name for name in SERVICES if name not in OURS]
IMAGE = read_dockerfile(ROOT / "Dockerfile")[-1]
GIVEN = {"JOBPIPE_TOKEN": "t0ken", "POSTGRES_PASSWORD": "passw0rd"}
"""What the operator has in .env."""
_VARIABLE = re.compile(r"\$\{(?P<name>\w+):\?(?P<text>[^}]+)\}")


def settings_of(name: str) -> dict[str, str]:
    """What the service's processes find in their environment: the image's, then its own."""
    own = SERVICES[name]["environment"]
    ours = {name: value for name, value in environment(IMAGE).items() if name.startswith("JOBPIPE_")}
    return {
        **ours,
        **{key: _VARIABLE.sub(lambda found: GIVEN[found["name"]], text) for key, text in own.items()},
    }


def test_it_fits_the_schema() -> None:
    jsonschema_rs.validate(COMPOSE, FILE)


def test_the_schema_can_say_no() -> None:
    wrong = {"services": {"a": {"image": "b", "healthcheck": {"test": ["CMD"]}, "stop_grace": "1s"}}}
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(COMPOSE, wrong)


def test_it_has_both_variants() -> None:
    assert OURS == ["serve", "worker", "serve-redis", "worker-redis"]
    assert {name for name in SERVICES if SERVICES[name].get("profiles") == ["redis"]} == {
        *("serve-redis", "worker-redis", "redis"),
    }


@pytest.mark.parametrize("name", OURS)
def test_the_image_is_built_here_and_its_command_is_one(name: str) -> None:
    service = SERVICES[name]
    assert (ROOT / service["build"] / "Dockerfile").is_file()
    assert parse(service["command"]) == name.removesuffix("-redis")


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting_with_a_value_that_it_takes(name: str) -> None:
    environ = settings_of(name)
    assert unknown(environ) == []
    settings = load(environ)
    assert settings.workers == (0 if name.startswith("serve") else 8)
    assert (settings.token is not None) == name.startswith("serve"), "only what listens needs the token"


@pytest.mark.parametrize("name", OURS)
def test_the_store_is_a_service_that_is_waited_for(name: str) -> None:
    found = re.fullmatch(r"(\w+)://(?:\w+:\w+@)?(\w+):\d+/\w+", settings_of(name)["JOBPIPE_STORE"])
    assert found is not None
    scheme, host = found.groups()
    assert host in STORES
    assert scheme in (host, f"{host}ql")
    assert list(SERVICES[name]["depends_on"]) == [host]
    assert SERVICES[name].get("profiles") == SERVICES[host].get("profiles")


@pytest.mark.parametrize("name", OURS)
def test_the_grace_of_the_container_is_longer_than_that_of_the_jobs(name: str) -> None:
    patience = int(SERVICES[name]["stop_grace_period"].removesuffix("s"))
    assert patience > load(settings_of(name)).grace + MARGIN


@pytest.mark.parametrize("name", OURS)
def test_containers_can_write_nowhere_but_to_tmp(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", ["serve", "serve-redis"])
def test_what_listens_is_published_on_loopback_and_goes_by_its_name(name: str) -> None:
    (port,) = SERVICES[name]["ports"]
    address, _, inner = port.split(":")
    settings = load(settings_of(name))
    assert (address, int(inner)) == ("127.0.0.1", settings.port)
    assert [inner] == only(IMAGE, "EXPOSE").words
    assert settings.allowed_hosts == (name,)
    path = re.search(r"'http://127\.0\.0\.1:8080(/\w+)'", SERVICES[name]["healthcheck"]["test"][-1])
    assert path is not None
    assert path[1] in probes()


@pytest.mark.parametrize("name", ["worker", "worker-redis"])
def test_workers_are_checked_by_a_command(name: str) -> None:
    first, program, *arguments = SERVICES[name]["healthcheck"]["test"]
    assert (first, program) == ("CMD", "jobpipe")
    assert parse(arguments) == "check"
    assert SERVICES[name]["deploy"]["replicas"] > 1


def test_two_variants_can_run_at_once() -> None:
    ports = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports)) == 2


def test_stores_keep_their_data_and_are_reached_from_within_only() -> None:
    for name in STORES:
        (volume,) = SERVICES[name]["volumes"]
        assert volume.partition(":")[0] in FILE["volumes"]
        assert "ports" not in SERVICES[name]


def test_redis_evicts_nothing_and_writes_to_its_disk() -> None:
    """`jobpipe check` and `serve` would refuse another policy."""
    words = SERVICES["redis"]["command"]
    options = dict(zip(words[1::2], words[2::2], strict=True))
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--appendonly"] == "yes"


def test_secrets_come_from_outside_and_compose_stops_without_them() -> None:
    text = (ROOT / "compose.yaml").read_text("utf-8")
    assert {found["name"] for found in _VARIABLE.finditer(text)} == GIVEN.keys()
    assert len(_VARIABLE.findall(text)) == text.count("${")
    assert "/.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    with pytest.raises(SettingsError):
        load({**settings_of("serve"), "JOBPIPE_TOKEN": ""})
