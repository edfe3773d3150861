"""Gangs, nodes, the map, queues, clusters and reasons: numbers equal the rows, three kinds of nothing stay apart."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from apps.clusters.models import Cluster
from apps.dashboard import queue_page, topology_page
from apps.dashboard.queue_page import Asked
from apps.inventory.models import Domain, Node, Queue, Topology
from apps.workloads.models import Gang
from gangdash.reasons import REGISTRY
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import BLOCK, RACK, World


def queue(name: str, parent: str = "", **values: float | None) -> Queue:
    return Queue(name=name, parent=parent, **values)


def test_queues_hang_under_their_parents_and_parents_sum_what_waits() -> None:
    table = queue_page.build(
        [queue("dept"), queue("b", "dept"), queue("a", "dept"), queue("lost", "gone")],
        {"a": Asked(2, 16), "b": Asked(1, 4)},
    )
    assert [(row.queue.name, row.depth, row.asked.gpus) for row in table.rows] == [
        ("dept", 0, 20),
        ("b", 1, 4),
        ("a", 1, 16),
        ("lost", 0, 0),
    ]


def test_queues_in_a_circle_are_shown_once_each() -> None:
    table = queue_page.build([queue("a", "b"), queue("b", "a")], {"a": Asked(1, 8)})
    assert [(row.queue.name, row.asked.gpus) for row in table.rows] == [("a", 8), ("b", 8)]


def test_queue_bars_share_one_scale(world: World, as_alice: Client) -> None:
    rows = list(Queue.objects.all())
    table = queue_page.build(rows, {})
    assert table.scale == 103
    batch = next(row for row in table.rows if row.queue.name == "batch-eval")
    assert [(part.css, round(part.start * 1.03), round(part.width * 1.03)) for part in batch.segments] == [
        ("pre", 0, 12),
        ("bor", 12, 12),
    ]
    assert {mark.css: round(mark.start * 1.03) for mark in batch.markers} == {"q": 12, "f": 15, "l": 24}


def test_queues_page_keeps_unset_zero_and_unlimited_apart(world: World, as_alice: Client) -> None:
    Queue.objects.filter(name="pretrain").update(gpu_quota=0)
    text = visible_text(as_alice.get("/queues/").content)
    assert "pretrain borrows 16" in text
    assert "16 0 40 none 44 in 2" in text
    assert "19 — 10 32 2 in 1" in text


def test_a_queue_before_the_first_replay_says_so(world: World, as_alice: Client) -> None:
    Queue.objects.update(cycle=[])
    assert "not replayed yet" in visible_text(as_alice.get("/queues/").content)


def test_the_map_puts_every_node_in_its_narrowest_domain(world: World) -> None:
    topology = Topology.objects.get()
    Node.objects.filter(name="a2-09").update(labels={BLOCK: "block-1"})
    Node.objects.filter(name="a2-08").update(labels={RACK: "rack-a2"})
    found = topology_page.build(topology, list(Domain.objects.all()), list(Node.objects.all()))
    assert [place.domain.name for place in found.places] == ["block-1", "block-2"]
    block = found.places[0]
    assert {place.domain.name: len(place.nodes) for place in block.places} == {"rack-a1": 18, "rack-a2": 7}
    assert [cell.node.name for cell in block.nodes] == ["a2-09"]
    assert [cell.node.name for cell in found.loose] == ["a2-08"]


def test_a_node_has_one_square_per_gpu_and_writes_its_state(world: World) -> None:
    cells = {node.name: topology_page.cell(node) for node in Node.objects.all()}
    assert cells["a1-01"].squares == ("np",) * 4
    assert (cells["a1-14"].css, cells["a1-14"].words, cells["a1-14"].squares) == ("cord", "cordoned", ("lost",) * 4)
    assert (cells["b1-13"].css, cells["b1-13"].words) == ("down", "not ready")
    assert (cells["b1-12"].css, cells["b1-12"].words) == ("", "8 free")


def test_the_map_tells_where_a_picked_gang_would_fit(world: World, as_alice: Client) -> None:
    uid = Gang.objects.get(name="llama-70b-disagg-0").uid
    text = visible_text(as_alice.get(f"/topology/?gang={uid}").content)
    assert "Domains with 48 GPUs, by GPUs alone" in text
    assert "block 1 1 0 rack required 0 2 1" in text
    assert "Picked gang" not in visible_text(as_alice.get("/topology/?gang=nobody").content)


def test_nodes_page_and_export_hold_the_rows(world: World, as_alice: Client) -> None:
    text = visible_text(as_alice.get("/nodes/").content)
    assert "60 of 212 GPUs free on 40 nodes" in text
    assert "12 GPUs lost to node state: cordoned 4, not ready 8, other 0." in text
    rows = list(csv.DictReader(io.StringIO(as_alice.get("/exports/nodes.csv").content.decode())))
    assert len(rows) == 40
    assert sum(float(row["gpus_free"]) for row in rows) == 60


def test_all_gangs_are_listed_in_pages(world: World, as_alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "17 gangs: 10 wait, 1 placed with something to tell" in visible_text(as_alice.get("/gangs/").content)
    monkeypatch.setattr("apps.dashboard.views.inventory.GANGS_PER_PAGE", 10)
    content = as_alice.get("/gangs/?page=2").content
    assert "Page 2 of 2" in visible_text(content)
    assert len([name for name in Page(content).ids if name.startswith("g-")]) == 7
    assert "?page=1" in Page(content).links
    assert len([name for name in Page(as_alice.get("/gangs/?state=tells").content).ids if name.startswith("g-")]) == 1


def test_cluster_page_says_how_each_kind_and_poll_went(world: World, as_alice: Client) -> None:
    Cluster.objects.update(fault="connection refused", fault_code="unreachable", failures=4)
    text = visible_text(as_alice.get("/clusters/fjord-1/").content)
    assert "4 polls in a row read nothing. connection refused unreachable" in text
    assert "Node required read 40" in text
    assert "Some kinds not read 1 s 14" in text
    assert "fjord-1 Live" in visible_text(as_alice.get("/clusters/").content)


@pytest.mark.parametrize("code", ["domain-busy", "DOMAIN_BUSY"])
def test_a_code_has_a_page_under_both_its_names(world: World, as_alice: Client, code: str) -> None:
    text = visible_text(as_alice.get(f"/reasons/{code}/").content)
    assert REGISTRY["DOMAIN_BUSY"].meaning in text  # type: ignore[index]
    assert "llama-70b-disagg-0" in text


def test_every_code_is_in_the_book_and_has_its_page(db: None, as_alice: Client) -> None:
    links = Page(as_alice.get("/reasons/").content).links
    assert {f"/reasons/{reason.slug}/" for reason in REGISTRY.values()} <= set(links)
    for reason in REGISTRY.values():
        assert reason.title in visible_text(as_alice.get(f"/reasons/{reason.slug}/").content)
    assert as_alice.get("/reasons/no-such-code/").status_code == 404


def test_the_palette_finds_pods_queues_nodes_and_pages(world: World, as_alice: Client) -> None:
    def first(words: str) -> dict[str, str]:
        item: dict[str, str] = as_alice.get(f"/palette?q={words}").json()["items"][0]
        return item

    assert first("whisper-large-ft-1-0")["url"].startswith("/clusters/fjord-1/gangs/mm-lab/whisper-large-ft-1/")
    assert first("search-serving")["title"] in {"embed-e5-large-1", "search-serving"}
    assert first("b1-13")["url"] == "/nodes/?cluster=fjord-1#n-b1-13"
    assert first("Topology")["url"] == "/topology/"
    assert as_alice.get("/palette?q=zzzz").json()["items"] == []
