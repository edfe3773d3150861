"""Slack messages: their form, Slack's limits with the longest names there are, and nothing that a name could do."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.delivery.messages import Envelope, Fact, Line, Link, Message, Severity, digest_of
from apps.delivery.render_slack import escaped, render
from tests.apps.delivery.conftest import NOW

BASE = "https://gangdash.example"
LONG = "n" * 253
HOSTILE = [
    "<!channel>", "<!here|x>", "<@U123>", "<https://evil.example|click>", "@here", "@channel", "@everyone",
    "`rm -rf`", "*bold*", "\u202egnp.exe", "a\u200bb", "a\u2066b", "&lt;!channel&gt;", "x\x00\x1b[31m", "\ud800",
    "line\nbreak", "|", "\U0001f4a3" * 3, "\u2028",
]  # fmt: skip
SIGNS = (
    "<!",
    "<@",
    "<https://evil",
    "\u202e",
    "\u200b",
    "\u2066",
    "\\u0000",
    "\\u001b",
    "@here",
    "@channel",
    "@everyone",
)


def envelope(**fields: Any) -> Envelope:
    defaults = {"id": "i", "key": "k", "kind": "alert", "channel": "ops", "created_at": NOW, "now": NOW}
    return Envelope(**{**defaults, "base_url": BASE, **fields})


def alert(**fields: Any) -> Message:
    defaults: dict[str, Any] = {
        "label": "No fit",
        "code": "DOMAIN_BUSY",
        "cluster": "fjord-1",
        "title": "2 gangs wait for 92 GPUs",
        "text": "No NVLink domain has enough whole GB200 nodes free; the best, nvl-a1, has 9 of 18.",
        "lines": (
            Line("chat-prod/llama-0", "needs 12 nodes, short by 3", "/gangs/chat-prod/llama-0/?a=1&b=2"),
            Line("mm-lab/dit-3", "needs 11 nodes, short by 2"),
        ),
        "facts": (Fact("Who acts", "Cluster admin"), Fact("Certainty", "Proved")),
        "fixes": ("Owner: relax NVLink domain to block. Evicts nobody.", "Cluster admin: move qwen-32b-agg-2."),
        "links": (Link("Open gang", "/g/", "open"), Link("Mute 1 h", "/alerts/mute?sig=x&for=1h", "mute")),
        "context": "As of 08:39:41 UTC, snapshot 77d0c3e2.",
    }
    return Message(**{**defaults, **fields})


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_an_alert_reads_as_the_design_says() -> None:
    body = render(alert(), envelope())
    head, lines, facts, fixes, actions, context = body["blocks"]
    assert head["text"]["text"].startswith(
        "*No fit* `DOMAIN_BUSY` on fjord-1: *2 gangs wait for 92 GPUs*\nNo NVLink domain has enough"
    )
    assert lines["text"]["text"] == (
        f"<{BASE}/gangs/chat-prod/llama-0/?a=1&amp;b=2|chat-prod/llama-0>  needs 12 nodes, short by 3\n"
        "*mm-lab/dit-3*  needs 11 nodes, short by 2"
    )
    assert [field["text"] for field in facts["fields"]] == ["*Who acts*\nCluster admin", "*Certainty*\nProved"]
    assert fixes["text"]["text"].splitlines()[1].startswith("1. Owner: relax")
    assert [button["url"] for button in actions["elements"]] == [f"{BASE}/g/", f"{BASE}/alerts/mute?sig=x&for=1h"]
    assert context["elements"][0]["text"] == "As of 08:39:41 UTC, snapshot 77d0c3e2."
    assert body["text"].startswith("No fit DOMAIN_BUSY on fjord-1: 2 gangs wait for 92 GPUs No NVLink")
    assert (body["unfurl_links"], body["unfurl_media"]) == (False, False)


def test_an_update_is_one_short_section() -> None:
    message = Message(title="08:56, no change.", text="llama-0 waits 47 min.")
    (block,) = render(message, envelope(kind="update", is_threaded=True, first=alert()))["blocks"]
    assert block["text"]["text"] == "*08:56, no change.* llama-0 waits 47 min."


def test_a_follow_up_without_threads_names_the_first() -> None:
    body = render(Message(title="Resolved."), envelope(kind="resolved", first=alert(), first_at=NOW))
    assert body["blocks"][-1]["elements"][0]["text"] == (
        "Follows the message of 30 Nov 09:00 UTC: No fit DOMAIN_BUSY on fjord-1: 2 gangs wait for 92 GPUs"
    )
    assert "follows: No fit" in body["text"]


def test_a_digest_has_a_line_for_each_alert() -> None:
    messages = [alert(short="nvl-a1 busy, 2 gangs, 92 GPUs"), alert(label="Policy", severity=Severity.PAGE)]
    digest = digest_of(messages, minutes=10)
    header, lines, actions = render(digest, envelope(kind="digest"))["blocks"]
    assert header["text"]["text"] == "fjord-1: 2 new causes in 10 minutes"
    assert "|No fit>  nvl-a1 busy, 2 gangs, 92 GPUs" in lines["text"]["text"]
    assert "|Policy>  2 gangs wait for 92 GPUs" in lines["text"]["text"]
    assert actions["elements"][0]["url"] == f"{BASE}/alerts/"
    assert digest.severity == Severity.PAGE


def test_a_digest_over_clusters_names_them() -> None:
    digest = digest_of([alert(), alert(cluster="east")], minutes=10)
    assert digest.summary == "2 clusters: 2 new causes in 10 minutes."
    assert digest.lines[1].text.startswith("east: ")


def test_without_the_sites_address_there_are_no_dead_links() -> None:
    body = render(alert(), envelope(base_url=""))
    assert not [block for block in body["blocks"] if block["type"] == "actions"]
    assert body["blocks"][1]["text"]["text"].startswith("*chat-prod/llama-0*")


@pytest.mark.parametrize("link", ["javascript:alert(1)", "//evil.example/", "https://a b/", "https://x/|y", "ftp://x/"])
def test_a_link_that_is_none_is_left_out(link: str) -> None:
    body = render(alert(links=(Link("Open", link, "open"),), lines=(Line("a", "b", link),)), envelope())
    assert link not in json.dumps(body)


HUGE = alert(
    label="L" * 300,
    code="C" * 300,
    cluster=LONG,
    title="t" * 5000,
    text="<&>" * 5000,
    lines=tuple(
        Line(f"{LONG}/{LONG}-{at}", "&" * 900, f"/clusters/{LONG}/gangs/{LONG}/{LONG}-{at}/") for at in range(90)
    ),
    facts=tuple(Fact(LONG, "\U0001f4a3" * 3000) for _ in range(40)),
    fixes=tuple("<" * 3000 for _ in range(40)),
    links=tuple(Link(LONG, f"/{'p' * 2500}" if at % 2 else f"/{'p' * 3500}", LONG + str(at)) for at in range(60)),
    context="<" * 9000,
    summary="&" * 9000,
)


@pytest.mark.parametrize("kind", ["alert", "update", "resolved", "digest", "report", "test"])
def test_slacks_limits_hold_whatever_the_message_is(kind: str) -> None:
    first = alert(title="f" * 5000)
    body = render(HUGE, envelope(kind=kind, first=first, may_repeat=True, created_at=NOW - timedelta(days=9)))
    assert 0 < len(body["blocks"]) <= 50
    assert units(body["text"]) <= 4000
    assert sum(units(text) for text in strings(body["blocks"]) if not text.startswith("http")) < 13_000 + 3 * 3000
    for block in body["blocks"]:
        for text in [block["text"]] if "text" in block else []:
            assert 0 < units(text["text"]) <= (150 if block["type"] == "header" else 3000)
        for field in block.get("fields", []):
            assert 0 < units(field["text"]) <= 2000
        assert len(block.get("fields", [])) <= 10
        elements = block.get("elements", [])
        assert len(elements) <= (25 if block["type"] == "actions" else 10)
        for element in elements:
            if element["type"] == "button":
                assert 0 < units(element["text"]["text"]) <= 75
                assert units(element["url"]) <= 3000
                assert units(element["action_id"]) <= 255
            else:
                assert 0 < units(element["text"]) <= 3000
        ids = [element["action_id"] for element in elements if "action_id" in element]
        assert len(ids) == len(set(ids))
    assert not any(text.rstrip("…").endswith(("&am", "&l", "&", "&lt", "&amp")) for text in strings(body))


def test_what_does_not_fit_is_counted() -> None:
    body = render(HUGE, envelope())
    shown = body["blocks"][1]["text"]["text"].splitlines()
    assert shown[-1] == f"and {90 - len(shown) + 1} more"
    fixes = next(block["text"]["text"] for block in body["blocks"] if "1. " in str(block.get("text", "")))
    assert fixes.splitlines()[-1].endswith("more")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_stays_a_name_wherever_it_stands(name: str) -> None:
    message = Message(
        title=name, text=name, label=name, code=name, cluster=name, context=name, summary=name, short=name,
        lines=(Line(name, name, "/x/"),), facts=(Fact(name, name),), fixes=(name,), fixes_title=name,
        links=(Link(name, "/x/", name),),
    )  # fmt: skip
    for body in (
        render(message, envelope(first=message)),
        render(digest_of([message] * 6, minutes=10), envelope(kind="digest")),
    ):
        content = json.dumps(body, ensure_ascii=False).encode().decode()
        assert not [sign for sign in SIGNS if sign in content]
        heads = [block["text"]["text"] for block in body["blocks"] if block["type"] == "section" and "text" in block]
        assert all(text.count("`") in {0, 2} for text in heads)


@given(st.text(max_size=400), st.integers(min_value=2, max_value=300))
def test_escaped_text_has_no_markup_and_keeps_its_limit(text: str, limit: int) -> None:
    result = escaped(text, limit)
    assert units(result) <= limit
    assert not set(result) & set("<>`*~")
    rest = result.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert "&" not in rest
    result.encode()
