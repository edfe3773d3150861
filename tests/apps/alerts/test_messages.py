"""What a message says, word for word, and that hostile names go through as they are and break no limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import CharField

from apps.alerts.models import Alert, AlertRule
from apps.clusters.models import KindFreshness
from apps.delivery.messages import Fact, Message, decode
from apps.delivery.models import Channel, Delivery
from apps.workloads.models import Gang
from tests.apps.alerts.conftest import Store

pytestmark = pytest.mark.django_db
Only = Callable[..., AlertRule]
EVIL = "<!channel> *bold* `code` \u202e<script>alert(1)</script> & @here"


def fix(sentence: str, who: str, *, verified: bool = True, **effects: list[str]) -> dict[str, Any]:
    empty: dict[str, Any] = {name: [] for name in ("starts", "moves", "delays", "sets_back", "evicts")}
    return {
        "change": {"kind": "x"},
        "sentence": sentence,
        "verified": verified,
        "who": who,
        "cost": 1,
        **empty,
        **effects,
    }


def message_of(channel: Channel) -> Message:
    return decode(Delivery.objects.filter(channel=channel).order_by("pk")[0].message)


def test_the_first_message_says_what_page_and_rest_say(store: Store, only: Only, channel: Channel) -> None:
    only("fragmentation", for_seconds=0)
    store.cluster.capacity_samples.create(at=store.now - timedelta(hours=1), domains={"": [72, 52, 0]})
    sentence = "Needs 48 GPUs in one rack; the best, nvl-a1, has 36 free."
    first, second = store.gang("chat-prod/llama", gpus=48), store.gang("mm-lab/dit", gpus=44)
    need = {"id": "domain.gpu", "scope": "nvl-a1", "need": 48, "have": 36, "unit": "gpu", "source": "Topology/t"}
    store.says(
        first, "DOMAIN_BUSY", subject="Topology/t", sentence=sentence, binding=[need],
        waiting={"helps": "no", "until": None, "on": ["8 held nodes run serving gangs"]},
        scheduler={"text": "GPUs short in 2 node-groups", "at": None, "match": "less_specific"},
        fixes=[
            fix("Relax NVLink domain to block.", "owner", starts=["chat-prod/llama"]),
            fix("Move qwen to nvl-a2", "cluster_admin", starts=["mm-lab/dit"], moves=["search/qwen"]),
            fix("Restart the scheduler", "platform", verified=False),
        ],
    )  # fmt: skip
    store.minute = 25
    store.says(second, "DOMAIN_BUSY", subject="Topology/t")
    store.minute = 30
    store.look()
    message = message_of(channel)
    assert (message.label, message.code, message.cluster) == ("No fit", "DOMAIN_BUSY", "east")
    assert message.title == "2 gangs wait for 92 GPUs"
    assert message.text == (f"{sentence} 52 GPUs are free and chat-prod/llama asks for 48, but no one place has them.")
    assert [(line.name, line.text) for line in message.lines] == [
        ("chat-prod/llama", "needs 48 GPUs, short by 12, waits 25 min"),
        ("mm-lab/dit", "needs 44 GPUs, short by 41, waits 0 s"),
    ]
    assert message.lines[0].url == (
        "/clusters/east/gangs/chat-prod/llama/?uid=uid-east-chat-prod%2Fllama&at=2026-11-30T12%3A25%3A00Z"
    )
    assert message.facts == (
        Fact("Who acts", "Cluster admin"),
        Fact("Will waiting help?", "No: 8 held nodes run serving gangs"),
        Fact("The scheduler says", "Less specific: GPUs short in 2 node-groups"),
        Fact("Certainty", "Proved"),
    )
    assert message.fixes == (
        "Owner: Relax NVLink domain to block. Starts 1 gang.",
        "Cluster admin: Move qwen to nvl-a2. Starts 1 gang, moves 1 gang.",
    )
    assert [(link.text, link.key) for link in message.links] == [
        ("Open gang", "open_gang"), ("Show on map", "open_map"), ("Mute 1 h", "mute"),
    ]  # fmt: skip
    alert = Alert.objects.get()
    assert message.links[2].url == f"/alerts/mute?alert={alert.pk}&hours=1"
    assert message.context == "As of 12:25:00 UTC, snapshot 77d0c3e2, engine 1.0.0. Rule: Fragmentation."
    assert message.summary.startswith("No fit on east: 2 gangs wait for 92 GPUs. Needs 48 GPUs in one rack;")
    assert message.summary.endswith(" Cluster admin acts.")
    assert message.short == "DOMAIN_BUSY Topology/t, 2 gangs, 92 GPUs, cluster admin"
    assert message.severity == "ticket"
    assert message.document is not None
    assert message.document["sentence"] == sentence


def test_an_alert_without_gangs_links_to_itself(store: Store, channel: Channel) -> None:
    KindFreshness.objects.create(
        cluster=store.cluster, kind="Pod", is_required=True, reason="403", checked_at=store.now
    )
    store.look(1)
    message = message_of(channel)
    assert (message.title, message.label) == ("Pod of east cannot be read", "No verdict")
    assert message.text.startswith("Pod is not read: 403. Rules 1 to 10")
    assert [link.text for link in message.links] == ["Open alert", "Mute 1 h"]
    assert message.document is None
    assert message.context == "As of 12:01:00 UTC. Rule: Blind."


def test_a_cause_with_many_gangs_names_the_first_and_counts_the_rest(
    store: Store, only: Only, channel: Channel
) -> None:
    only("never_fits")
    for n in range(30):
        store.says(store.gang(f"g{n:02d}"), "NODE_TOO_SMALL")
    store.look(1)
    names = [line.name for line in message_of(channel).lines]
    assert names == [*(f"team-a/g{n:02d}" for n in range(8)), "and 22 more gangs"]


def test_hostile_names_go_through_as_they_are_for_the_renderers_to_escape(
    store: Store, only: Only, channel: Channel
) -> None:
    only("never_fits")
    gang = store.gang("a", queue=EVIL)
    Gang.objects.filter(pk=gang.pk).update(namespace="n" * 253, name="<!channel>" + "x" * 243)
    gang.refresh_from_db()
    store.says(gang, "NODE_TOO_SMALL", subject=EVIL * 5, sentence=f"Held by {EVIL}.",
               scheduler={"text": EVIL, "at": None, "match": "disagree"})  # fmt: skip
    store.look(1)
    message = message_of(channel)
    assert message.text.startswith(f"Held by {EVIL}.")
    assert message.lines[0].name == f"{gang.namespace}/{gang.name}"
    assert all(character not in message.lines[0].url for character in "<> ")
    assert Alert.objects.get().signature == f"NO_FIT|NODE_TOO_SMALL|{EVIL * 5}"


def test_a_message_of_the_longest_names_is_within_what_rows_can_hold(store: Store, channel: Channel) -> None:
    gang = store.gang("n" * 253 + "/" + "g" * 253, queue="q" * 253)
    store.says(gang, "BIND_LOOP", subject="Kind/" + "s" * 507, sentence="x" * 255)
    store.look(1)
    store.minute = 2
    store.gone(gang)
    store.look(60)
    store.look(120)
    for row in (*store.alerts(), *Delivery.objects.all()):
        for field in row._meta.get_fields():
            if isinstance(field, CharField) and field.max_length:
                assert len(getattr(row, field.attname)) <= field.max_length, field.name
    assert {alert.rule.key for alert in store.alerts()} == {"stuck_stage", "flapping"}
    assert Delivery.objects.count() == 4


@pytest.mark.parametrize("missing", ["who", "certainty"])
def test_words_come_from_closed_sets_and_an_empty_one_is_no_fault(
    store: Store, only: Only, channel: Channel, missing: str
) -> None:
    only("never_fits")
    store.says(store.gang("a"), "NODE_TOO_SMALL", **{missing: ""})
    store.look(1)
    assert message_of(channel).title == "1 gang waits for 8 GPUs"
