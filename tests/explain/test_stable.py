"""The same cluster, told in another order, under other names or with bystanders, gets the same answers."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gangdash.documents import ExplanationDocument
from gangdash.documents.model import BindingEntry
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.explain.helpers import causes, scenes

RECORDED = Path(__file__).parent.parent / "oracle" / "recorded.jsonl.gz"
EVERY = 3
"""Of the recorded clusters, so that the whole module takes seconds."""
POOL = "kai.scheduler/node-pool"

Dump = dict[str, Any]
Answer = tuple[object, ...]


@cache
def texts() -> tuple[str, ...]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return tuple(json.dumps(case["snapshot"]) for case in cases[::EVERY])


def load(dump: Dump | str) -> ClusterSnapshot:
    text = dump if isinstance(dump, str) else json.dumps(dump)
    return snapshot_of(load_bytes(text.encode(), name="case"))


@cache
def answers_before() -> tuple[dict[str, ExplanationDocument], ...]:
    return tuple({entry.gang.key: entry for entry in causes(load(text))} for text in texts())


def whole(entry: ExplanationDocument) -> Answer:
    """Return everything that a document says of its gang, the digest aside."""
    return tuple(getattr(entry, name) for name in entry.__struct_fields__ if name != "digest")


def numbers(entry: ExplanationDocument) -> Answer:
    """Return what a document says apart from names."""

    def amounts(items: list[BindingEntry]) -> list[Answer]:
        return sorted(
            (str(item.id), *(() if isinstance(item.need, str) else (item.need, item.have or 0))) for item in items
        )

    return (
        entry.verdict,
        entry.code,
        entry.who,
        entry.certainty,
        entry.stage,
        amounts(entry.binding),
        amounts(entry.slack),
        entry.members,
        [(group.reason, group.count) for group in entry.nodes],
        sorted(holder.gpus for holder in entry.holders),
        [(other.verdict, other.code) for other in entry.also],
    )


def compare(change: Callable[[Dump, random.Random], None], told: Callable[[ExplanationDocument], Answer]) -> None:
    """Hold the answers of each recorded cluster against those of the changed one, gangs in the order of their names."""
    for index, (text, before) in enumerate(zip(texts(), answers_before(), strict=True)):
        dump = json.loads(text)
        change(dump, random.Random(index))
        after = {entry.gang.key: entry for entry in causes(load(dump))}
        bystanders = {key for key in after if "bystander" in key}
        keys = sorted(set(after) - bystanders)
        assert len(keys) == len(before)
        for old, new in zip(sorted(before), keys, strict=True):
            assert told(after[new]) == told(before[old]), (index, old)


# Order


def shuffle(dump: Dump, draw: random.Random) -> None:
    for objects in dump["rawObjects"].values():
        if isinstance(objects, list):
            draw.shuffle(objects)


def test_order_of_objects_does_not_matter() -> None:
    compare(shuffle, whole)


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_the_objects_of_scenes_does_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    for snapshot in scenes():
        lists = {
            item.name: tuple(draw.sample(value, len(value)))
            for item in fields(snapshot)
            if isinstance(value := getattr(snapshot, item.name), tuple) and item.name != "shards"
        }
        shuffled = replace(snapshot, **lists)  # type: ignore[arg-type]
        assert [whole(entry) for entry in causes(shuffled)] == [whole(entry) for entry in causes(snapshot)]


# Names


def rename(dump: Dump, _: random.Random) -> None:
    """Give every object another name; their order stays, as the scheduler decides by names where all else is equal."""
    objects = [item for items in dump["rawObjects"].values() if isinstance(items, list) for item in items]
    names = {item["metadata"]["name"] for item in objects} | {item["metadata"].get("namespace", "") for item in objects}
    names -= {"", "default"}
    for key, items in dump["rawObjects"].items():
        dump["rawObjects"][key] = renamed(items, names)


def renamed(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: renamed(child, names) for key, child in value.items()}
    if isinstance(value, list):
        return [renamed(child, names) for child in value]
    return f"zz-{value}" if isinstance(value, str) and value in names else value


def test_names_do_not_matter() -> None:
    compare(rename, numbers)


# Bystanders


def other_pool(dump: Dump, _: random.Random) -> None:
    """Add a node, a queue and a gang of a node pool that this scheduler does not serve."""
    raw = dump["rawObjects"]
    for key in ("nodes", "podGroups", "pods"):
        raw[key] = raw.get(key) or []
    node = json.loads(json.dumps(raw["nodes"][0]))
    node["metadata"] |= {"name": "bystander", "uid": "bystander-node"}
    node["metadata"]["labels"] = {**node["metadata"].get("labels", {}), POOL: "elsewhere"}
    raw["nodes"].append(node)
    raw["podGroups"].append({
        "metadata": {"name": "bystander", "namespace": "aside", "uid": "bystander", "labels": {POOL: "elsewhere"}},
        "spec": {"queue": "nowhere", "minMember": 1},
    })  # fmt: skip
    raw["pods"].append(pod("bystander", "Pending"))


def finished(dump: Dump, _: random.Random) -> None:
    """Add a gang of the first gang's queue that has run to its end."""
    raw = dump["rawObjects"]
    queue = (raw.get("podGroups") or [{"spec": {"queue": "q"}}])[0]["spec"].get("queue", "q")
    raw["podGroups"] = [
        *(raw.get("podGroups") or []),
        {
            "metadata": {"name": "bystander", "namespace": "aside", "uid": "bystander"},
            "spec": {"queue": queue, "minMember": 1},
        },
    ]
    raw["pods"] = [*(raw.get("pods") or []), pod("bystander", "Succeeded")]


def pod(gang: str, phase: str) -> Dump:
    return {
        "metadata": {
            "name": f"{gang}-0",
            "namespace": "aside",
            "uid": f"{gang}-0",
            "annotations": {"pod-group-name": gang},
        },
        "spec": {
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {"phase": phase},
    }


def heart(entry: ExplanationDocument) -> Answer:
    """Return what must not change where nodes of other pools may be counted beside the answer."""
    return (entry.verdict, entry.code, entry.certainty, entry.sentence, entry.binding, entry.slack, entry.members)


def test_another_node_pool_does_not_matter() -> None:
    compare(other_pool, heart)


def test_a_finished_gang_does_not_matter() -> None:
    compare(finished, heart)
