"""The first page: numbers in the headline, causes in groups, filters in the address, parts that refresh."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from apps.clusters.models import Cluster
from apps.workloads.models import Gang
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World


def rows_of(content: bytes) -> list[str]:
    return [name for name in Page(content).ids if name.startswith("g-")]


def figure_of(content: bytes) -> dict[str, Any]:
    """Return the figure that the page carries for its script."""
    text = content.decode()
    text = text[text.index('id="figure-waiting"') :]
    figure: dict[str, Any] = json.loads(text[text.index(">") + 1 : text.index("</script>")])
    return figure


def test_headline_has_the_numbers(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/").content)
    assert "10 of 17 gangs wait for 174 GPUs, while 60 of 212 are free" in text
    assert "140 allocated 60 free 12 lost cordoned 4, not ready 8" in text


def test_gangs_of_one_cause_are_one_group_with_their_sum(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/").content)
    assert "Queue limit reached: Queue/batch-eval QUEUE_LIMIT 3 gangs, 32 GPUs Queue admin" in text


def test_a_single_gang_is_told_in_the_engines_sentence(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/").content)
    assert "Needs 48 GPUs in one rack; the best rack (rack-a1) has 36 free, 1 rack could hold it if empty." in text
    assert "\u221212 36 of 48 GPU" in text


def test_largest_waits_come_first(world: World, as_alice: Client) -> None:
    keys = [line for line in as_alice.get("/").content.decode().split("\n") if "data-key=" in line]
    assert "QUEUE_LIMIT" in keys[0]
    assert "QUEUE_MISSING" in keys[1]
    by_time = as_alice.get("/?sort=waits&group=none").content
    names = [Gang.objects.get(pk=name[2:]).name for name in rows_of(by_time)]
    assert names[0] == "whisper-large-ft-1"
    assert names[-1] == "olmo-7b-ablate-19"


def test_tiles_say_who_acts_and_filter_by_them(world: World, as_alice: Client) -> None:
    content = as_alice.get("/").content
    assert "Queue admin 32 GPUs 3 gangs batch-eval" in visible_text(content)
    assert "?who=queue_admin" in Page(content).links
    picked = as_alice.get("/?who=queue_admin").content
    assert len(rows_of(picked)) == 3
    assert "Cluster admin 88 GPUs 2 gangs" in visible_text(picked)


@pytest.mark.parametrize(
    "query, names",
    [
        ("cluster=fjord-1&namespace=mm-lab", {"whisper-large-ft-1"}),
        ("queue=batch-eval&q=bench", {"swe-bench-qwen-9"}),
        ("verdict=STUCK&verdict=GATED", {"ppo-llama-8b-22", "llama-70b-disagg-0-decode-1"}),
        ("code=NOT_READ", {"dra-mps-probe-2"}),
        ("q=whisper", {"whisper-large-ft-1"}),
        ("verdict=NONSENSE&sort=nonsense&hours=999&who=me&q=whisper", {"whisper-large-ft-1"}),
    ],
)
def test_the_address_is_the_view(world: World, as_alice: Client, query: str, names: set[str]) -> None:
    content = as_alice.get(f"/?{query}").content
    assert {Gang.objects.get(pk=name[2:]).name for name in rows_of(content)} == names


def test_a_filter_can_be_dropped_by_its_chip(world: World, as_alice: Client) -> None:
    content = as_alice.get("/?queue=batch-eval&verdict=POLICY").content
    links = Page(content).links
    assert "?queue=batch-eval" in links
    assert "?verdict=POLICY" in links


def test_export_carries_filters_moment_and_safe_cells(world: World, as_alice: Client) -> None:
    gang = Gang.objects.get(name="whisper-large-ft-1")
    gang.queue = "=cmd|' /C calc'!A0"
    gang.save()
    answer = as_alice.get("/exports/waiting-gangs.csv?namespace=mm-lab")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["name"] for row in rows] == ["whisper-large-ft-1"]
    assert rows[0]["queue"] == "'=cmd|' /C calc'!A0"
    assert rows[0]["view"] == "namespace=mm-lab"
    assert rows[0]["read_as_of"].endswith("Z")
    assert "attachment" in answer["Content-Disposition"]
    body = json.loads(as_alice.get("/exports/waiting-gangs.json?namespace=mm-lab").content)
    assert body["rows"][0]["queue"] == "=cmd|' /C calc'!A0"
    assert body["rows"][0]["gpus_waiting"] == 8.0


def test_the_list_as_a_command_asks_rest_for_the_same(world: World, as_alice: Client) -> None:
    content = as_alice.get("/?queue=batch-eval&q=bench").content.decode()
    assert "/api/v1/gangs?queue=batch-eval&amp;state=waits&amp;text=bench" in content


FRAGMENTS = ("freshness", "triage-summary", "triage-list", "waiting-chart", "changes")


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_answer_304_until_something_changes(world: World, as_alice: Client, name: str) -> None:
    first = as_alice.get(f"/fragments/{name}")
    assert first.status_code == 200
    assert "<html" not in first.content.decode()
    again = as_alice.get(f"/fragments/{name}", headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert not again.content
    Cluster.objects.update(read_as_of=world.now + timedelta(seconds=9), failures=1)
    Gang.objects.filter(name="whisper-large-ft-1").update(gpus_waiting=7)
    changed = as_alice.get(f"/fragments/{name}", headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200


def test_fragments_keep_their_filters(world: World, as_alice: Client) -> None:
    page = as_alice.get("/?queue=batch-eval").content.decode()
    assert 'hx-get="/fragments/triage-list?queue=batch-eval"' in page
    assert len(rows_of(as_alice.get("/?queue=batch-eval").content)) == 3
    assert as_alice.get("/fragments/triage-list?queue=batch-eval").content.decode().count('class="gr"') == 3


def test_the_page_tells_the_tag_that_its_fragment_would(world: World, as_alice: Client) -> None:
    page = as_alice.get("/").content.decode()
    tag = as_alice.get("/fragments/triage-list")["ETag"].replace('"', "&quot;")
    assert f'data-etag="{tag}"' in page


def test_chart_and_its_table_say_the_same(world: World, as_alice: Client) -> None:
    content = as_alice.get("/").content
    total = next(trace for trace in figure_of(content)["data"] if trace["name"] == "All waiting GPUs")
    assert total["y"][-1] == 174
    assert "Now 174: Will start 4" in content.decode()


def test_the_chart_begins_with_the_first_reading(world: World, as_alice: Client) -> None:
    Cluster.objects.update(added_at=world.now - timedelta(hours=2))
    first = figure_of(as_alice.get("/").content)["data"][0]["x"][0]
    assert first.startswith(f"{world.now - timedelta(hours=2):%Y-%m-%dT%H:%M}")
    assert "not read" not in json.dumps(figure_of(as_alice.get("/").content))
    Cluster.objects.update(added_at=world.now - timedelta(minutes=2))
    assert "not read" in json.dumps(figure_of(as_alice.get("/").content))


def test_changes_say_what_it_was_before(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/").content)
    assert "llama-70b-disagg-0 Policy \u2192 No fit, DOMAIN_BUSY" in text


def test_a_long_list_is_cut_and_says_so(world: World, as_alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.dashboard.triage.ROWS_MAX", 4)
    content = as_alice.get("/").content
    assert len(rows_of(content)) == 4
    assert "6 more not drawn" in visible_text(content)
