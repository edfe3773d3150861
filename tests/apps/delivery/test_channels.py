"""Channels: what is filled in is checked, what is secret is sealed and appears nowhere, what is locked says so."""

from __future__ import annotations

import io
import logging
import sqlite3
import stat
from datetime import time
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.core.serializers import serialize
from django.db import connection
from pytest_django import Settings

from apps.accounts.models import AuditEntry, User
from apps.delivery import sending, vault
from apps.delivery.channels import (
    ChannelValues,
    channel_create,
    channel_delete,
    channel_pause,
    channel_retry,
    channel_test,
    channel_update,
)
from apps.delivery.choices import ChannelKind, DeliveryState
from apps.delivery.models import Channel, Delivery
from apps.delivery.selectors import channel_get, channel_list
from apps.delivery.services import send_due
from apps.errors import ApplicationError
from tests.apps.delivery.conftest import NOW, SECRET, SIGNING_KEY, TOKEN, MakeChannel
from tests.apps.delivery.far_side import FarSide, cut, says
from tests.apps.delivery.test_sending import put

pytestmark = pytest.mark.django_db
SLACK, BOT, HOOK, MAIL = ChannelKind.SLACK_WEBHOOK, ChannelKind.SLACK_BOT, ChannelKind.WEBHOOK, ChannelKind.EMAIL
URL = "https://hooks.slack.com/services/T/B/x"


def create(alice: User, kind: ChannelKind = SLACK, **values: Any) -> Channel:
    return channel_create(kind=kind, values=ChannelValues(**{"name": "ops", "url": URL, **values}), actor=alice).channel


REFUSED: list[tuple[ChannelKind, dict[str, Any], str]] = [
    (SLACK, {"name": " "}, "name"),
    (SLACK, {"name": "n" * 65}, "name"),
    (SLACK, {"name": "a\nb"}, "name"),
    (SLACK, {"url": ""}, "url"),
    (SLACK, {"url": "javascript:x"}, "url"),
    (SLACK, {"url": "https://user:pass@hooks.slack.com/x"}, "url"),
    (SLACK, {"url": "https://0.0.0.0/"}, "url"),
    (BOT, {"url": "", "slack_channel": "C1"}, "token"),
    (BOT, {"token": "xoxb", "slack_channel": ""}, "slack_channel"),
    (BOT, {"token": "xo\r\nxb", "slack_channel": "C1"}, "token"),
    (HOOK, {"signing_key": "\u00e4" * 40}, "signing_key"),
    (MAIL, {"recipients": ()}, "recipients"),
    (MAIL, {"recipients": ("no address",)}, "recipients"),
    (MAIL, {"recipients": ("a@b.example\r\nBcc: x@y.example",)}, "recipients"),
    (MAIL, {"recipients": tuple(f"a{at}@b.example" for at in range(51))}, "recipients"),
    (SLACK, {"digest_after": 0}, "digest_after"),
    (SLACK, {"digest_minutes": 2000}, "digest_minutes"),
    (SLACK, {"quiet_zone": "Mars/Base"}, "quiet_zone"),
    (SLACK, {"quiet_from": time(1)}, "quiet_to"),
    (SLACK, {"quiet_from": time(1), "quiet_to": time(2)}, "quiet_days"),
    (SLACK, {"quiet_days": (7,)}, "quiet_days"),
    (SLACK, {"clusters": ("c" * 254,)}, "clusters"),
]


@pytest.mark.parametrize("kind, values, field", REFUSED)
def test_what_cannot_be_is_refused_with_its_field(
    alice: User, kind: ChannelKind, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(ApplicationError) as raised:
        create(alice, kind, **values)
    assert (raised.value.code, raised.value.fields) == ("channel_not_valid", {"field": field})
    assert not Channel.objects.exists()


def test_a_name_is_given_once(alice: User) -> None:
    create(alice)
    with pytest.raises(ApplicationError) as raised:
        create(alice)
    assert raised.value.code == "channel_name_taken"


def test_private_targets_are_refused_when_they_are_filled_in(alice: User, settings: Settings) -> None:
    settings.GANGDASH_WEBHOOK_PRIVATE_TARGETS = False
    for url in ("http://hooks.slack.com/x", "https://127.0.0.1/x", "https://[::1]/x"):
        with pytest.raises(ApplicationError):
            create(alice, url=url)


def test_only_the_host_is_kept_in_the_open(alice: User) -> None:
    assert create(alice).host == "hooks.slack.com"
    bot = create(alice, BOT, name="bot", url="", token=TOKEN, slack_channel="C1")
    assert bot.host == "slack.com"
    assert create(alice, MAIL, name="mail", recipients=("a@b.example", " a@b.example ")).recipients == ["a@b.example"]


def test_a_signing_key_is_made_up_and_shown_once(alice: User) -> None:
    made = channel_create(kind=HOOK, values=ChannelValues(name="h", url=URL), actor=alice)
    assert len(made.signing_key) > 40
    assert vault.unseal(made.channel.sealed) == {"url": URL, "signing_key": made.signing_key}
    given = channel_create(kind=HOOK, values=ChannelValues(name="i", url=URL, signing_key=SIGNING_KEY), actor=alice)
    assert given.signing_key == ""


def test_an_empty_secret_stays_as_it_is(alice: User) -> None:
    channel = create(alice, HOOK, signing_key=SIGNING_KEY)
    channel_update(channel=channel, values=ChannelValues(name="renamed"), actor=alice)
    assert vault.unseal(Channel.objects.get().sealed) == {"url": URL, "signing_key": SIGNING_KEY}
    channel_update(channel=channel, values=ChannelValues(name="x", url="https://other.example/y"), actor=alice)
    assert vault.unseal(Channel.objects.get().sealed) == {"url": "https://other.example/y", "signing_key": SIGNING_KEY}
    assert Channel.objects.get().host == "other.example"


def test_a_new_address_gives_a_stopped_channel_another_try(alice: User) -> None:
    channel = create(alice)
    Channel.objects.update(stopped_at=NOW)
    channel.refresh_from_db()
    channel_update(channel=channel, values=ChannelValues(name="same"), actor=alice)
    assert Channel.objects.get().stopped_at == NOW
    channel_update(channel=channel, values=ChannelValues(name="same", url=f"{URL}y"), actor=alice)
    assert Channel.objects.get().stopped_at is None


def test_a_change_does_not_undo_what_a_sender_has_just_written(alice: User) -> None:
    channel = create(alice)
    Channel.objects.update(stopped_at=NOW, last_success_at=NOW, is_enabled=False)
    channel_update(channel=channel, values=ChannelValues(name="renamed"), actor=alice)
    channel.refresh_from_db()
    assert (channel.name, channel.stopped_at, channel.last_success_at) == ("renamed", NOW, NOW)
    assert not channel.is_enabled


def test_names_are_told_only_where_the_channel_may(alice: User) -> None:
    channel = create(alice, clusters=("east",), namespaces=("team-a",))
    assert channel.may_tell(cluster="east", namespace="team-a")
    assert not channel.may_tell(cluster="east", namespace="team-b")
    assert not channel.may_tell(cluster="west", namespace="team-a")
    assert create(alice, name="all").may_tell(cluster="any", namespace="any")


def test_each_change_is_in_the_audit_record(alice: User, make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    channel_update(channel=channel, values=ChannelValues(name="x"), actor=alice)
    channel_pause(channel=channel, is_paused=True, actor=alice)
    channel_pause(channel=channel, is_paused=True, actor=alice)
    channel_retry(channel=channel, actor=alice)
    channel_test(channel=channel, actor=alice, now=NOW)
    channel_delete(channel=channel, actor=alice)
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == [f"channel.{word}" for word in ("create", "update", "pause", "retry", "test", "delete")]
    assert not Channel.objects.exists()


def test_counts_of_what_waits_stand_beside_the_channel(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    side.will(says(400))
    put(channel, "a")
    send_due(now=NOW)
    put(channel, "b")
    found = channel_get(channel_id=channel.pk)
    assert (found.due, found.stopped) == (1, 1)  # type: ignore[attr-defined]
    assert list(channel_list()) == [channel]


def dump() -> str:
    """Return everything that the database holds, as text."""
    connection.ensure_connection()
    rows = [serialize("json", model.objects.all()) for model in (Channel, Delivery, AuditEntry, User)]
    raw = connection.connection
    if isinstance(raw, sqlite3.Connection):
        rows += list(raw.iterdump())
    return "\n".join(rows)


@pytest.mark.parametrize("kind", [SLACK, BOT, HOOK])
@pytest.mark.parametrize("answer", [says(200, "ok"), says(404, f"no {SECRET}"), cut, says(500, SECRET), says(302)])
def test_no_secret_is_logged_stored_or_shown(
    make_channel: MakeChannel, side: FarSide, caplog: pytest.LogCaptureFixture, kind: ChannelKind, answer: Any
) -> None:
    logging.getLogger("urllib3").setLevel(logging.DEBUG)
    caplog.set_level(logging.DEBUG)
    side.will(answer)
    channel = make_channel(kind)
    put(channel, "a")
    send_due(now=NOW)
    channel.refresh_from_db()
    shown = [repr(channel), str(channel), channel.last_error, repr(Delivery.objects.get()), dump(), caplog.text]
    values = ChannelValues(name="x", url=URL, token=TOKEN, signing_key=SIGNING_KEY)
    shown += [repr(values), str(values)]
    for text in shown:
        assert not [word for word in (SECRET, TOKEN, SIGNING_KEY) if word in text]
    assert side.requests


def test_a_fault_of_ours_shows_no_secret_either(
    make_channel: MakeChannel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from apps.delivery import tasks, transport

    put(make_channel(), "a")

    def broken(*_args: object, **_fields: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(transport, "_answer", broken)
    tasks.send_due()
    assert "a fault of ours" in caplog.text
    assert SECRET not in caplog.text


def test_a_key_that_opens_nothing_stops_the_channel_and_says_so(
    make_channel: MakeChannel, settings: Settings, alice: User, side: FarSide
) -> None:
    channel = make_channel()
    put(channel, "a")
    settings.GANGDASH_SECRETS_KEYS = ["another-key-0123456789abcdefghijklmnop"]
    send_due(now=NOW)
    channel.refresh_from_db()
    assert "cannot be opened with the present key" in channel.last_error
    assert Delivery.objects.get().state == DeliveryState.STOPPED
    with pytest.raises(ApplicationError) as raised:
        channel_update(channel=channel, values=ChannelValues(name="x"), actor=alice)
    assert raised.value.code == "secrets_locked"
    channel_update(channel=channel, values=ChannelValues(name="x", url=f"{side.url}/y"), actor=alice)
    channel_retry(channel=channel, actor=alice)
    assert send_due(now=NOW) == 1


def test_sealed_text_that_was_changed_opens_nothing(make_channel: MakeChannel) -> None:
    sealed = make_channel().sealed
    for text in (sealed[:-4] + "AAAA", "x", "\u00e4"):
        with pytest.raises(vault.VaultError):
            vault.unseal(text)


def test_keys_are_changed_without_losing_a_channel(make_channel: MakeChannel, settings: Settings) -> None:
    channel = make_channel()
    old, new = settings.GANGDASH_SECRETS_KEYS[0], "new-key-0123456789abcdefghijklmnopqrstuv"
    settings.GANGDASH_SECRETS_KEYS = [new, old]
    out = io.StringIO()
    call_command("reseal_secrets", stdout=out)
    assert "sealed with the first key" in out.getvalue()
    settings.GANGDASH_SECRETS_KEYS = [new]
    channel.refresh_from_db()
    assert SECRET in vault.unseal(channel.sealed)["url"]
    settings.GANGDASH_SECRETS_KEYS = ["third-key-0123456789abcdefghijklmnopqrst"]
    with pytest.raises(CommandError, match="ops"):
        call_command("reseal_secrets")


def test_without_a_key_the_embedded_mode_makes_one_for_this_user_only(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "is_embedded", lambda: True)
    settings.GANGDASH_SECRETS_KEYS = []
    settings.GANGDASH_STATE_DIR = tmp_path / "new" / "state"
    with pytest.raises(vault.VaultError):
        vault.unseal("x")
    sealed = vault.seal({"url": "u"})
    path = settings.GANGDASH_STATE_DIR / vault.KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_text()
    assert vault.unseal(sealed) == {"url": "u"}
    vault._write_key(path)
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir()] == [vault.KEY_FILE]


def test_production_without_a_key_does_not_start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def ids() -> set[str]:
        return {str(message.id) for message in run_checks(tags=["gangdash"])}

    monkeypatch.setattr(vault, "is_embedded", lambda: True)
    settings.GANGDASH_SECRETS_KEYS = ["short"]
    assert "gangdash.E009" in ids()
    settings.GANGDASH_SECRETS_KEYS = []
    settings.GANGDASH_WEBHOOK_PROXY = "proxy:3128"
    settings.GANGDASH_WEBHOOK_CA_FILE = "/no/such/file"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example", "gangdash"
    assert {"gangdash.E010", "gangdash.E011", "gangdash.E012"} <= ids()
    settings.DEFAULT_FROM_EMAIL = "gangdash <gangdash@mail.example>"
    assert "gangdash.E012" not in ids()
    assert "gangdash.E008" not in ids()
    monkeypatch.setattr(vault, "is_embedded", lambda: False)
    assert "gangdash.E008" in ids()
    with pytest.raises(vault.VaultError, match="GANGDASH_SECRETS_KEY"):
        vault.seal({"url": "u"})
    assert sending.is_open(Channel(is_enabled=True), NOW)
