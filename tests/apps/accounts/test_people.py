"""Users, one-time passwords, tokens: what is given out once, what is kept, what is written down."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.choices import Role, TokenScope
from apps.accounts.models import ApiToken, AuditEntry, User
from apps.accounts.scope import NOTHING, scope_of
from apps.accounts.selectors import audit_list, token_list
from apps.accounts.services import (
    token_authenticate,
    token_create,
    token_revoke,
    user_create,
    user_set_password,
)
from apps.collector.tasks import prune
from apps.errors import ApplicationError

pytestmark = pytest.mark.django_db


def ensure_admin() -> dict[str, str | None]:
    out = StringIO()
    call_command("ensure_admin", stdout=out)
    answer: dict[str, str | None] = json.loads(out.getvalue())
    return answer


def test_first_start_creates_an_admin_whose_password_works_and_must_be_changed() -> None:
    answer = ensure_admin()
    user = User.objects.get(username=str(answer["username"]))
    assert user.is_admin
    assert user.must_change_password
    assert user.check_password(str(answer["password"]))


def test_second_start_changes_nothing_and_gives_no_password() -> None:
    first = ensure_admin()
    before = User.objects.get().password
    assert ensure_admin() == {"username": first["username"], "password": None}
    assert User.objects.get().password == before


def test_ensure_admin_leaves_an_installation_with_other_users_alone() -> None:
    User.objects.create_superuser("root-of-all", password="x" * 20)
    assert ensure_admin() == {"username": "root-of-all", "password": None}
    assert User.objects.count() == 1


def test_add_user_grants_exactly_the_named_namespaces() -> None:
    out = StringIO()
    call_command("add_user", "bob", "--namespace", "east/team-a", "--namespace", "east/team-b", stdout=out)
    name, password = out.getvalue().split()
    user = User.objects.get(username=name)
    assert user.check_password(password)
    scope = scope_of(user)
    assert not scope.sees_all
    assert scope.namespaces == {("east", "team-a"), ("east", "team-b")}


@pytest.mark.parametrize("arguments", [["x", "--namespace", "team-a"], ["x", "--namespace", "/a"], ["no such name!"]])
def test_add_user_refuses_what_makes_no_sense(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("add_user", *arguments)
    assert not User.objects.exists()


def test_grants_for_someone_who_sees_everything_are_refused() -> None:
    with pytest.raises(ApplicationError) as refusal:
        user_create(username="eve", role=Role.VIEWER, grants=[("east", "a")])
    assert refusal.value.code == "grants_without_effect"


def test_scopes_follow_the_role(alice: User, bob: User) -> None:
    viewer = user_create(username="vera", role=Role.VIEWER).user
    assert scope_of(alice).sees_all
    assert scope_of(viewer).sees_all
    assert not scope_of(bob).sees_all
    assert scope_of(AnonymousUser()) == NOTHING


def test_an_inactive_user_sees_nothing(alice: User) -> None:
    alice.is_active = False
    assert scope_of(alice) == NOTHING
    assert not alice.is_admin


def test_changing_the_password_ends_the_one_time_password() -> None:
    created = user_create(username="carol", role=Role.VIEWER)
    user_set_password(user=created.user, password="a long enough phrase")
    user = User.objects.get(username="carol")
    assert not user.must_change_password
    assert user.check_password("a long enough phrase")
    assert not user.check_password(str(created.password))


@pytest.mark.parametrize("password", ["short", "123456789012345", "password1234"])
def test_weak_passwords_are_refused_and_the_old_one_stays(alice: User, password: str) -> None:
    before = alice.password
    with pytest.raises(ApplicationError) as refusal:
        user_set_password(user=alice, password=password)
    assert refusal.value.code == "password_too_weak"
    alice.refresh_from_db()
    assert alice.password == before


def test_the_one_time_password_cannot_be_kept() -> None:
    created = user_create(username="carol", role=Role.VIEWER)
    with pytest.raises(ApplicationError) as refusal:
        user_set_password(user=created.user, password=str(created.password))
    assert refusal.value.code == "password_not_new"


def test_a_token_opens_what_its_text_says_and_the_text_is_nowhere_in_the_database(alice: User) -> None:
    new = token_create(user=alice, name="ci", scopes=[TokenScope.READ])
    found = token_authenticate(text=new.text)
    assert found == new.token
    assert found is not None
    assert found.user == alice
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            assert not [row for row in cursor.fetchall() if new.text in repr(row)]


def test_wrong_revoked_expired_and_orphaned_tokens_open_nothing(alice: User) -> None:
    new = token_create(user=alice, name="ci", expires_at=timezone.now() + timedelta(days=1))
    assert token_authenticate(text=new.text + "x") is None
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        assert token_authenticate(text=new.text) is None
    alice.is_active = False
    alice.save()
    assert token_authenticate(text=new.text) is None
    alice.is_active = True
    alice.save()
    token_revoke(user=alice, token_id=new.token.pk)
    assert token_authenticate(text=new.text) is None


def test_last_use_is_kept_to_the_minute(alice: User) -> None:
    new = token_create(user=alice, name="ci")
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        token_authenticate(text=new.text)
        clock.shift(30)
        token_authenticate(text=new.text)
        assert ApiToken.objects.get().last_used_at == start
        clock.shift(31)
        token_authenticate(text=new.text)
        assert ApiToken.objects.get().last_used_at == start + timedelta(seconds=61)


def test_a_token_of_someone_else_cannot_be_revoked_but_an_admin_can(alice: User, bob: User) -> None:
    of_alice = token_create(user=alice, name="a").token
    of_bob = token_create(user=bob, name="b").token
    with pytest.raises(ApplicationError) as refusal:
        token_revoke(user=bob, token_id=of_alice.pk)
    assert refusal.value.code == "token_unknown"
    token_revoke(user=alice, token_id=of_bob.pk)
    assert list(token_list(user=bob)) == []


def test_revoking_twice_leaves_one_record(alice: User) -> None:
    token = token_create(user=alice, name="a").token
    token_revoke(user=alice, token_id=token.pk)
    first = ApiToken.objects.get().revoked_at
    token_revoke(user=alice, token_id=token.pk)
    assert ApiToken.objects.get().revoked_at == first
    assert audit_list(action="token.revoke").count() == 1


def test_a_name_is_free_again_after_revoking(alice: User) -> None:
    token = token_create(user=alice, name="ci").token
    with pytest.raises(ApplicationError) as refusal:
        token_create(user=alice, name=" ci ")
    assert refusal.value.code == "token_name_taken"
    token_revoke(user=alice, token_id=token.pk)
    assert token_create(user=alice, name="ci").token.pk != token.pk


@pytest.mark.parametrize("name, days, code", [("", 1, "token_name_not_valid"), ("x", -1, "token_expiry_past")])
def test_tokens_without_a_name_or_a_future_are_refused(alice: User, name: str, days: int, code: str) -> None:
    with pytest.raises(ApplicationError) as refusal:
        token_create(user=alice, name=name, expires_at=timezone.now() + timedelta(days=days))
    assert refusal.value.code == code


def test_logins_and_failures_are_written_down_without_passwords(alice: User, client: Client) -> None:
    client.login(username="alice", password="wrong-secret")
    client.login(username="alice", password="alice-password")
    client.logout()
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", "actor_name"))
    assert actions == [("login.failed", "alice"), ("login", "alice"), ("logout", "alice")]
    assert "secret" not in repr(list(AuditEntry.objects.values()))


def test_ten_wrong_passwords_make_a_pause_for_that_name_and_address_only(alice: User, bob: User) -> None:
    here, elsewhere = Client(REMOTE_ADDR="192.0.2.1"), Client(REMOTE_ADDR="192.0.2.2")
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for _ in range(10):
            assert not log_in(here, "alice", "wrong")
        assert not log_in(here, "alice", "alice-password")
        assert log_in(here, "bob", "bob-password")
        assert log_in(elsewhere, "alice", "alice-password")
        clock.shift(timedelta(minutes=4))
        assert not log_in(here, "alice", "alice-password")
        # What was tried during the pause has not made it longer.
        clock.shift(timedelta(minutes=2))
        assert log_in(here, "alice", "alice-password")
    assert audit_list(action="login.paused").count() == 2


def log_in(client: Client, name: str, password: str) -> bool:
    client.logout()
    client.post("/login/", {"username": name, "password": password})
    return "_auth_user_id" in client.session


def test_records_of_failed_logins_end_and_those_of_what_was_done_stay(alice: User, settings: Settings) -> None:
    with time_machine.travel(timezone.now() - timedelta(days=31)):
        log_in(Client(), "alice", "wrong")
        log_in(Client(), "alice", "alice-password")
    log_in(Client(), "alice", "wrong")
    prune()
    prune()
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["login", "login.failed"]
