"""From a verdict to what arrives: alerts through the real outbox to a real server, hostile names included."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from apps.alerts.models import AlertRule, Route
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel, Delivery
from apps.delivery.sending import send_due
from apps.workloads.models import Gang
from tests.apps.alerts.conftest import Store
from tests.apps.delivery.conftest import MakeChannel, _message_settings, make_channel, side
from tests.apps.delivery.far_side import FarSide

__all__ = ["_message_settings", "make_channel", "side"]
pytestmark = pytest.mark.django_db
EVIL = "<!channel> @here `x` \u202egnp & <https://evil.example|click>"


@pytest.fixture
def led(make_channel: MakeChannel, only: Callable[..., AlertRule]) -> Callable[[ChannelKind], Channel]:
    """Return what makes a channel that alerts about gangs that never fit lead to."""
    only("never_fits", keep_seconds=0)

    def lead(kind: ChannelKind) -> Channel:
        channel = make_channel(kind)
        Route.objects.create(name="all", channel=channel)
        return channel

    return lead


def test_a_cause_its_update_and_its_end_arrive_in_order(store: Store, led: Any, side: FarSide) -> None:
    led(ChannelKind.WEBHOOK)
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(1)
    send_due(now=store.now)
    store.minute = 20
    for n in range(2):
        store.says(store.gang(f"b{n}"), "NODE_TOO_SMALL")
    store.look()
    send_due(now=store.now)
    store.minute = 25
    for row in Gang.objects.all():
        store.says(row, "RUNNING")
    store.look(30)
    send_due(now=store.now)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"sent"}
    contents = [request.content for request in side.requests]
    assert len(contents) == 3
    assert "a is NODE_TOO_SMALL." in json.dumps(contents[0])
    assert "1 gang before, 3 now." in json.dumps(contents[1])
    assert "Resolved after 29 min." in json.dumps(contents[2])


def test_slack_gets_hostile_names_as_harmless_text_within_its_limits(store: Store, led: Any, side: FarSide) -> None:
    led(ChannelKind.SLACK_WEBHOOK)
    for n in range(60):
        gang = store.gang(f"n{n}", queue=EVIL)
        Gang.objects.filter(pk=gang.pk).update(namespace="n" * 253, name=f"{EVIL}{n}"[:253])
        gang.refresh_from_db()
        store.says(gang, "NODE_TOO_SMALL", subject=EVIL * 9, sentence=EVIL * 3,
                   scheduler={"text": EVIL * 200, "at": None, "match": "disagree"})  # fmt: skip
    store.look(1)
    send_due(now=store.now)
    (request,) = side.requests
    text = request.body.decode()
    for harm in ("<!channel>", "<https://evil.example|", "\u202e"):
        assert harm not in text
    blocks = request.content["blocks"]
    assert len(blocks) <= 50
    for block in blocks:
        assert len(block.get("text", {}).get("text", "")) <= 3000
        assert all(len(field["text"]) <= 2000 for field in block.get("fields", []))
        assert all(len(button["url"]) <= 3000 for button in block.get("elements", []) if "url" in button)


def test_six_causes_at_once_become_one_message(store: Store, led: Any, side: FarSide) -> None:
    led(ChannelKind.SLACK_WEBHOOK)
    for n in range(6):
        store.says(store.gang(f"g{n}"), "NODE_TOO_SMALL", subject=f"Node/n{n}")
    store.look(1)
    for minute in (1, 2, 3):
        store.minute = minute
        send_due(now=store.now)
    bodies = [request.body.decode() for request in side.requests]
    assert sum("new causes in" in body for body in bodies) == 1
    for n in range(6):
        assert sum(f"n{n}" in body for body in bodies) == 1
