"""The gang page: every field of the explanation has its place, word for word."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client

from apps.dashboard.stages import ladder
from apps.diagnosis.models import ExplanationRecord
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World, bind, document

ADDRESS = "/clusters/fjord-1/gangs/chat-prod/llama-70b-disagg-0/"


@pytest.fixture
def text(world: World, as_alice: Client) -> str:
    return visible_text(as_alice.get(ADDRESS).content)


def test_the_answer_is_word_for_word(text: str) -> None:
    assert "No fit DOMAIN_BUSY what this means Proved" in text
    assert "Needs 48 GPUs in one rack; the best rack (rack-a1) has 36 free, 1 rack could hold it if empty." in text
    assert "Who acts Cluster admin" in text


def test_waiting_and_what_comes_after(text: str) -> None:
    assert "Will waiting help? No every holder is known to have no end" in text
    assert "After that Policy Queue chat-serving may use 96 GPUs, and the gang behind it asks for 104." in text
    assert "3 reasons so far" in text


def test_binding_comes_first_with_its_margin(text: str) -> None:
    binding = "not met: GPUs in one topology domain rack-a1 domain.gpu 48 GPU 36 \u221212 Topology/gb200 level rack"
    assert binding in text
    assert "met: GPU limit of a queue chat-serving queue.limit.gpu 68 GPU 96 +28 Queue/chat-serving" in text
    assert "1,180 cores 1,296 +116" in text
    assert "5,760 GiB 7,776 +2,016" in text
    assert text.index(binding) < text.index("queue.limit.gpu")


def test_a_constraint_can_be_linked_to(world: World, as_alice: Client) -> None:
    assert "c-domain-gpu" in Page(as_alice.get(ADDRESS).content).ids


def test_members_nodes_holders_and_the_schedulers_words(text: str) -> None:
    assert "Minimum 12 pods: 9 fit, 3 do not." in text
    assert "a1-[09-13,15-18] yes a pod of the gang fits here fits" in text
    assert "a2-[01-02], b1-01 and 19 more no outside the topology domain" in text
    assert "search-prod/embed-e5-large-1 evictable: no: non-preemptible 12 GPUs" in text
    assert "Unable to schedule podgroup: 2 node-group(s) didn't have enough resources: GPUs." in text
    assert "Less specific." in text


def test_fixes_say_all_their_effects_and_who(text: str) -> None:
    first = "1 Ask for one block instead of one rack Starts chat-prod/llama-70b-disagg-0 Moves none Delays none"
    assert first in text
    assert "Sets back none Evicts none Re-run: it starts Owner" in text
    assert "Not re-run: a replay cannot show restart component Platform" in text
    assert "6 more changes were re-run and did not start it; they are not shown." in text


def test_how_sure_and_how_to_check(text: str) -> None:
    assert "Not read nothing that matters to it Not modelled none for this gang" in text
    assert "Snapshot of that moment" in text
    assert ".json.gz --gang chat-prod/llama-70b-disagg-0" in text


def test_domain_chart_holds_the_rows_against_the_need(world: World, as_alice: Client) -> None:
    content = as_alice.get(ADDRESS).content.decode()
    part = content[content.index('id="figure-domains"') :]
    figure = json.loads(part[part.index(">") + 1 : part.index("</script>")])
    free = next(trace for trace in figure["data"] if trace["name"] == "Free")
    assert free["y"] == ["block-1/rack-a1", "block-1/rack-a2", "block-2/rack-b1"]
    assert free["x"] == [36, 16, 8]
    assert "48 needed" in part


def test_timeline_is_newest_first_with_durations(text: str) -> None:
    assert text.index("DOMAIN_BUSY Needs 48") < text.index("QUEUE_LIMIT Queue chat-serving may use 64")
    assert "13 min" in text


def test_pips_are_drawn_only_where_they_can_be_counted(world: World, as_alice: Client) -> None:
    content = as_alice.get("/clusters/fjord-1/gangs/pretrain-lab/qwen3-235b-sft-7/").content
    assert "9 of 10 nodes, short by 1" in visible_text(content)
    assert content.decode().count('class="have"') == 9
    assert 'class="have"' not in as_alice.get(ADDRESS).content.decode()


def test_unset_unread_and_zero_look_different(world: World, as_alice: Client) -> None:
    gang = world.gang("mm-lab/odd", "sandbox", (1, 1), timedelta(minutes=5))
    world.says(
        gang,
        "POLICY",
        "QUEUE_LIMIT",
        "Odd.",
        binding=[bind("queue.limit.gpu", "q", (8, None, "gpu"), "Queue/q")],
        slack=[
            bind("queue.quota.gpu", "q", (8, -1, "gpu"), "Queue/q"),
            bind("gang.min_member", "g", (0, 0, "pods"), "PodGroup/g"),
        ],
    )
    text = visible_text(as_alice.get("/clusters/fjord-1/gangs/mm-lab/odd/").content)
    assert "queue.limit.gpu 8 GPU not read —" in text
    assert "queue.quota.gpu 8 GPU none" in text
    assert "gang.min_member 0 pods 0 0" in text


def test_fragment_answers_304_until_the_gang_changes(world: World, as_alice: Client) -> None:
    first = as_alice.get(f"{ADDRESS}fragment")
    assert first.status_code == 200
    assert as_alice.get(f"{ADDRESS}fragment", headers={"If-None-Match": first["ETag"]}).status_code == 304
    Gang.objects.filter(name="llama-70b-disagg-0").update(fingerprint="other")
    assert as_alice.get(f"{ADDRESS}fragment", headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_explanation_is_the_stored_document(world: World, as_alice: Client) -> None:
    stored = ExplanationRecord.objects.get(gang__name="llama-70b-disagg-0").document
    assert as_alice.get(f"{ADDRESS}explanation.json").content.decode() == stored


def test_a_name_used_again_leads_to_the_gang_of_the_uid(world: World, as_alice: Client) -> None:
    gang = Gang.objects.get(name="llama-70b-disagg-0")
    gang.gone_at = world.now
    gang.save()
    again = world.gang("chat-prod/llama-70b-disagg-0x", "chat-serving", (1, 1), timedelta(minutes=1))
    Gang.objects.filter(pk=again.pk).update(name="llama-70b-disagg-0", uid="second")
    assert "not analysed yet" in visible_text(as_alice.get(ADDRESS).content)
    assert "gone since" in visible_text(as_alice.get(f"{ADDRESS}?uid={gang.uid}").content)


def test_a_gang_before_its_first_analysis_has_a_page(world: World, as_alice: Client) -> None:
    world.gang("mm-lab/fresh", "sandbox", (2, 1), timedelta(seconds=3))
    text = visible_text(as_alice.get("/clusters/fjord-1/gangs/mm-lab/fresh/").content)
    assert "Not diagnosed yet" in text
    assert "Read, and not analysed yet" in text


@pytest.mark.parametrize(
    "verdict, stage, stuck",
    [
        ("NO_FIT", "S18", "Pods"),
        ("GATED", "S9", "PodGang"),
        ("GATED", None, "PodGroup"),
        ("STUCK", "S20", "Bind"),
        ("STARTING", "S21", "Ready"),
        ("CONFIG", "S3", "DynamoGraphDeployment"),
        ("POLICY", "S99", "Pods"),
    ],
)
def test_exactly_one_step_is_where_it_stands(world: World, verdict: str, stage: str | None, stuck: str) -> None:
    gang = Gang.objects.get(name="llama-70b-disagg-0")
    steps = ladder(document(gang, verdict, "X", "", stage=stage))
    assert [step.title for step in steps if step.state == "stuck"] == [stuck]
    at = [step.title for step in steps].index(stuck)
    assert all(step.state == "done" for step in steps[:at])
    assert all(step.state == "todo" for step in steps[at + 1 :])


def test_a_bare_podgroup_has_no_steps_it_never_took(world: World) -> None:
    gang = Gang.objects.get(name="whisper-large-ft-1")
    assert [step.title for step in ladder(document(gang, "HEALTHY", "RUNNING", ""))] == [
        "PodGroup",
        "Pods",
        "Bind",
        "Ready",
    ]
