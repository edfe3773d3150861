"""What channels are told of a report, through the renderers that send it: mail, Slack and webhook."""

from __future__ import annotations

import json
import re
from datetime import time, timedelta
from email import policy
from email.message import EmailMessage
from typing import Any

import pytest

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.delivery import render_mail, render_slack, render_webhook
from apps.delivery.choices import ChannelKind
from apps.delivery.messages import Envelope, Message
from apps.delivery.models import Channel
from apps.delivery.services import send_due
from apps.reports.choices import ReportForm
from apps.reports.content import Content, content_decode
from apps.reports.models import Report
from apps.reports.scheduling import ScheduleValues, schedule_save
from apps.reports.services import report_claim, report_run, reports_due
from apps.reports.telling import report_message
from tests.apps.delivery.mail_side import mail_side
from tests.apps.reports import samples
from tests.apps.reports.conftest import Maker
from tests.dashboard.markup import Page

SITE = "https://gangdash.example"
REPORT = Report(pk=7, cluster=Cluster(name="fjord-1"), title="Daily", start=samples.START, end=samples.END)
ENVELOPE = Envelope(
    id="1", key="report:7", kind="report", channel="c", created_at=samples.END, now=samples.END, base_url=SITE
)


def message(kind: ChannelKind, content: Content | None = None, **changes: Any) -> Message:
    return report_message(REPORT, content or samples.content(), kind=kind, **{"base_url": SITE, **changes})


def texts(value: object) -> list[str]:
    """Return every text in the body of a Slack message."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


def test_slack_gets_the_headline_what_waits_and_a_way_in() -> None:
    body = render_slack.render(message(ChannelKind.SLACK_WEBHOOK, attached=("csv",)), ENVELOPE)
    words = " ".join(texts(body["blocks"]))
    assert "8 gangs wait for 102 GPUs" in words
    assert "whisper-large-ft-1" in words
    assert "GPUs 8, Waits 20 h 54 min; Config; Queue multi-modal does not exist; Set queue multimodal" in words
    assert "1. queue admin: Raise the limit of batch-eval from 24 to 36 GPUs" in words
    assert "632 (\u221214)" in words
    assert f"{SITE}/reports/7/" in words
    assert body["text"].startswith("Daily on fjord-1: 8 gangs wait for 102 GPUs")
    assert "24 hours: 29 Nov 2026 09:00 CET to 30 Nov 2026 09:00 CET" in words
    assert len(json.dumps(body)) < 40_000


def test_only_a_mail_carries_files_and_only_a_webhook_the_content() -> None:
    slack, webhook = message(ChannelKind.SLACK_BOT, attached=("csv",)), message(ChannelKind.WEBHOOK, attached=("csv",))
    mail = message(ChannelKind.EMAIL, attached=("csv",))
    assert (slack.attachments, slack.html, slack.document) == ((), "", None)
    assert (len(mail.attachments), mail.document) == (1, None)
    body = json.loads(render_webhook.render(webhook, ENVELOPE))
    assert f'"{SITE}/clusters/fjord-1/gangs/team/whisper-large-ft-1/' in json.dumps(body)
    assert content_decode(json.dumps(webhook.document)).headline == samples.content().headline


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_names_stay_text_in_every_message(name: str) -> None:
    content = samples.hostile(name)
    slack = render_slack.render(message(ChannelKind.SLACK_WEBHOOK, content), ENVELOPE)
    for text in texts(slack):
        assert "<!" not in text
        assert not re.search("[\u202a-\u202e\u200b\x07\x1b]", text)
    mail = render_mail.render(message(ChannelKind.EMAIL, content, attached=("csv", "md")), ENVELOPE, domain="x.example")
    wire = EmailMessage(policy=policy.SMTP)
    wire["Subject"] = mail.subject
    assert "\n" not in mail.subject
    assert "<script" not in mail.html
    assert "javascript:" not in mail.html.replace("[x](javascript:alert(1))", "")
    for file in mail.attachments:
        assert re.fullmatch(r"[A-Za-z0-9.-]+", file.name)


def test_a_week_of_nothing_is_still_told() -> None:
    mail = render_mail.render(message(ChannelKind.EMAIL, samples.empty()), ENVELOPE, domain="x.example")
    assert "Daily on fjord-1: Nothing waits" in mail.text
    assert "Nothing waits." in mail.html
    render_slack.render(message(ChannelKind.SLACK_WEBHOOK, samples.empty()), ENVELOPE)


def test_without_an_address_of_the_site_no_link_is_made_up() -> None:
    mail = message(ChannelKind.EMAIL, base_url="", attached=("html",))
    assert "href=" not in mail.html
    assert b"href=" not in mail.attachments[0].content


def test_the_answer_is_the_title_and_the_range_stands_below() -> None:
    week = Report(pk=7, cluster=REPORT.cluster, title="Weekly", start=samples.END - timedelta(days=7), end=samples.END)
    content = samples.content(zone="America/New_York", start=week.start)
    told = report_message(week, content, kind=ChannelKind.SLACK_BOT, base_url=SITE)
    assert (told.label, told.title[:30]) == ("Weekly", "8 gangs wait for 102 GPUs, the")
    assert told.context.startswith("7 days: 23 Nov 2026 03:00 EST to 30 Nov 2026 03:00 EST.")
    wordless = report_message(week, samples.content(sections=()), kind=ChannelKind.SLACK_BOT)
    assert (wordless.title, wordless.text, wordless.links) == ("Health report", "", told.links)


@pytest.mark.django_db
def test_a_due_report_arrives_as_a_mail(cluster: Cluster, admin: User, maker: Maker, settings: Any) -> None:
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.GANGDASH_BASE_URL = SITE
    channel = Channel.objects.create(name="mail", kind=ChannelKind.EMAIL, recipients=["gpu@example.org"])
    values = ScheduleValues(name="Daily", at=time(8), channels=(channel,), attached=(ReportForm.CSV, ReportForm.HTML))
    schedule_save(values=values, actor=admin, now=samples.START + timedelta(hours=1))
    (due,) = reports_due(now=samples.END)
    claimed = report_claim(report_id=due.pk, now=samples.END)
    assert claimed is not None
    report_run(report=claimed, now=samples.END)
    with mail_side() as side:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", side.port
        assert send_due(now=samples.END) == 1
        assert send_due(now=samples.END) == 0
        mail = side.mail()
    assert mail["Subject"].startswith("[gangdash] Daily on fjord-1: 8 gangs wait for 102 GPUs")
    body, text = mail.get_body(("html",)), mail.get_body(("plain",))
    assert body is not None
    assert text is not None
    assert f"{SITE}/reports/{due.pk}/" in body.get_content()
    assert f"{SITE}/reports/{due.pk}/" in text.get_content()
    files = {str(part.get_filename()): part for part in mail.iter_attachments()}
    assert [name.rpartition(".")[2] for name in files] == ["csv", "html"]
    html = next(part for name, part in files.items() if name.endswith("html")).get_content()
    assert not Page(html.encode()).faults
