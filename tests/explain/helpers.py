"""Explain a small cluster and hand back the answer for one gang."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gangdash.documents import ExplanationDocument
from gangdash.documents.compose import explanation_document
from gangdash.engine.explain import explain_in
from gangdash.engine.explain.context import Context
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import Event
from gangdash.engine.whatif import run_all
from gangdash.replay import replay
from gangdash.snapshot.archive import load_bytes, load_snapshot, snapshot_of
from tests.engine.builders import NOW, Cluster


def explain(cluster: Cluster, gang: str = "team/g") -> ExplanationDocument:
    """Return the explanation of one gang, healthy or not."""
    found = replay(cluster.snapshot(), gang=gang).explanation(gang)
    assert found is not None, f"no explanation of {gang}"
    return found


def said(entry: ExplanationDocument) -> tuple[str, str]:
    return str(entry.verdict), str(entry.code)


def event(
    reason: str,
    message: str = "",
    *,
    kind: str = "PodGroup",
    name: str = "g",
    namespace: str = "team",
    age: float = 60,
    count: int = 1,
    source: str = "kai-scheduler",
    annotations: dict[str, str] | None = None,
) -> Event:
    """Return an event that was last seen ``age`` seconds ago."""
    moment = NOW - age
    meta = Meta(f"{name}.{reason}.{age}", namespace, created=moment, annotations=annotations or {})
    return Event(
        meta,
        kind,
        namespace,
        name,
        reason=reason,
        message=message,
        source=source,
        count=count,
        first=moment,
        last=moment,
    )


# Whole clusters

_TESTS = Path(__file__).parent.parent
_NOT_WAITING = frozenset({"HEALTHY", "VIOLATED", "STARTING"})


@cache
def recorded() -> tuple[ClusterSnapshot, ...]:
    """Return the clusters on which the real scheduler was recorded."""
    with gzip.open(_TESTS / "oracle" / "recorded.jsonl.gz", "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    return tuple(snapshot_of(load_bytes(json.dumps(case["snapshot"]).encode(), name=case["name"])) for case in cases)


def scene_files() -> list[Path]:
    return sorted((_TESTS / "scenes").glob("*.json.gz"))


@cache
def scenes() -> tuple[ClusterSnapshot, ...]:
    """Return the clusters that re-create reports."""
    return tuple(load_snapshot(file) for file in scene_files())


def causes(snapshot: ClusterSnapshot) -> list[ExplanationDocument]:
    """Return why each gang of a snapshot stands as it does, without the search for fixes."""
    found = explain_in(Context(snapshot, run_all(snapshot)))
    return [explanation_document(item, snapshot, "") for item in found]


@cache
def recorded_causes() -> tuple[ExplanationDocument, ...]:
    """Return the causes of all gangs of the recorded clusters, worked out once for all tests."""
    return tuple(entry for snapshot in recorded() for entry in causes(snapshot))


@cache
def scene_causes() -> tuple[ExplanationDocument, ...]:
    return tuple(entry for snapshot in scenes() for entry in causes(snapshot))


def waiting(entries: tuple[ExplanationDocument, ...]) -> Iterator[ExplanationDocument]:
    return (entry for entry in entries if entry.verdict not in _NOT_WAITING)
