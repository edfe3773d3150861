"""Every way in which a far side misbehaves, over a real connection: what is tried again, what stops, what is shown."""

from __future__ import annotations

import socket
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_django import Settings

from apps.delivery import targets, transport
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.messages import Message
from apps.delivery.models import Channel, Delivery
from apps.delivery.services import enqueue, send_due
from tests.apps.delivery.conftest import NOW, MakeChannel
from tests.apps.delivery.far_side import (
    OK,
    Answer,
    FarSide,
    bot_says,
    cut,
    cut_in_body,
    drip,
    no_http,
    says,
    silence,
)

pytestmark = pytest.mark.django_db
SLACK, BOT, HOOK = ChannelKind.SLACK_WEBHOOK, ChannelKind.SLACK_BOT, ChannelKind.WEBHOOK
DUE, SENT, STOPPED = DeliveryState.DUE, DeliveryState.SENT, DeliveryState.STOPPED
MESSAGE, CHANNEL, NONE = StopScope.MESSAGE, StopScope.CHANNEL, StopScope.NONE


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "READ_SECONDS", 0.3)
    monkeypatch.setattr(transport, "TOTAL_SECONDS", 0.6)


def one(channel: Channel, **fields: object) -> Delivery:
    message = Message(title="2 gangs wait", text="Because.")
    return enqueue(channel=channel, kind=DeliveryKind.ALERT, key="a", message=message, now=NOW, **fields)  # type: ignore[arg-type]


ANSWERS: list[tuple[ChannelKind, Answer, DeliveryState, StopScope]] = [
    (SLACK, OK, SENT, NONE),
    (SLACK, says(200, "no_ok"), STOPPED, CHANNEL),
    (SLACK, says(200, "<html>sign in</html>"), STOPPED, CHANNEL),
    (SLACK, says(204), STOPPED, CHANNEL),
    (SLACK, says(302, Location="http://127.0.0.1:1/"), STOPPED, CHANNEL),
    (SLACK, says(400, "invalid_payload"), STOPPED, MESSAGE),
    (SLACK, says(400, "invalid_token"), STOPPED, CHANNEL),
    (SLACK, says(403, "action_prohibited"), STOPPED, CHANNEL),
    (SLACK, says(404, "no_service"), STOPPED, CHANNEL),
    (SLACK, says(410, "channel_is_archived"), STOPPED, CHANNEL),
    (SLACK, says(408), DUE, NONE),
    (SLACK, says(429), DUE, NONE),
    (SLACK, says(500, "server_error"), DUE, NONE),
    (SLACK, says(503), DUE, NONE),
    (SLACK, silence(1), DUE, NONE),
    (SLACK, cut, DUE, NONE),
    (SLACK, cut_in_body, DUE, NONE),
    (SLACK, drip, DUE, NONE),
    (SLACK, no_http, DUE, NONE),
    (BOT, bot_says(ts="1.2"), SENT, NONE),
    (BOT, bot_says(ok=False, error="ratelimited"), DUE, NONE),
    (BOT, bot_says(ok=False, error="internal_error"), DUE, NONE),
    (BOT, bot_says(ok=False, error="invalid_blocks"), STOPPED, MESSAGE),
    (BOT, bot_says(ok=False, error="not_in_channel"), STOPPED, CHANNEL),
    (BOT, bot_says(ok=False, error="token_revoked"), STOPPED, CHANNEL),
    (BOT, says(200, "ok"), STOPPED, CHANNEL),
    (BOT, says(429, Retry_After="3"), DUE, NONE),
    (BOT, says(500), DUE, NONE),
    (HOOK, says(200), SENT, NONE),
    (HOOK, says(202, "anything"), SENT, NONE),
    (HOOK, says(204), SENT, NONE),
    (HOOK, says(301, Location="/x"), STOPPED, CHANNEL),
    (HOOK, says(400), STOPPED, MESSAGE),
    (HOOK, says(401), STOPPED, CHANNEL),
    (HOOK, says(403), STOPPED, CHANNEL),
    (HOOK, says(404), STOPPED, CHANNEL),
    (HOOK, says(410), STOPPED, CHANNEL),
    (HOOK, says(413), STOPPED, MESSAGE),
    (HOOK, says(422), STOPPED, MESSAGE),
    (HOOK, says(429), DUE, NONE),
    (HOOK, says(502), DUE, NONE),
    (HOOK, cut, DUE, NONE),
]


@pytest.mark.parametrize("case", ANSWERS)
def test_answer_settles_the_row_and_shows_on_the_channel(
    make_channel: MakeChannel, side: FarSide, case: tuple[ChannelKind, Answer, DeliveryState, StopScope]
) -> None:
    kind, answer, state, scope = case
    side.will(answer)
    channel = make_channel(kind)
    row = one(channel)
    send_due(now=NOW)
    row.refresh_from_db()
    channel.refresh_from_db()
    assert (row.state, row.stop_scope, row.attempts, row.claim) == (state, scope, 1, "")
    assert bool(channel.last_error) == (state != SENT)
    assert bool(channel.stopped_at) == (scope == CHANNEL)
    assert len(side.requests) == 1, "no redirect is followed and nothing is tried twice at once"
    if state == DUE:
        side.will(bot_says(ts="1.2") if kind == BOT else OK)
        assert send_due(now=NOW + timedelta(hours=1)) == 1


@pytest.mark.parametrize(
    "answer, repeats", [(silence(1), True), (cut, True), (cut_in_body, True), (says(500), False), (says(429), False)]
)
def test_only_an_attempt_that_may_have_arrived_is_said_to_be_repeated(
    make_channel: MakeChannel, side: FarSide, answer: Answer, repeats: bool
) -> None:
    side.will(answer, OK)
    one(make_channel())
    send_due(now=NOW)
    send_due(now=NOW + timedelta(minutes=1))
    assert len(side.requests) == 2
    assert ("May be repeated" in side.requests[1].body.decode()) is repeats
    assert "May be repeated" not in side.requests[0].body.decode()


def test_nobody_listening_is_tried_again_and_cannot_have_arrived(make_channel: MakeChannel, alice: object) -> None:
    row = one(make_channel(url="http://127.0.0.1:1/x"))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.may_repeat, row.detail) == (DUE, False, "127.0.0.1 refuses the connection")


def test_retry_after_in_seconds_holds_the_whole_channel(make_channel: MakeChannel, side: FarSide) -> None:
    side.will(says(429, Retry_After="120"), OK)
    channel = make_channel()
    one(channel)
    send_due(now=NOW)
    enqueue(channel=channel, kind=DeliveryKind.ALERT, key="b", message=Message(title="later"), now=NOW)
    send_due(now=NOW + timedelta(seconds=119))
    assert len(side.requests) == 1
    assert send_due(now=NOW + timedelta(seconds=121)) == 2


def test_retry_after_as_a_date_is_read_by_the_far_sides_own_clock(make_channel: MakeChannel, side: FarSide) -> None:
    until, since = "Mon, 30 Nov 2026 12:01:30 GMT", "Mon, 30 Nov 2026 12:00:00 GMT"
    side.will(says(503, Retry_After=until, Date=since), OK)
    one(make_channel())
    send_due(now=NOW)
    assert send_due(now=NOW + timedelta(seconds=89)) == 0
    assert send_due(now=NOW + timedelta(seconds=91)) == 1


def test_without_retry_after_the_pause_doubles_up_to_an_hour(make_channel: MakeChannel, side: FarSide) -> None:
    side.will(says(500))
    row = one(make_channel())
    now, pauses = NOW, []
    for _ in range(12):
        send_due(now=now)
        row.refresh_from_db()
        assert row.due_at is not None
        pauses.append((row.due_at - now).total_seconds())
        now = row.due_at + timedelta(seconds=1)
    assert row.attempts == 12
    assert 8 <= pauses[0] <= 11
    assert all(later > earlier for earlier, later in pairwise(pauses[:9]))
    assert all(2880 <= pause <= 3601 for pause in pauses[-2:])


@pytest.fixture
def trusted(settings: Settings, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Trust the certificate of hooks.test, and have every name lead to this machine."""
    settings.GANGDASH_WEBHOOK_CA_FILE = str(certificate)

    def found(_host: str, port: int, *_args: object, **_kw: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(targets, "socket", SimpleNamespace(getaddrinfo=found, SOCK_STREAM=socket.SOCK_STREAM))
    return settings


def test_tls_goes_to_the_checked_address_and_the_named_host(
    make_channel: MakeChannel, tls_side: FarSide, trusted: Settings
) -> None:
    one(make_channel(url=f"{tls_side.url}/x"))
    assert send_due(now=NOW) == 1
    assert tls_side.requests[0].headers["host"] == f"hooks.test:{tls_side.port}"


def test_a_lost_file_of_authorities_is_tried_again_and_named(
    make_channel: MakeChannel, tls_side: FarSide, trusted: Settings
) -> None:
    trusted.GANGDASH_WEBHOOK_CA_FILE = "/no/such/file"
    row = one(make_channel(url=f"{tls_side.url}/x"))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.may_repeat, row.detail) == (DUE, False, "GANGDASH_WEBHOOK_CA_FILE cannot be read")


def test_tls_to_a_bare_address_checks_the_address(
    make_channel: MakeChannel, tls_side: FarSide, trusted: Settings
) -> None:
    one(make_channel(url=f"https://127.0.0.1:{tls_side.port}/x"))
    assert send_due(now=NOW) == 1


@pytest.mark.parametrize("host", ["hooks.test", "other.test"])
def test_a_certificate_that_is_unknown_or_of_another_name_is_refused_and_tried_again(
    make_channel: MakeChannel, tls_side: FarSide, trusted: Settings, host: str
) -> None:
    if host == "hooks.test":
        trusted.GANGDASH_WEBHOOK_CA_FILE = ""
    row = one(make_channel(url=f"https://{host}:{tls_side.port}/x"))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.may_repeat) == (DUE, False)
    assert row.detail == f"{host} could not prove who it is (TLS)"
    assert not tls_side.requests
