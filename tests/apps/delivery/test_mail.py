"""Mail over a real SMTP conversation: what it holds, and what each refusal at each step means."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.messages import Attachment, Message
from apps.delivery.models import Channel, Delivery
from apps.delivery.services import enqueue, send_due
from tests.apps.delivery.conftest import NOW, MakeChannel
from tests.apps.delivery.mail_side import MailSide, mail_side

pytestmark = pytest.mark.django_db
DUE, SENT, STOPPED = DeliveryState.DUE, DeliveryState.SENT, DeliveryState.STOPPED
PASSWORD = "smtp-secret-password"


@pytest.fixture
def mails(settings: Settings) -> Iterator[MailSide]:
    with mail_side() as found:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_TIMEOUT = 0.5
        settings.DEFAULT_FROM_EMAIL = "gangdash@example.com"
        yield found


def one(channel: Channel, message: Message | None = None) -> Delivery:
    found = message or Message(title="2 gangs wait", text="Because of \u00e4.", code="GPUS_BUSY", label="No fit")
    return enqueue(channel=channel, kind=DeliveryKind.REPORT, key="a", message=found, now=NOW)


def test_a_report_arrives_with_its_files(make_channel: MakeChannel, mails: MailSide) -> None:
    files = (Attachment("r.md", "text/markdown", "# \u00e4".encode()), Attachment("r.csv", "text/csv", b"a,b\r\n.\r\n"))
    message = Message(title="Daily report", text="All is well.", html="<p>all</p>", attachments=files)
    one(make_channel(ChannelKind.EMAIL, recipients=("a@example.com", "b@example.com")), message)
    assert send_due(now=NOW) == 1
    mail = mails.mail()
    assert (mail["Subject"], mail["To"]) == ("[gangdash] Daily report", "a@example.com, b@example.com")
    assert mail["From"] == "gangdash@example.com"
    assert mail["Message-ID"].endswith("@example.com>")
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert "All is well." in text.get_content()
    assert html.get_content().strip() == "<p>all</p>"
    found = {part.get_filename(): part.get_content() for part in mail.iter_attachments()}
    assert found["r.md"].strip() == "# \u00e4"
    assert "a,b" in found["r.csv"]


STEPS: list[tuple[str, str, DeliveryState, StopScope, bool]] = [
    ("CONNECT", "421 busy", DUE, StopScope.NONE, False),
    ("CONNECT", "554 no", STOPPED, StopScope.CHANNEL, False),
    ("MAIL", "451 later", DUE, StopScope.NONE, False),
    ("MAIL", "550 not you", STOPPED, StopScope.CHANNEL, False),
    ("RCPT", "450 greylisted", DUE, StopScope.NONE, False),
    ("RCPT", "550 unknown", STOPPED, StopScope.CHANNEL, False),
    ("DATA", "452 full", DUE, StopScope.NONE, False),
    ("DATA", "554 no", STOPPED, StopScope.MESSAGE, False),
    ("DATA", "", DUE, StopScope.NONE, True),
    ("END", "452 full", DUE, StopScope.NONE, False),
    ("END", "552 too large", STOPPED, StopScope.MESSAGE, False),
    ("END", "", DUE, StopScope.NONE, True),
    ("QUIT", "500 what", SENT, StopScope.NONE, False),
    ("QUIT", "", SENT, StopScope.NONE, False),
]


@pytest.mark.parametrize("case", STEPS)
def test_a_refusal_means_what_its_code_says(
    make_channel: MakeChannel, mails: MailSide, case: tuple[str, str, DeliveryState, StopScope, bool]
) -> None:
    step, reply, state, scope, repeats = case
    mails.replies[step] = reply
    row = one(make_channel(ChannelKind.EMAIL))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.stop_scope, row.may_repeat) == (state, scope, repeats)
    mails.replies.clear()
    if state == DUE:
        assert send_due(now=NOW + timedelta(hours=1)) == 1
        assert ("May be repeated" in mails.mails[-1].decode()) is repeats


def test_a_recipient_that_is_refused_among_others_is_shown(make_channel: MakeChannel, mails: MailSide) -> None:
    mails.replies["b@example.com"] = "550 unknown"
    row = one(make_channel(ChannelKind.EMAIL, recipients=("a@example.com", "b@example.com")))
    assert send_due(now=NOW) == 1
    row.refresh_from_db()
    row.channel.refresh_from_db()
    assert row.detail == row.channel.last_error == "refused for b@example.com"


def test_a_refused_login_stops_the_channel_and_shows_no_password(
    make_channel: MakeChannel, mails: MailSide, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "user", PASSWORD
    mails.replies["AUTH"] = "535 no"
    row = one(make_channel(ChannelKind.EMAIL))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.stop_scope, row.detail) == (STOPPED, StopScope.CHANNEL, "127.0.0.1 answered 535")
    assert PASSWORD not in caplog.text


def test_tls_that_is_asked_for_and_not_offered_stops_the_channel(
    make_channel: MakeChannel, mails: MailSide, settings: Settings
) -> None:
    settings.EMAIL_USE_TLS = True
    row = one(make_channel(ChannelKind.EMAIL))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.stop_scope) == (STOPPED, StopScope.CHANNEL)
    assert not mails.mails


def test_nobody_listening_is_tried_again(make_channel: MakeChannel, mails: MailSide, settings: Settings) -> None:
    settings.EMAIL_PORT = 1
    row = one(make_channel(ChannelKind.EMAIL))
    send_due(now=NOW)
    row.refresh_from_db()
    assert (row.state, row.may_repeat, row.detail) == (DUE, False, "127.0.0.1 cannot be reached")


def test_without_a_mail_server_the_channel_says_what_to_set(
    make_channel: MakeChannel, settings: Settings, alice: User
) -> None:
    settings.EMAIL_HOST = ""
    row = one(make_channel(ChannelKind.EMAIL))
    send_due(now=NOW)
    row.refresh_from_db()
    assert "GANGDASH_SMTP_HOST" in row.detail
    assert row.state == STOPPED
