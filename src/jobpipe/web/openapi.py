"""The OpenAPI document, made from the table of calls and the types that they take and give, those of jobs among them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import NODEFAULT, UNSET

from ..model.job import StepInfo
from ..model.request import Id, Name
from .operation import Operation, Stream
from .problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from ..jobtypes.jobtype import JobType

_EVERY = frozenset({400, 401, 422, 429, 500, 503})
"""Problems that any call but a probe may come to: host, token, query, and what goes wrong on this side."""
_PROBE = frozenset({422, 500})
_WRITE = frozenset({403})
_BODY = frozenset({413, 415})
_NAMED = frozenset({404})
"""Of a call whose path names something."""
_HEADERS = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}
"""What a problem tells beside its body."""
_IN_PATH = {"id": Id, "name": Name}
_OMITTING = frozenset({StepInfo.__name__})
"""Answers in which a field that has its default is left out."""
_INNER = frozenset({"if", "then", "else", "not"})
_ANY = frozenset({"anyOf", "oneOf", "allOf"})
"""Where a rule holds other rules."""
_PARAMETER = re.compile(r"{(\w+)}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


def document(calls: Sequence[Operation]) -> dict[str, Any]:
    """The description of all calls, by OpenAPI 3.1."""
    types = [each for call in calls for each in _types(call)]
    headers = [each for call in calls for each in call.headers.values()]
    others = [Problem, *_IN_PATH.values(), *headers, *(call.query for call in calls)]
    unique = list({id(each): each for each in [*types, *others]}.values())
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    known = {id(each): schema for each, schema in zip(unique, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, known, components)
    for call in calls:
        if hasattr(call.body, "RULES"):
            components[call.body.__name__] |= _complete(call.body.RULES)
    _say_defaults(components, [known[id(call.body)] for call in calls if call.body is not None])
    queries = {call.query.__name__ for call in calls}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jobpipe",
            "version": own_version(),
            "summary": "A background job service",
            "license": {"name": "MIT License", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _complete(rule: dict[str, Any]) -> dict[str, Any]:
    """The rule with each field that it requires among its properties: to linters, any other is a misspelt one."""
    found = {
        key: _complete(value)
        if key in _INNER
        else [_complete(each) for each in value]
        if key in _ANY
        else value
        for key, value in rule.items()
    }
    if "required" in rule:
        found["properties"] = {name: {} for name in rule["required"]} | rule.get("properties", {})
    return found


def _say_defaults(components: dict[str, Any], bodies: list[Any]) -> None:
    """Whether a field with a default is there: always in most answers; in a request it may be left out.

    Why in words: from `default` in a request, generators of clients make a field that has to be given.
    """
    asked = _named(bodies, components)
    for name, schema in components.items():
        for field, value in schema.get("properties", {}).items():
            if "default" not in value:
                continue
            default = value.pop("default")
            if name in _OMITTING:
                continue
            if name not in asked:
                schema.setdefault("required", []).append(field)
            elif default not in (None, ()):
                said = value.get("description")
                value["description"] = "; ".join(filter(None, [said, f"default: {json.dumps(default)}"]))


def _named(schema: Any, components: dict[str, Any]) -> set[str]:
    """The components that a schema leads to."""
    names, todo = set[str](), [schema]
    while todo:
        match todo.pop():
            case {"$ref": str(ref)} if (name := ref.rpartition("/")[2]) not in names:
                names.add(name)
                todo.append(components[name])
            case dict() as inner:
                todo += inner.values()
            case list() as inner:
                todo += inner
    return names


def _types(call: Operation) -> list[Any]:
    answers = [each.type if isinstance(each, Stream) else each for each in call.answers.values()]
    return [each for each in (call.body, *answers) if each is not None and not isinstance(each, str)]


def _operation(call: Operation, known: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    refusals = {*call.refusals, *(_PROBE if call.is_probe else _EVERY)}
    if call.method != "GET":
        refusals |= _WRITE
    if call.body is not None:
        refusals |= _BODY
    if _PARAMETER.search(call.path):
        refusals |= _NAMED
    responses = {str(status): _answer(status, type, known) for status, type in sorted(call.answers.items())}
    for status in sorted(refusals):
        responses[str(status)] = _answer(status, Stream(MEDIA_TYPE, Problem), known)
        if status in _HEADERS:
            header = {"required": True, "schema": {"type": "string"}}
            responses[str(status)]["headers"] = {_HEADERS[status]: header}
    operation: dict[str, Any] = {
        "summary": call.summary,
        "operationId": f"{call.method.lower()}{re.sub('[^a-z]+', '_', call.path)}".rstrip("_"),
        "responses": responses,
        "security": [] if call.is_probe else [{"token": []}, {}],
    }
    parameters = _parameters(call, known, components)
    if parameters:
        operation["parameters"] = parameters
    if call.body is not None:
        operation["requestBody"] = {
            "required": not call.is_body_optional,
            "content": {"application/json": {"schema": known[id(call.body)]}},
        }
    return operation


def _answer(status: int, type: Any, known: dict[int, Any]) -> dict[str, Any]:
    if type is None:
        return {"description": HTTPStatus(status).phrase}
    if isinstance(type, str):
        media, schema = type, {"type": "string"}
    elif isinstance(type, Stream):
        media, schema = type.media, known[id(type.type)]
    else:
        media, schema = "application/json", known[id(type)]
    return {
        "description": HTTPStatus(status).phrase,
        "content": {media.partition(";")[0]: {"schema": schema}},
    }


def _parameters(call: Operation, known: dict[int, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": known[id(call.names.get(name, _IN_PATH[name]))],
        }
        for name in _PARAMETER.findall(call.path)
    ]
    found += [
        {"name": name, "in": "header", "required": False, "schema": known[id(type)]}
        for name, type in call.headers.items()
    ]
    properties = components[call.query.__name__]["properties"]
    for field in msgspec.structs.fields(call.query):
        schema = dict(properties[field.encode_name])
        if field.default not in (NODEFAULT, UNSET):
            schema["default"] = field.default
        found.append({"name": field.encode_name, "in": "query", "required": False, "schema": schema})
    return found


def with_types(document: dict[str, Any], types: Mapping[str, JobType[..., Any]]) -> dict[str, Any]:
    """The document with the models of a program's types.

    A request of a type has a payload of its model, and its job has such a result: rules of the components JobRequest and Job.
    """
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


@cache
def own_version() -> str:
    """That of the package."""
    try:
        return version("rate-envelope-queue")
    except PackageNotFoundError:
        return "0"
