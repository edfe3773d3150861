"""Signing in, the first password, tokens that are shown once."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from apps.accounts.models import ApiToken, User
from apps.accounts.services import user_create
from tests.dashboard.markup import Page, visible_text

GOOD = "a long and odd sentence 7"


@pytest.fixture
def first_login(db: None) -> tuple[Client, str]:
    """Return a client that signed in with the one-time password of the first admin."""
    made = user_create(username="admin", role="admin")  # type: ignore[arg-type]
    assert made.password is not None
    client = Client()
    answer = client.post("/login/", {"username": "admin", "password": made.password})
    assert answer.status_code == 302
    return client, made.password


def change(client: Client, old: str, new: str, again: str = "") -> bytes:
    answer = client.post("/account/password/", {"old": old, "new": new, "again": again or new})
    return answer.content if answer.status_code == 200 else b""


def test_a_wrong_password_is_refused_without_saying_which_part(db: None) -> None:
    answer = Client().post("/login/", {"username": "nobody", "password": "x"})
    assert "Name or password is wrong." in visible_text(answer.content)
    assert not Page(answer.content).faults


def test_signing_in_leads_to_where_one_wanted_to_go(db: None) -> None:
    User.objects.create_user("carol", password=GOOD, role="viewer")
    answer = Client().post("/login/?next=/queues/", {"username": "carol", "password": GOOD, "next": "/queues/"})
    assert answer["Location"] == "/queues/"
    away = Client().post("/login/", {"username": "carol", "password": GOOD, "next": "https://evil.example/"})
    assert away["Location"] == "/"


def test_first_login_ends_at_the_password_page_and_goes_on_after_it(first_login: tuple[Client, str]) -> None:
    client, password = first_login
    assert client.get("/")["Location"] == "/account/password/"
    page = client.get("/account/password/").content
    assert "Choose your own password" in visible_text(page)
    assert not Page(page).faults
    assert change(client, password, GOOD) == b""
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "old, new, again, words",
    [
        ("wrong", GOOD, GOOD, "This is not your present password"),
        ("", GOOD, "other", "The two new passwords differ"),
        ("", "short", "short", "too short"),
    ],
)
def test_a_bad_change_says_what_is_wrong(
    first_login: tuple[Client, str], old: str, new: str, again: str, words: str
) -> None:
    client, password = first_login
    content = change(client, old or password, new, again)
    assert words in visible_text(content)
    assert client.get("/")["Location"] == "/account/password/"


def test_the_one_time_password_cannot_be_kept(first_login: tuple[Client, str]) -> None:
    client, password = first_login
    assert "must differ" in visible_text(change(client, password, password))


def test_signing_out_is_a_post_and_ends_the_session(as_alice: Client) -> None:
    assert as_alice.get("/logout/").status_code == 405
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/").status_code == 302


def test_a_token_is_shown_once_and_only_its_hash_is_kept(as_alice: Client) -> None:
    answer = as_alice.post("/account/", {"name": "ci", "days": "30", "scopes": ["read"]})
    shown = re.findall(r"gd_[\w-]{20,}", answer.content.decode())
    assert shown
    assert "Copy the token now" in visible_text(answer.content)
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert shown[0] not in as_alice.get("/account/").content.decode()
    assert shown[0] not in str(token.__dict__)
    assert "no-store" in answer["Cache-Control"]


def test_a_name_that_is_taken_is_refused(as_alice: Client) -> None:
    values = {"name": "ci", "days": "", "scopes": ["read"]}
    as_alice.post("/account/", values)
    assert "You have a token named" in visible_text(as_alice.post("/account/", values).content)
    assert ApiToken.objects.count() == 1


def test_a_token_can_be_revoked_by_its_owner_only(as_alice: Client, as_bob: Client) -> None:
    as_alice.post("/account/", {"name": "ci", "days": "", "scopes": ["read"]})
    address = f"/account/tokens/{ApiToken.objects.get().pk}/revoke"
    as_bob.post(address)
    assert ApiToken.objects.filter(revoked_at=None).exists()
    assert as_alice.get(address).status_code == 405
    as_alice.post(address)
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert "You have no token." in visible_text(as_alice.get("/account/").content)


def test_the_account_says_what_one_may_see(as_bob: Client) -> None:
    assert "Viewer of named namespaces : fjord-1/mm-lab" in visible_text(as_bob.get("/account/").content).replace(
        "namespaces:", "namespaces :"
    )


def test_forms_are_refused_without_their_token(db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("dave", password=GOOD, role="viewer"))
    answer = client.post("/account/", {"name": "ci", "days": "", "scopes": ["read"]})
    assert answer.status_code == 403
    assert "The form was not sent from this page" in visible_text(answer.content)
    assert not ApiToken.objects.exists()
