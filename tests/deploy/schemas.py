"""JSON schemas of the parts of Compose and Kubernetes that our files use; any other field is taken for misspelt."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
NUMBER: Schema = {"type": "integer", "minimum": 0}
TRUTH: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
NAMED: Schema = {"type": "object", "additionalProperties": TEXT}
"""Why texts only: a number or a truth without quotes is no value of an environment or of a label."""


def record(required: str = "", /, **fields: Schema) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": required.split(),
        "additionalProperties": False,
    }


def many(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def named(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item}


def pinned(text: str) -> Schema:
    return {"const": text}


# Compose

DURATION: Schema = {"type": "string", "pattern": r"^\d+s$"}
COMPOSE = {
    "type": "object",
    "required": ["services"],
    "properties": {
        "name": TEXT,
        "volumes": named({"type": "null"}),
        "services": named(
            record(
                "image healthcheck",
                build=TEXT,
                image=TEXT,
                profiles=TEXTS,
                command=TEXTS,
                environment=NAMED,
                ports=TEXTS,
                volumes=TEXTS,
                tmpfs=TEXTS,
                read_only=TRUTH,
                cap_drop=TEXTS,
                security_opt=TEXTS,
                restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
                stop_grace_period=DURATION,
                deploy=record(replicas=NUMBER),
                depends_on=named(record("condition", condition=pinned("service_healthy"))),
                healthcheck=record(
                    "test",
                    test=TEXTS,
                    interval=DURATION,
                    timeout=DURATION,
                    retries=NUMBER,
                    start_period=DURATION,
                ),
            )
        ),
    },
    "patternProperties": {"^x-": {}},
    "additionalProperties": False,
}

# Kubernetes

META = record("name", name=TEXT, labels=NAMED)
SELECTOR = record("matchLabels", matchLabels=NAMED)
ACTION = record("command", command=TEXTS)
TIMING = dict.fromkeys(("periodSeconds", "timeoutSeconds", "failureThreshold"), NUMBER)
PROBE = record(httpGet=record("path port", path=TEXT, port=TEXT), exec=ACTION, **TIMING)
NAME = record("name", name=TEXT)
KEY = record("name key", name=TEXT, key=TEXT)
CONTAINER = record(
    "name image args securityContext resources",
    name=TEXT,
    image=TEXT,
    args=TEXTS,
    env=many(record("name value", name=TEXT, value=TEXT)),
    envFrom=many(record(configMapRef=NAME, secretRef=NAME)),
    ports=many(record("name containerPort", name=TEXT, containerPort=NUMBER)),
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    startupProbe=PROBE,
    lifecycle=record(preStop=record("exec", exec=ACTION)),
    resources=record("requests limits", requests=NAMED, limits=NAMED),
    securityContext=record(
        "readOnlyRootFilesystem allowPrivilegeEscalation capabilities",
        readOnlyRootFilesystem=TRUTH,
        allowPrivilegeEscalation=TRUTH,
        capabilities=record("drop", drop=TEXTS),
    ),
    volumeMounts=many(record("name mountPath", name=TEXT, mountPath=TEXT)),
)
POD = record(
    "containers securityContext terminationGracePeriodSeconds enableServiceLinks",
    containers=many(CONTAINER),
    enableServiceLinks=TRUTH,
    automountServiceAccountToken=TRUTH,
    terminationGracePeriodSeconds=NUMBER,
    securityContext=record(
        "runAsNonRoot runAsUser",
        runAsNonRoot=TRUTH,
        runAsUser=NUMBER,
        runAsGroup=NUMBER,
        seccompProfile=record("type", type=pinned("RuntimeDefault")),
    ),
    volumes=many(record("name emptyDir", name=TEXT, emptyDir={"type": "object"})),
)
TARGET = record("name", apiVersion=TEXT, kind=TEXT, name=TEXT)
SPECS: dict[tuple[str, str], Schema] = {
    ("v1", "Service"): record(
        "selector ports", selector=NAMED, ports=many(record("port", name=TEXT, port=NUMBER, targetPort=TEXT))
    ),
    ("apps/v1", "Deployment"): record(
        "selector template",
        replicas=NUMBER,
        selector=SELECTOR,
        strategy=record(
            "type",
            type=pinned("RollingUpdate"),
            rollingUpdate=record(maxUnavailable=NUMBER, maxSurge=NUMBER),
        ),
        template=record("metadata spec", metadata=record("labels", labels=NAMED), spec=POD),
    ),
    ("policy/v1", "PodDisruptionBudget"): record(
        "selector", maxUnavailable=NUMBER, minAvailable=NUMBER, selector=SELECTOR
    ),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): record(
        "scaleTargetRef minReplicas maxReplicas metrics",
        scaleTargetRef=TARGET,
        minReplicas=NUMBER,
        maxReplicas=NUMBER,
        metrics=many(
            record(
                "type external",
                type=pinned("External"),
                external=record(
                    "metric target",
                    metric=record("name", name=TEXT, selector=SELECTOR),
                    target=record("type averageValue", type=pinned("AverageValue"), averageValue=TEXT),
                ),
            )
        ),
        behavior=record(scaleDown=record(stabilizationWindowSeconds=NUMBER)),
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): record(
        "selector podMetricsEndpoints",
        selector=SELECTOR,
        podMetricsEndpoints=many(
            record("port path", port=TEXT, path=TEXT, authorization=record("credentials", credentials=KEY))
        ),
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): record(
        "secretTargetRef",
        secretTargetRef=many(record("parameter name key", parameter=TEXT, name=TEXT, key=TEXT)),
    ),
    ("keda.sh/v1alpha1", "ScaledObject"): record(
        "scaleTargetRef triggers",
        scaleTargetRef=NAME,
        minReplicaCount=NUMBER,
        maxReplicaCount=NUMBER,
        cooldownPeriod=NUMBER,
        triggers=many(record("type metadata", type=TEXT, metadata=NAMED, authenticationRef=NAME)),
    ),
}
"""Version and kind → its `spec`."""


def manifest(version: str, kind: str) -> Schema:
    """The schema of a whole document; KeyError for a kind that we do not use in that version."""
    top = {"apiVersion": pinned(version), "kind": pinned(kind), "metadata": META}
    if kind == "ConfigMap":
        return record("metadata data", **top, data=NAMED)
    if kind == "Secret":
        return record("metadata stringData", **top, type=pinned("Opaque"), stringData=NAMED)
    return record("metadata spec", **top, spec=SPECS[version, kind])
