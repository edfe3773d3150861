"""Do answers about a snapshot stay true while nothing but time passes? Then they are kept instead of worked out again.

Relies on the codes of the answers and on facts that rules compare with the clock. Errs on the side of working out
again: a code or a fact that is not known to be free of time turns with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gangdash.documents import ExplanationDocument
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.verdict import ReasonCode, Verdict

_STANDING = frozenset({
    ReasonCode.RUNNING, ReasonCode.COMPLETED, ReasonCode.LIMIT_EXCEEDED, ReasonCode.TOPOLOGY_NOT_KEPT,
})  # fmt: skip
_POLICY = frozenset({
    ReasonCode.QUEUE_LIMIT, ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA, ReasonCode.FAIR_SHARE_REACHED,
    ReasonCode.HOLDERS_PROTECTED,
})  # fmt: skip
_CONFIG = frozenset({
    ReasonCode.QUEUE_MISSING, ReasonCode.QUEUE_NOT_LEAF, ReasonCode.QUEUE_ORPHANED, ReasonCode.SUBGROUP_UNKNOWN,
    ReasonCode.SUBGROUP_TREE_INVALID, ReasonCode.TOPOLOGY_MISSING, ReasonCode.TOPOLOGY_LEVEL_UNKNOWN,
    ReasonCode.PRIORITY_CLASS_MISSING, ReasonCode.NODES_CORDONED, ReasonCode.GREEDY_MISS,
})  # fmt: skip
_MIN_RUNTIME = "minruntime"


def holds(snapshot: ClusterSnapshot, documents: Sequence[ExplanationDocument]) -> bool:
    """Whether answers to the same objects at an earlier moment are those to the snapshot, the moment aside."""
    return not _clock_decides(snapshot) and all(map(_is_timeless, documents))


def restamped(documents: Iterable[ExplanationDocument], *, as_of: str, digest: str) -> list[ExplanationDocument]:
    """Return the answers as answers to a later moment."""
    return [replace(document, as_of=as_of, digest=digest) for document in documents]


def _is_timeless(document: ExplanationDocument) -> bool:
    codes = [document.code, *(other.code for other in document.also)]
    verdicts = [document.verdict, *(other.verdict for other in document.also)]
    named = all(
        verdict is Verdict.NO_FIT or code in _STANDING | _POLICY | _CONFIG
        for code, verdict in zip(codes, verdicts, strict=True)
    )
    waits_for_time = document.waiting.until is not None or any("seconds" in fix.change for fix in document.fixes)
    return named and not waits_for_time


def _clock_decides(snapshot: ClusterSnapshot) -> bool:
    """Whether some rule of the scheduler compares the clock with a fact of the snapshot."""
    return (
        any(pod.meta.deleted is not None for pod in snapshot.pods)
        or bool(snapshot.bind_requests)
        or any(group.preemption_delay for group in snapshot.podgroups)
        or any(queue.preempt_min_runtime or queue.reclaim_min_runtime for queue in snapshot.queues)
        or any(
            plugin.arguments
            for shard in snapshot.shards
            for plugin in shard.config.plugins
            if plugin.name == _MIN_RUNTIME
        )
        or any(shard.config.usage_db for shard in snapshot.shards)
    )
