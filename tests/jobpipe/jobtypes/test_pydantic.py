"""Models of pydantic as payloads and results: checked in its words, and described by its schema."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator

from jobpipe import BadInputError, Job, Jobpipe

from ...support.jobs import finished
from ...support.waiting import run

pytestmark = pytest.mark.usefixtures("away_from_home")


class Address(BaseModel):
    street: str


class Mail(BaseModel):
    to: str = Field(min_length=3)
    copies: list[Address] = []
    subject: str = Field(default="hello", alias="Subject")

    @field_validator("to")
    @classmethod
    def has_at(cls, value: str) -> str:
        if "@" not in value:
            raise ValueError("must be an address")
        return value

    @model_validator(mode="after")
    def is_short(self) -> Mail:
        if len(self.copies) > 2:
            raise ValueError("too many copies")
        return self


class Order(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    id: UUID
    at: datetime


class Numbers(RootModel[list[int]]):
    pass


class Sent(BaseModel):
    to: str
    at: datetime


@pytest.fixture
def pipe() -> Jobpipe:
    return Jobpipe("memory://")


def run_one(pipe: Jobpipe, type: str, payload: Any) -> Job:
    async def scenario() -> Job:
        async with pipe, pipe.running():
            return await finished(pipe, (await pipe.enqueue(type, payload)).id)

    return run(scenario())


def test_a_model_arrives_as_one_and_is_a_result(pipe: Jobpipe) -> None:
    @pipe.job("mail")
    async def send(mail: Mail) -> Sent:
        assert isinstance(mail, Mail)
        assert isinstance(mail.copies[0], Address)
        return Sent(to=f"{mail.to} {mail.subject}", at=datetime(2030, 1, 2, tzinfo=UTC))

    job = run_one(pipe, "mail", Mail(to="a@b", copies=[Address(street="x")], Subject="hi"))
    assert job.payload == {"to": "a@b", "copies": [{"street": "x"}], "Subject": "hi"}
    assert job.result == {"to": "a@b hi", "at": "2030-01-02T00:00:00Z"}
    assert run_one(pipe, "mail", {"to": "a@b", "copies": [{"street": "x"}]}).payload == {
        "to": "a@b",
        "copies": [{"street": "x"}],
    }


def test_a_strict_model_takes_what_json_has(pipe: Jobpipe) -> None:
    @pipe.job("order")
    def take(order: Order) -> int:
        return order.at.year

    order = Order(id=UUID(int=5), at=datetime(2030, 1, 2, tzinfo=UTC))
    assert run_one(pipe, "order", order).result == 2030


def test_models_may_stand_anywhere(pipe: Jobpipe) -> None:
    @pipe.job("many")
    def many(mails: list[Mail], more: dict[str, Address], numbers: Numbers | None = None) -> Any:
        return [mails, more, numbers]

    request = many.request([Mail(to="a@b")], more={"x": Address(street="y")}, numbers=Numbers([1, 2]))

    async def scenario() -> Job:
        async with pipe, pipe.running():
            return await finished(pipe, (await pipe.enqueue(request)).id)

    mail = {"to": "a@b", "copies": [], "Subject": "hello"}
    assert run(scenario()).result == [[mail], {"x": {"street": "y"}}, [1, 2]]


WRONG: list[tuple[Any, str]] = [
    ({}, "payload.to is wrong: Field required"),
    ({"to": 5}, "payload.to is wrong: Input should be a valid string"),
    ({"to": "a@b", "copies": [{}]}, "payload.copies[0].street is wrong: Field required"),
    ({"to": "nowhere"}, "payload.to is wrong: Value error, must be an address"),
    ({"to": "a@b", "copies": [{"street": "x"}] * 3}, "payload is wrong: Value error, too many copies"),
    (
        {"to": 5, "copies": 6},
        "payload.to is wrong: Input should be a valid string; payload.copies: Input should be a valid array",
    ),
    ("a@b", "payload is wrong: Input should be an object"),
]


@pytest.mark.parametrize(("payload", "message"), WRONG, ids=ascii)
def test_what_does_not_fit_is_refused_in_pydantic_s_words(pipe: Jobpipe, payload: Any, message: str) -> None:
    @pipe.job("mail")
    async def send(mail: Mail) -> None: ...

    with pytest.raises(BadInputError) as caught:
        pipe.enqueue_sync("mail", payload)
    assert str(caught.value) == message
    assert pipe.stats_sync().queued == 0


def test_one_of_several_arguments_is_named(pipe: Jobpipe) -> None:
    @pipe.job("send")
    async def send(mail: Mail, urgent: bool = False) -> None: ...

    for payload, message in [
        ({"mail": {"to": "nowhere"}}, "payload.mail.to is wrong: Value error, must be an address"),
        ([1], "payload.mail is wrong: Input should be an object"),
    ]:
        with pytest.raises(BadInputError) as caught:
            pipe.enqueue_sync("send", payload)
        assert str(caught.value) == message


def test_a_value_that_is_no_json_is_refused(pipe: Jobpipe) -> None:
    class Share(BaseModel):
        value: float

    with pytest.raises(BadInputError, match="payload contains NaN"):
        pipe.enqueue_sync("echo", Share(value=float("nan")))


async def document_of(pipe: Jobpipe) -> dict[str, Any]:
    async with (
        pipe,
        httpx.AsyncClient(transport=httpx.ASGITransport(pipe.asgi()), base_url="http://localhost") as client,
    ):
        found = await client.get("/openapi.json")
        refused = await client.post("/enqueue", json={"type": "mail", "payload": {"to": 5}})
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            "payload.to is wrong: Input should be a valid string",
        )
        document: dict[str, Any] = found.json()
        return document


def test_the_schemas_are_in_the_openapi_document(pipe: Jobpipe) -> None:
    @pipe.job("mail")
    async def send(mail: Mail) -> Sent:
        raise NotImplementedError

    @pipe.job("re:size")
    def resize(path: str, width: int = 640) -> Missing:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    document = run(document_of(pipe))
    schemas = document["components"]["schemas"]
    rules = {
        rule["if"]["properties"]["type"]["const"]: rule["then"] for rule in of_types(schemas["JobRequest"])
    }
    payload = rules["mail"]["properties"]["payload"]
    assert payload["properties"]["to"] == {"minLength": 3, "title": "To", "type": "string"}
    assert payload["properties"]["copies"]["items"] == {"$ref": "#/components/schemas/mail.Address"}
    assert schemas["mail.Address"]["required"] == ["street"]
    arguments = schemas[rules["re:size"]["properties"]["payload"]["$ref"].rpartition("/")[2]]
    assert (sorted(arguments["properties"]), arguments["required"]) == (["path", "width"], ["path"])
    (result,) = (
        rule["then"]["properties"]["result"]
        for rule in of_types(schemas["Job"])
        if rule["if"]["properties"]["type"]["const"] == "mail"
    )
    assert result["anyOf"][0]["title"] == "Sent"


def of_types(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        rule
        for rule in schema["allOf"]
        if "const" in rule.get("if", {}).get("properties", {}).get("type", {})
    ]


def test_nothing_of_ours_imports_pydantic() -> None:
    script = "import sys, jobpipe.app, jobpipe.web.app; jobpipe.app.Jobpipe('memory://'); print('pydantic' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"
