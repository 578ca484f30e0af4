"""schemathesis against the running service: every answer is one that the OpenAPI document describes.

For each call it builds what fits the document and what does not; the seed is the same every time.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from jobpipe import Jobpipe
from jobpipe.web.app import make_app
from jobpipe.web.openapi import document as documented

from ..faults.programs import Program
from ..support.waiting import LIMIT
from .conftest import JOBS, SCHEDULE, put_schedule

Case = schemathesis.Case[Any]
EXAMPLES = 15
KNOWN = {"id": JOBS, "name": (SCHEDULE,)}
STREAMS = ["/events", "/jobs/{id}/events"]
STREAM_SECONDS = 0.2
"""How long a stream is read; an answer that is none may take longer, on a busy machine."""
ON_DATA: list[schemathesis.CheckFunction] = [checks.positive_data_acceptance, checks.negative_data_rejection]
"""What no longer holds once a test has put in a value of its own."""


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(documented(make_app(Jobpipe("memory://")).calls)))
    return found


def load(document: dict[str, Any], examples: int, *, coverage: bool) -> schemathesis.BaseSchema:
    config = {
        "generation": {"max-examples": examples, "deterministic": True, "allow-x00": False},
        "phases": {"coverage": {"enabled": coverage}},
        "warnings": False,
    }
    return schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(config))


# Why fixtures: to load them takes seconds, and each process that collects tests would do it, whether it runs these or not.
@pytest.fixture(scope="session")
def whole(document: dict[str, Any]) -> schemathesis.BaseSchema:
    schemathesis.openapi.format("cron", st.sampled_from(["0 3 * * *", "*/5 * * * 1-5", "30 2 29 2 *"]))
    schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))
    schema = load(document, EXAMPLES, coverage=True)

    @schema.hook
    def map_body(context: schemathesis.HookContext, body: Any) -> Any:
        """A whole number has no point here, which a schema cannot say: for it, 45.0 is an integer."""
        jobs = body.get("jobs") if isinstance(body, dict) else None
        for job in jobs if isinstance(jobs, list) else [body]:
            for name in ("max_retries", "priority") if isinstance(job, dict) else ():
                if isinstance(job.get(name), float) and job[name].is_integer():
                    job[name] = int(job[name])
        return body

    return schema


@pytest.fixture(scope="session")
def short(document: dict[str, Any]) -> schemathesis.BaseSchema:
    """Few examples: each is refused before anybody looks at what it holds."""
    return load(document, 3, coverage=False)


@pytest.fixture(autouse=True)
def node_has_its_former_attribute(request: pytest.FixtureRequest) -> None:
    """Why: schemathesis 4 still asks for it, pytest 9.2 no longer has it."""
    request.node._nodeid = request.node.nodeid


schema, without_token = (schemathesis.pytest.from_fixture(name) for name in ("whole", "short"))
pytestmark = pytest.mark.timeout(600)  # a test is all calls of the document, one after the other


def is_job_of_that_name(case: Case) -> bool:
    """Is its path also that of a job, `/jobs/{id}`, so that more methods are allowed than it says itself?"""
    return case.path in ("/jobs/cancel", "/jobs/retry", "/jobs/delete")


def names_another(case: Case) -> bool:
    """Is the name in its body not that of its path, which no schema can ask for?"""
    name = case.body.get("name") if isinstance(case.body, dict) else None
    return name is not None and name != case.path_parameters.get("name")


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Why: else there is a new connection for each call, and a look for proxies."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@schema.exclude(path=STREAMS).parametrize()
def test_every_answer_is_in_the_document(
    case: Case, services: dict[str, Program], session: requests.Session
) -> None:
    """Why from all services: to make up what they are sent takes longer than to answer it."""
    is_wait = case.path.endswith("/wait")
    if is_wait and str(case.query.get("timeout", 30)).replace(".", "").isdigit():
        case.query["timeout"] = 0
    excluded: list[schemathesis.CheckFunction] = (
        [checks.allow_header_conformance] if is_job_of_that_name(case) else []
    )
    if names_another(case):
        excluded.append(checks.positive_data_acceptance)
    answers = [
        case.call_and_validate(base_url=service.url, excluded_checks=excluded, session=session)
        for service in services.values()
    ]
    for name in case.path_parameters:
        for known in KNOWN[name]:
            case.path_parameters[name] = known
            answers += [
                case.call_and_validate(base_url=service.url, excluded_checks=ON_DATA, session=session)
                for service in services.values()
            ]
    if case.method == "PUT" and any(answer.status_code == 200 for answer in answers):
        for service in services.values():
            for each in service.get("/schedules")["schedules"]:  # some tick ten times a second
                service.http.delete(f"/schedules/{each['name']}")
            put_schedule(service)


@schema.include(path=STREAMS).parametrize()
def test_a_stream_of_events_is_one_in_the_document(case: Case, services: dict[str, Program]) -> None:
    for service in services.values():
        try:
            case.call_and_validate(base_url=service.url, timeout=STREAM_SECONDS)
        except requests.ReadTimeout:
            case.call_and_validate(base_url=service.url, timeout=LIMIT)


@without_token.exclude(path=["/health", "/livez", "/readyz"]).parametrize()
@pytest.mark.usefixtures("guarded")
def test_a_call_without_its_token_is_in_the_document(
    case: Case, guarded: Program, session: requests.Session
) -> None:
    answer = case.call_and_validate(
        base_url=guarded.url, excluded_checks=[*ON_DATA, checks.unsupported_method], session=session
    )
    assert answer.status_code in (401, 429)


@pytest.mark.parametrize("missing", ["404", "422"])
def test_an_answer_that_is_not_in_the_document_is_found(
    service: Program, document: dict[str, Any], missing: str
) -> None:
    """The tests above can fail."""
    poorer = copy.deepcopy(document)
    del poorer["paths"]["/jobs/{id}"]["get"]["responses"][missing]
    call = schemathesis.openapi.from_dict(poorer)["/jobs/{id}"]["GET"]
    case = call.Case(path_parameters={"id": "nobody"}, query={} if missing == "404" else {"x": "1"})
    with pytest.raises(FailureGroup, match="Undocumented status code"):
        case.call_and_validate(base_url=service.url)


def test_the_document_is_the_one_that_is_served(service: Program, document: dict[str, Any]) -> None:
    """But for the models of the types that the service knows."""
    served, expected = service.get("/openapi.json"), copy.deepcopy(document)
    schemas, own = (each["components"].pop("schemas") for each in (served, expected))
    assert served == expected
    for name, schema in own.items():
        assert {**schemas[name], "allOf": None} == {**schema, "allOf": None}
