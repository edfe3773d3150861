"""Explain a small cluster and hand back the answer for one gang."""

from __future__ import annotations

from gangdash.documents import ExplanationDocument
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import Event
from gangdash.replay import replay
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
