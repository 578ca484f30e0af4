"""schemathesis against the running service: every answer is one that the OpenAPI document describes.

For each call it builds what fits the document and what does not; the seed is the same every time.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from jobpipe import Jobpipe
from jobpipe.web.app import make_app
from jobpipe.web.openapi import document

from ..faults.programs import Program
from .conftest import JOBS, SCHEDULE, put_schedule

Case = schemathesis.Case[Any]
EXAMPLES = 15
KNOWN = {"id": JOBS, "name": (SCHEDULE,)}
STREAM_SECONDS = 0.2
ON_DATA: list[schemathesis.CheckFunction] = [checks.positive_data_acceptance, checks.negative_data_rejection]
"""What no longer holds once a test has put in a value of its own."""

schemathesis.openapi.format("cron", st.sampled_from(["0 3 * * *", "*/5 * * * 1-5", "30 2 29 2 *"]))
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))
DOCUMENT: dict[str, Any] = json.loads(json.dumps(document(make_app(Jobpipe("memory://")).calls)))


def load(examples: int, *, coverage: bool) -> schemathesis.BaseSchema:
    config = {
        "generation": {"max-examples": examples, "deterministic": True, "allow-x00": False},
        "phases": {"coverage": {"enabled": coverage}},
        "warnings": False,
    }
    return schemathesis.openapi.from_dict(DOCUMENT, config=schemathesis.Config.from_dict(config))


schema = load(EXAMPLES, coverage=True)
without_token = load(3, coverage=False)  # few: each is refused before anybody looks at what it holds


@schema.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """A whole number has no point here, which a schema cannot say: for it, 45.0 is an integer."""
    jobs = body.get("jobs") if isinstance(body, dict) else None
    for job in jobs if isinstance(jobs, list) else [body]:
        for name in ("max_retries", "priority") if isinstance(job, dict) else ():
            if isinstance(job.get(name), float) and job[name].is_integer():
                job[name] = int(job[name])
    return body


def is_job_of_that_name(case: Case) -> bool:
    """Is its path also that of a job, `/jobs/{id}`, so that more methods are allowed than it says itself?"""
    return case.path in ("/jobs/cancel", "/jobs/retry")


def names_another(case: Case) -> bool:
    """Is the name in its body not that of its path, which no schema can ask for?"""
    name = case.body.get("name") if isinstance(case.body, dict) else None
    return name is not None and name != case.path_parameters.get("name")


@schema.exclude(path="/events").parametrize()
def test_every_answer_is_in_the_document(case: Case, service: Program) -> None:
    is_wait = case.path.endswith("/wait")
    if is_wait and str(case.query.get("timeout", 30)).replace(".", "").isdigit():
        case.query["timeout"] = 0
    excluded: list[schemathesis.CheckFunction] = (
        [checks.allow_header_conformance] if is_job_of_that_name(case) else []
    )
    if names_another(case):
        excluded.append(checks.positive_data_acceptance)
    case.call_and_validate(base_url=service.url, excluded_checks=excluded)
    for name in case.path_parameters:
        for known in KNOWN[name]:
            case.path_parameters[name] = known
            case.call_and_validate(base_url=service.url, excluded_checks=ON_DATA)
    if case.method == "PUT":
        for each in service.get("/schedules")["schedules"]:  # some tick ten times a second
            service.http.delete(f"/schedules/{each['name']}")
        put_schedule(service)


@schema.include(path="/events").parametrize()
def test_a_stream_of_events_is_one_in_the_document(case: Case, service: Program) -> None:
    case.call_and_validate(base_url=service.url, timeout=STREAM_SECONDS)


@without_token.exclude(path=["/health", "/livez", "/readyz"]).parametrize()
def test_a_call_without_its_token_is_in_the_document(case: Case, guarded: Program) -> None:
    answer = case.call_and_validate(
        base_url=guarded.url, excluded_checks=[*ON_DATA, checks.unsupported_method]
    )
    assert answer.status_code in (401, 429)


@pytest.mark.parametrize("missing", ["404", "422"])
def test_an_answer_that_is_not_in_the_document_is_found(service: Program, missing: str) -> None:
    """The tests above can fail."""
    poorer = copy.deepcopy(DOCUMENT)
    del poorer["paths"]["/jobs/{id}"]["get"]["responses"][missing]
    call = schemathesis.openapi.from_dict(poorer)["/jobs/{id}"]["GET"]
    case = call.Case(path_parameters={"id": "nobody"}, query={} if missing == "404" else {"x": "1"})
    with pytest.raises(FailureGroup, match="Undocumented status code"):
        case.call_and_validate(base_url=service.url)


def test_the_document_is_the_one_that_is_served(service: Program) -> None:
    """But for the models of the types that the service knows."""
    served, expected = service.get("/openapi.json"), copy.deepcopy(DOCUMENT)
    schemas, own = (each["components"].pop("schemas") for each in (served, expected))
    assert served == expected
    for name, schema in own.items():
        assert {**schemas[name], "allOf": None} == {**schema, "allOf": None}
