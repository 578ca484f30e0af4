"""Models: what msgspec makes of JSON, and pydantic where a program uses it.

pydantic is never imported here: a class that has its methods is made, checked and described by them.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..errors import BadInputError

_PLACE = re.compile(r" - at `\$([^`]*)`$")
_MOST_PROBLEMS = 5
_LONGEST_MESSAGE = 300


def make(type: Any, value: Any) -> Any:
    """A value of a class that msgspec does not know, of JSON; the `dec_hook` of decoders."""
    if not _is_model(type):
        raise NotImplementedError
    # Why as JSON again: a strict model takes a time or a UUID from JSON only.
    return type.model_validate_json(msgspec.json.encode(value))


def problem_of(error: msgspec.ValidationError, where: str) -> BadInputError | None:
    """What a model of pydantic found wrong, in its own words; None if it was not pydantic that did."""
    tell = getattr(error.__cause__, "errors", None)
    if tell is None:
        return None
    path = _PLACE.search(str(error))
    place = where.rstrip(".") + (path[1] if path else "")
    # Why without the input: the error is logged too, and payloads may hold secrets.
    found = [
        (place + "".join(map(_step, each["loc"])), " ".join(each["msg"].split())[:_LONGEST_MESSAGE])
        for each in tell(include_url=False, include_context=False, include_input=False)
    ]
    (field, message), *others = found[:_MOST_PROBLEMS]
    more = "".join(f"; {name}: {text}" for name, text in others)
    return BadInputError(field, f"is wrong: {message}{more}")


def schema_of(model: Any, prefix: str = "", mode: str = "validation") -> tuple[Any, dict[str, Any]]:
    """The JSON schema of a model, and of what it refers to in the components of OpenAPI; TypeError if it has none."""
    place = f"#/components/schemas/{prefix}"
    components: dict[str, Any] = {}

    def describe(type: Any) -> dict[str, Any]:
        if not _is_model(type):
            raise NotImplementedError
        schema: dict[str, Any] = type.model_json_schema(ref_template=f"{place}{{model}}", mode=mode)
        components.update({prefix + name: each for name, each in schema.pop("$defs", {}).items()})
        return schema

    (schema,), found = msgspec.json.schema_components(
        [model], schema_hook=describe, ref_template=f"{place}{{name}}"
    )
    return schema, components | {prefix + name: each for name, each in found.items()}


def _is_model(type: Any) -> bool:
    return hasattr(type, "model_validate_json") and hasattr(type, "model_json_schema")


def _step(part: str | int) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"
