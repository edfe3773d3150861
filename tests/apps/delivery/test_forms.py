"""The other forms of a message, signed JSON and mail; and when a channel is quiet or tried again."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.delivery import backoff, render_mail, render_webhook
from apps.delivery.messages import Attachment, Envelope, Fact, Line, Link, Message, decode, encode
from apps.delivery.quiet import QuietHours, quiet_until
from tests.apps.delivery.conftest import NOW
from tests.apps.delivery.test_slack import HOSTILE, HUGE, alert, envelope

KEY = "k" * 40


def test_a_message_goes_to_json_and_back_unchanged() -> None:
    message = alert(
        html="<p>", attachments=(Attachment("r.csv", "text/csv", b"\x00\xff"),), document={"a": [1, None, "x"]}
    )
    assert decode(encode(message)) == message


def test_a_webhook_body_holds_the_document_and_full_links() -> None:
    found = json.loads(render_webhook.render(alert(document={"verdict": "NO_FIT"}), envelope(thread="t")))
    assert found["document"] == {"verdict": "NO_FIT"}
    assert (found["version"], found["kind"], found["key"], found["thread"]) == (1, "alert", "k", "t")
    assert found["links"][0] == {"text": "Open gang", "url": "https://gangdash.example/g/"}
    assert found["lines"][1]["url"] is None
    assert (found["may_be_repeated"], found["documents_omitted"]) == (False, False)


def test_a_document_that_is_too_large_is_left_out_and_said_to_be() -> None:
    body = render_webhook.render(alert(document={"nodes": ["n" * 1000] * 2000}), envelope())
    assert len(body) < render_webhook.BODY_MAX
    assert (json.loads(body)["document"], json.loads(body)["documents_omitted"]) == (None, True)


def test_a_receiver_can_check_the_signature_as_the_documentation_says() -> None:
    body = render_webhook.render(alert(), envelope())
    header = render_webhook.headers(envelope(), body, key=KEY, at=NOW)["X-Gangdash-Signature"]
    stamp, _, digest = header.removeprefix("t=").partition(",v1=")
    assert stamp == str(int(NOW.timestamp()))
    assert hmac.new(KEY.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest() == digest


def mail(message: Message, **fields: Any) -> render_mail.Mail:
    return render_mail.render(message, envelope(**fields), domain="example.com")


def test_a_mail_says_all_of_it_in_text_and_html() -> None:
    found = mail(alert())
    assert found.subject == "[gangdash] No fit DOMAIN_BUSY on fjord-1: 2 gangs wait for 92 GPUs"
    for part in ("nvl-a1, has 9 of 18", "mm-lab/dit-3", "Cluster admin", "move qwen-32b-agg-2", "As of 08:39:41 UTC"):
        assert part in found.text
        assert part in found.html
    assert "https://gangdash.example/g/" in found.text


def test_a_reports_own_html_and_files_go_along() -> None:
    file = Attachment("report.md", "text/markdown", b"# x")
    found = mail(Message(title="Daily report", html="<!doctype html><p>all of it</p>", attachments=(file,)))
    assert (found.html, found.attachments) == ("<!doctype html><p>all of it</p>", (file,))


def test_mails_of_one_cause_are_one_conversation() -> None:
    first, again = mail(alert(), id="a"), mail(alert(), id="a", attempt=3, may_repeat=True)
    follow_up = mail(Message(title="Resolved."), id="b", thread="k", first=alert(), first_id="a")
    assert first.message_id == again.message_id == follow_up.follows_id
    assert follow_up.message_id != first.message_id
    assert follow_up.subject == f"Re: {first.subject}"
    assert "May be repeated" in again.text
    assert "May be repeated" in again.html


@pytest.mark.parametrize("name", [*HOSTILE, "<script>x</script>", "a\r\nBcc: x@y"])
def test_names_are_text_in_mails(name: str) -> None:
    message = Message(title=name, text=name, lines=(Line(name, name),), facts=(Fact(name, name),), fixes=(name,))
    found = mail(message)
    assert "\n" not in found.subject
    assert "\r" not in found.subject
    assert len(found.subject) <= render_mail.SUBJECT_MAX
    assert "<script" not in found.html
    assert "<!channel" not in found.html
    found.html.encode()
    found.text.encode()


def test_a_huge_message_still_is_a_mail() -> None:
    assert len(mail(HUGE).subject) <= render_mail.SUBJECT_MAX


def test_a_webhook_takes_any_name() -> None:
    for name in HOSTILE:
        message = decode(encode(Message(title=name)))
        assert json.loads(render_webhook.render(message, envelope()))["title"] == name.replace("\ud800", "?")


BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours("Europe/Berlin", range(7), time(22), time(7))


@pytest.mark.parametrize(
    "moment, end",
    [
        (datetime(2026, 11, 30, 21, 59, tzinfo=BERLIN), None),
        (datetime(2026, 11, 30, 22, 0, tzinfo=BERLIN), datetime(2026, 12, 1, 7, 0, tzinfo=BERLIN)),
        (datetime(2026, 12, 1, 3, 0, tzinfo=BERLIN), datetime(2026, 12, 1, 7, 0, tzinfo=BERLIN)),
        (datetime(2026, 12, 1, 7, 0, tzinfo=BERLIN), None),
        # The nights in which the clock changes, an hour shorter and an hour longer.
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 3, 29, 5, 0, tzinfo=UTC)),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 6, 0, tzinfo=UTC)),
    ],
)
def test_quiet_hours_are_those_of_the_place(moment: datetime, end: datetime | None) -> None:
    assert quiet_until(NIGHT, moment.astimezone(UTC)) == end


def test_days_are_those_on_which_the_quiet_hours_begin() -> None:
    friday = QuietHours("UTC", {4}, time(22), time(7))
    assert quiet_until(friday, datetime(2026, 12, 4, 23, tzinfo=UTC)) is not None
    assert quiet_until(friday, datetime(2026, 12, 5, 3, tzinfo=UTC)) is not None
    assert quiet_until(friday, datetime(2026, 12, 5, 23, tzinfo=UTC)) is None
    assert quiet_until(None, NOW) is None


def test_an_end_equal_to_the_beginning_is_a_whole_day() -> None:
    weekend = QuietHours("UTC", {5, 6}, time(0), time(0))
    assert quiet_until(weekend, datetime(2026, 12, 6, 12, tzinfo=UTC)) == datetime(2026, 12, 7, tzinfo=UTC)
    assert quiet_until(weekend, datetime(2026, 12, 7, 0, tzinfo=UTC)) is None


@given(st.integers(min_value=0, max_value=5 * 366 * 24 * 60))
def test_quiet_hours_always_end_in_the_morning(minutes: int) -> None:
    moment = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    end = quiet_until(NIGHT, moment)
    assert end is None or timedelta(0) < end - moment <= timedelta(hours=10)
    assert end is None or quiet_until(NIGHT, end) is None


@given(st.integers(min_value=1, max_value=10_000), st.text(max_size=40))
def test_a_pause_is_never_longer_than_an_hour_and_always_the_same(attempts: int, seed: str) -> None:
    pause = backoff.delay(attempts, seed=seed)
    assert timedelta(seconds=8) <= pause <= timedelta(hours=1)
    assert pause == backoff.delay(attempts, seed=seed)


@pytest.mark.parametrize(
    "header, date, seconds",
    [
        ("30", "", 30),
        ("0", "", 0),
        (" 7 ", "", 7),
        ("999999", "", 6 * 3600),
        ("99999999999999999999", "", None),
        ("-5", "", None),
        ("soon", "", None),
        ("", "", None),
        ("Mon, 30 Nov 2026 09:00:45 GMT", "", 45),
        ("Mon, 30 Nov 2026 09:00:45 GMT", "Mon, 30 Nov 2026 09:00:40 GMT", 5),
        ("Mon, 30 Nov 2026 08:59:00 GMT", "", None),
        ("Mon, 30 Nov 2099 08:59:00 GMT", "", 6 * 3600),
        ("Mon, 99 Nov 2026 08:59:00 GMT", "", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header: str, date: str, seconds: int | None) -> None:
    found = backoff.asked_delay(header, date=date, now=NOW)
    assert found == (None if seconds is None else timedelta(seconds=seconds))


def test_links_of_a_message_are_buttons_only_with_an_address() -> None:
    found = json.loads(render_webhook.render(Message(title="x", links=(Link("a", "/b", "c"),)), Envelope(
        id="i", key="k", kind="alert", channel="c", created_at=NOW, now=NOW)))  # fmt: skip
    assert found["links"] == [{"text": "a", "url": None}]


@pytest.fixture
def is_from_gangdash(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the check that readers of the documentation copy, at our own moment."""
    text = (project_root / "docs" / "channels.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    names["time"] = SimpleNamespace(time=NOW.timestamp)
    return names["is_from_gangdash"]


@pytest.mark.parametrize(
    "body, key, seconds_ago, is_right",
    [
        (b"body", KEY, 0, True),
        (b"body", KEY, 299, True),
        (b"bodx", KEY, 0, False),
        (b"body", "x" * 40, 0, False),
        (b"body", KEY, 301, False),
        (b"body", KEY, -301, False),
    ],
)
def test_the_documented_check_refuses_what_is_changed_or_old(
    is_from_gangdash: Any, body: bytes, key: str, seconds_ago: int, is_right: bool
) -> None:
    header = render_webhook.signature(b"body", key=KEY, at=NOW - timedelta(seconds=seconds_ago))
    assert is_from_gangdash(body, header, key) is is_right
