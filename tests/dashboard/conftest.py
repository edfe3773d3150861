"""Alice sees everything, Bob one namespace; the world is built once per test that asks for it."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.models import User
from tests.dashboard.world import World, alice, bob, whole_world


@pytest.fixture
def world(db: None) -> World:
    return whole_world()


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_alice(db: None) -> Client:
    return _client(alice())


@pytest.fixture
def as_bob(db: None) -> Client:
    return _client(bob())
