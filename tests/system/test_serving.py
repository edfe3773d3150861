"""What every answer carries, wherever it comes from: the policy, the health answer, static files from the wheels."""

from __future__ import annotations

import pytest
from django.contrib.staticfiles import finders
from django.db import DatabaseError, connection
from django.test import Client

from gangdash.staticfinders import PlotlyFinder


@pytest.mark.django_db
def test_health_needs_no_login_and_tells_nothing(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_health_fails_without_a_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable() -> None:
        raise DatabaseError("password=hunter2")

    monkeypatch.setattr(connection, "cursor", unreachable)
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert b"hunter2" not in answer.content


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/", "/no/such/page", "/static/vendor/plotly/plotly.min.js"])
def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    policy = client.get(path)["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/api/v1/clusters", "/api/v1/gangs", "/api/v1/schema"])
def test_nothing_is_shown_without_a_login(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {302, 401, 403}
    if answer.status_code == 302:
        assert answer["Location"].startswith("/login/")


def test_plotly_comes_from_its_wheel_alone() -> None:
    found = finders.find("vendor/plotly/plotly.min.js")
    assert isinstance(found, str)
    assert "/plotly/package_data/" in found
    assert [name for name, _storage in PlotlyFinder().list([])] == ["plotly.min.js"]
    assert finders.find("vendor/plotly/widgetbundle.js") is None
    assert finders.find("vendor/plotly/../plotly.min.js") is None


def test_htmx_comes_from_its_wheel() -> None:
    assert finders.find("django_htmx/htmx-2.min.js") is not None
