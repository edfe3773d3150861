"""The OpenAPI document: complete, equal to the contract's types, and true for requests that nobody thought of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance, unsupported_method

from apps.accounts.choices import TokenScope
from apps.accounts.models import User
from apps.accounts.services import token_create
from gangdash.documents.schema import json_schema

pytestmark = pytest.mark.django_db


@pytest.fixture
def document(as_alice: APIClient) -> dict[str, Any]:
    return cast("dict[str, Any]", as_alice.get("/api/v1/schema", headers={"accept": "application/json"}).json())


def test_every_route_says_how_it_can_fail(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert {"400", "401", "403", "404", "429"} <= set(operation["responses"]), path
            assert operation["security"], path


def test_the_documents_are_described_by_their_own_types(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name, definition in json_schema()["$defs"].items():
        assert set(schemas[name].get("properties", {})) == set(definition.get("properties", {})), name
    answer = document["paths"]["/api/v1/gangs/{gang_id}/explanation"]["get"]["responses"]["200"]
    assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ExplanationDocument"}


@pytest.fixture
def api_schema(scene: None, alice: User, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the schema with a token that may do all that tokens may.

    The test's connection holds its transaction and must outlive each request, as it does with Django's test client.
    """
    scopes = ("anon", "user", "diagnose", "whatif")
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", dict.fromkeys(scopes, "100000/min"))
    text = token_create(user=alice, name="schema", scopes=list(TokenScope)).text
    schema = schemathesis.openapi.from_dict(document)
    schema.app = get_wsgi_application()
    schema.config.update(headers={"Authorization": f"Bearer {text}"}, base_url="http://testserver")
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield schema
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


lazy = schemathesis.pytest.from_fixture("api_schema")


@pytest.mark.slow
@lazy.exclude(path_regex="/tokens").parametrize()
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_answers_are_what_the_schema_says(case: Any) -> None:
    """Tokens manage no tokens, so those routes have nothing but refusals to show here.

    A schema cannot say which bytes are a snapshot; who gets in and with which verbs has tests of its own.
    """
    case.call_and_validate(excluded_checks=[ignored_auth, positive_data_acceptance, unsupported_method])
