"""The payloads and results of a program's job types, in the OpenAPI document.

A request of a type has a payload of its model, and its job has such a result: rules of the components JobRequest and Job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..jobtypes.jobtype import JobType

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def with_types(document: dict[str, Any], types: Mapping[str, JobType[..., Any]]) -> dict[str, Any]:
    """The document with the models of these types."""
    schemas = dict(document["components"]["schemas"])
    requests: list[Any] = []
    jobs: list[Any] = []
    for name, job_type in types.items():
        if not job_type.is_on:
            continue
        prefix = f"{_NOT_IN_NAMES.sub('_', name)}."
        if (payload := job_type.payload_schema(prefix)) is not None:
            schemas |= payload[1]
            requests.append(_rule(name, "payload", payload[0]))
        if (result := job_type.result_schema(f"{prefix}result.")) is not None:
            schemas |= result[1]
            jobs.append(_rule(name, "result", {"anyOf": [result[0], {"type": "null"}]}))
    for component, rules in (("JobRequest", requests), ("Job", jobs)):
        if rules:
            schemas[component] = {
                **schemas[component],
                "allOf": [*schemas[component].get("allOf", []), *rules],
            }
    return {**document, "components": {**document["components"], "schemas": schemas}}


def _rule(type: str, field: str, schema: Any) -> dict[str, Any]:
    return {
        "if": {"required": ["type"], "properties": {"type": {"const": type}}},
        "then": {"properties": {field: schema}},
    }
