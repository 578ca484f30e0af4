"""The OpenAPI document says what linters and generators of clients need; `make openapi` runs some of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from typing import Any

import pytest

from jobpipe import Jobpipe
from jobpipe.web.app import make_app
from jobpipe.web.openapi import document

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def api() -> Schema:
    with closing(Jobpipe("memory://")) as pipe:
        return document(make_app(pipe).calls)


def objects_in(value: Any) -> Iterator[Schema]:
    """Every object of the document."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from objects_in(each)


def are_apart(one: Schema, other: Schema) -> bool:
    """Can no value fit both? By its values or its type, or by those of a field that both require."""
    values = [{each["const"]} if "const" in each else set(each.get("enum", ())) for each in (one, other)]
    if all(values):
        return values[0].isdisjoint(values[1])
    types = {str(each.get("type", "")).replace("integer", "number") for each in (one, other)}
    if len(types) == 2 and "" not in types:
        return True
    both = set(one.get("required", ())) & set(other.get("required", ()))
    return any(are_apart(one["properties"][name], other["properties"][name]) for name in both)


def overlapping(api: Schema) -> list[tuple[Schema, Schema]]:
    known = {f"#/components/schemas/{name}": each for name, each in api["components"]["schemas"].items()}
    choices = [
        [known.get(each.get("$ref", ""), each) for each in found["oneOf"]]
        for found in objects_in(api)
        if "oneOf" in found
    ]
    return [pair for each in choices for pair in combinations(each, 2) if not are_apart(*pair)]


def test_the_document_names_its_license_and_a_server(api: Schema) -> None:
    assert api["info"]["license"] == {"name": "MIT License", "identifier": "MIT"}
    assert api["servers"] == [{"url": "/"}]


def test_no_one_of_overlaps(api: Schema) -> None:
    assert overlapping(api) == []


@pytest.mark.parametrize(
    ("one", "other", "is_clear"),
    [
        ({"type": "string"}, {"type": "null"}, True),
        ({"type": "integer"}, {"type": "number"}, False),
        ({"required": ["every"]}, {"required": ["cron"]}, False),
        ({"const": "a"}, {"enum": ["b", "c"]}, True),
        ({"const": "a"}, {"enum": ["a", "c"]}, False),
        (
            {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "cat"}}},
            {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "dog"}}},
            True,
        ),
    ],
)
def test_an_overlap_is_seen(one: Schema, other: Schema, is_clear: bool) -> None:
    """The check above can say no."""
    schemas = {"One": one, "Choice": {"oneOf": [{"$ref": "#/components/schemas/One"}, other]}}
    assert (overlapping({"components": {"schemas": schemas}}) == []) is is_clear


def test_every_call_has_a_name_of_its_own_and_its_errors(api: Schema) -> None:
    calls = [call for methods in api["paths"].values() for call in methods.values()]
    names = [call["operationId"] for call in calls]
    assert len(names) == len(set(names)) > 25
    assert [call for call in calls if not any(status.startswith("4") for status in call["responses"])] == []
    assert [call for call in calls if "security" not in call] == []


def test_what_a_rule_requires_is_among_its_properties(api: Schema) -> None:
    """To a linter, any other name is a misspelt one."""
    lost = [
        name
        for each in objects_in(api["components"]["schemas"])
        if isinstance(each.get("required"), list)
        for name in each["required"]
        if name not in each["properties"]
    ]
    assert lost == []


def test_a_field_with_a_default_is_always_answered_and_may_be_left_out_of_a_request(api: Schema) -> None:
    """A client has it as a plain field of what it gets, and as an optional one of what it sends."""
    schemas = api["components"]["schemas"]
    assert set(schemas["Job"]["required"]) == schemas["Job"]["properties"].keys()
    assert "field" not in schemas["Problem"]["required"], "it is left out where no field is wrong"
    request = schemas["JobRequest"]
    assert "required" not in request or "type" not in request["required"]
    assert request["properties"]["type"]["description"] == 'default: "echo"'
    assert not [
        each
        for each in schemas.values()
        for field in each.get("properties", {}).values()
        if "default" in field
    ]
