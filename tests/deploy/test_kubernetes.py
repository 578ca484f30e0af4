"""The example for Kubernetes: read, checked by a schema, and held against the program."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from jobpipe import Jobpipe, SettingsError
from jobpipe.web.auth import Guard
from jobpipe.web.metrics import MetricsPage
from jobpipe.web.problems import ForeignHostError
from jobpipe.web.site import Site

from .dockerfile import only, read_dockerfile
from .program import MARGIN, ROOT, load, parse, probes, unknown
from .schemas import manifest

FOLDER = ROOT / "deploy" / "kubernetes"
PATHS = [path for path in sorted(FOLDER.rglob("*.yaml")) if not path.name.endswith(".values.yaml")]
Document = dict[str, Any]


def read(path: Path) -> list[Document]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


DOCUMENTS = [document for path in PATHS for document in read(path)]
DEPLOYMENTS = {each["metadata"]["name"]: each for each in DOCUMENTS if each["kind"] == "Deployment"}
PODS = {name: each["spec"]["template"]["spec"] for name, each in DEPLOYMENTS.items()}
GIVEN = {"JOBPIPE_TOKEN": "t0ken", "JOBPIPE_READ_TOKEN": "reader", "JOBPIPE_STORE": "postgresql://db/jobs"}
"""What the operator puts in place of the placeholders."""


def the(kind: str, name: str) -> Document:
    (found,) = [each for each in DOCUMENTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def container_of(name: str) -> Document:
    (container,) = PODS[name]["containers"]
    return dict(container)


def environment_of(name: str) -> dict[str, str]:
    """What the processes of a deployment find in their environment."""
    container = container_of(name)
    found: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            found |= the("ConfigMap", source["configMapRef"]["name"])["data"]
        else:
            secret = the("Secret", source["secretRef"]["name"])["stringData"]
            found |= {key: GIVEN[key] for key in secret}
    return found | {each["name"]: each["value"] for each in container["env"]}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_it_fits_the_schema(document: Document) -> None:
    jsonschema_rs.validate(manifest(document["apiVersion"], document["kind"]), document)


def test_the_schema_can_say_no() -> None:
    document = the("Deployment", "jobpipe-serve")
    schema = manifest("apps/v1", "Deployment")
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {**document, "spec": {**document["spec"], "replica": 2}})


def test_names_of_a_kind_are_unique() -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in DOCUMENTS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_variable_is_a_setting_with_a_value_that_it_takes(name: str) -> None:
    environ = environment_of(name)
    assert unknown(environ) == []
    assert load(environ).log == "json"


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_its_arguments_are_a_command(name: str) -> None:
    assert f"jobpipe-{parse(container_of(name)['args'])}" == name


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_pod_waits_longer_than_the_grace_of_its_jobs(name: str) -> None:
    """The pause before the stop counts too."""
    before = (
        container_of(name)
        .get("lifecycle", {})
        .get("preStop", {})
        .get("exec", {})
        .get("command", ["sleep", "0"])
    )
    assert before[0] == "sleep"
    needed = float(before[1]) + load(environment_of(name)).grace + MARGIN
    assert PODS[name]["terminationGracePeriodSeconds"] > needed


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_pod_is_not_root_and_can_write_nowhere_but_to_tmp(name: str) -> None:
    user = only(read_dockerfile(ROOT / "Dockerfile")[-1], "USER").rest
    context, container = PODS[name]["securityContext"], container_of(name)
    assert context["runAsNonRoot"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == user
    locked = container["securityContext"]
    assert locked["readOnlyRootFilesystem"]
    assert not locked["allowPrivilegeEscalation"]
    assert locked["capabilities"]["drop"] == ["ALL"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_kubernetes_sets_no_variables_for_services(name: str) -> None:
    """It would set JOBPIPE_PORT for the service jobpipe, to what is no port."""
    assert PODS[name]["enableServiceLinks"] is False
    with pytest.raises(SettingsError, match="JOBPIPE_PORT"):
        load({**environment_of(name), "JOBPIPE_PORT": "tcp://10.0.0.1:8080"})


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_labels_lead_from_the_deployment_and_its_budget_to_its_pods(name: str) -> None:
    spec = DEPLOYMENTS[name]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert the("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"] == labels
    others = [
        each["spec"]["template"]["metadata"]["labels"] for key, each in DEPLOYMENTS.items() if key != name
    ]
    assert labels not in others


def test_all_run_the_same_image() -> None:
    assert len({container_of(name)["image"] for name in DEPLOYMENTS}) == 1


def test_the_api_is_probed_where_it_answers() -> None:
    container = container_of("jobpipe-serve")
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert {"/livez", "/readyz"} <= probes()
    (port,) = container["ports"]
    settings = load(environment_of("jobpipe-serve"))
    assert port["containerPort"] == settings.port
    assert settings.host == "0.0.0.0"
    assert settings.token is not None
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]


def test_the_service_leads_to_the_api_under_names_that_are_its_own() -> None:
    service = the("Service", "jobpipe")
    assert (
        service["spec"]["selector"] == DEPLOYMENTS["jobpipe-serve"]["spec"]["template"]["metadata"]["labels"]
    )
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container_of("jobpipe-serve")["ports"][0]["name"]
    guard = Guard(load(environment_of("jobpipe-serve")))
    for host in ("jobpipe", "jobpipe.shop.svc", "jobpipe.shop.svc.cluster.local", "10.1.2.3"):
        guard.check(call(host, port["port"]))
    with pytest.raises(ForeignHostError):
        guard.check(call("evil.example.com", port["port"]))


def call(host: str, port: int) -> dict[str, Any]:
    """One that reached a pod with the address 10.1.2.3."""
    headers = [(b"host", f"{host}:{port}".encode()), (b"authorization", b"Bearer reader")]
    return {"type": "http", "method": "GET", "headers": headers, "server": ("10.1.2.3", port), "client": None}


def test_a_worker_has_no_port_no_token_and_starts_when_it_reaches_the_store() -> None:
    container = container_of("jobpipe-worker")
    assert "ports" not in container
    assert load(environment_of("jobpipe-worker")).token is None
    program, *arguments = container["startupProbe"]["exec"]["command"]
    assert (program, parse(arguments)) == ("jobpipe", "check")
    assert "livenessProbe" not in container, "a store that is away is no reason to kill workers"


def test_placeholders_of_secrets_are_refused() -> None:
    """Whoever forgets to replace one does not run with a token that everybody can read here."""
    tokens = the("Secret", "jobpipe-tokens")["stringData"]
    assert tokens.keys() == {"JOBPIPE_TOKEN", "JOBPIPE_READ_TOKEN"}
    for name, text in tokens.items():
        with pytest.raises(SettingsError, match=name):
            load({**GIVEN, name: text})


def test_workers_are_scaled_by_a_number_that_metrics_has() -> None:
    (metric,) = the("HorizontalPodAutoscaler", "jobpipe-worker")["spec"]["metrics"]
    wanted = metric["external"]["metric"]
    (trigger,) = the("ScaledObject", "jobpipe-worker")["spec"]["triggers"]
    location = re.fullmatch(r'(\w+)\{queue="(\w+)",status="(\w+)"\}', trigger["metadata"]["valueLocation"])
    assert location is not None
    assert location.groups() == (wanted["name"], *wanted["selector"]["matchLabels"].values())
    (rule,) = yaml.safe_load((FOLDER / "autoscale/prometheus-adapter.values.yaml").read_text())["rules"][
        "external"
    ]
    assert rule["seriesQuery"].startswith(f"{wanted['name']}{{")
    assert rule["metricsQuery"].startswith("max("), (
        "the number is the store's: a sum would count it once a pod"
    )
    sample = f'{wanted["name"]}{{queue="{location[2]}",status="{location[3]}"}} 1.0'
    assert sample in metrics_of_one_job()
    assert trigger["metadata"]["targetValue"] == metric["external"]["target"]["averageValue"]


def metrics_of_one_job() -> str:
    """What /metrics says when one job waits."""

    async def render() -> str:
        async with Jobpipe("memory://") as pipe:
            await pipe.enqueue("echo")
            return (await MetricsPage(Site(pipe, None)).render()).decode()

    return asyncio.run(render())


@pytest.mark.parametrize("name", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_what_scales_has_workers_for_its_target(name: str) -> None:
    assert the(name, "jobpipe-worker")["spec"]["scaleTargetRef"]["name"] in DEPLOYMENTS


def test_who_reads_metrics_shows_the_token_for_reading() -> None:
    (endpoint,) = the("PodMonitor", "jobpipe-serve")["spec"]["podMetricsEndpoints"]
    (reference,) = the("TriggerAuthentication", "jobpipe-metrics")["spec"]["secretTargetRef"]
    for key in (endpoint["authorization"]["credentials"], reference):
        assert key["key"] in the("Secret", key["name"])["stringData"]
        assert key["key"] == "JOBPIPE_READ_TOKEN"
    assert endpoint["port"] == container_of("jobpipe-serve")["ports"][0]["name"]
