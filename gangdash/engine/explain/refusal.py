"""Why does a node refuse a pod, apart from amounts? The scheduler's own checks, each answer as an identifier.

Asks the same rules as the replay, all of them and not only the first. A taint or a missing condition that comes from
a node's state is kept apart from one that an admin set on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangdash.engine.identifiers import NodeReason
from gangdash.engine.model.node import Node
from gangdash.engine.model.selectors import Taint
from gangdash.engine.rules.matching import tolerates
from gangdash.engine.rules.predicates import (
    AFFINITY_MISMATCH,
    PODS_EXCEEDED,
    PORTS_TAKEN,
    UNTOLERATED,
)
from gangdash.engine.session import JobState, NodeState, Session, TaskState

_STATE_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/disrupt")
# Words by which repair tools and autoscalers name the taints they set. A pool's own taint names its purpose instead.
_STATE_WORDS = re.compile(
    r"repair|mainten|drain|unhealthy|quarantin|cordon|upgrad|fault|broken|remediat|out-of-service|evict|not-?ready|"
    r"unreachable|pressure|tobedeleted|deletioncandidate|reboot|degraded|problem|isolat",
    re.IGNORECASE,
)
_AFFINITY_WORDS = ("pod affinity rules", "pod anti-affinity rules", "existing pods anti-affinity")
_VOLUME_WORDS = ("volume", "persistentvolume", "storage")
_CLAIM_WORDS = ("claim", "device", "resourceslice")


def is_state_taint(taint: Taint) -> bool:
    """Whether a taint tells of a node's state and not of its purpose."""
    if taint.key.startswith(_STATE_PREFIXES):
        return True
    return bool(_STATE_WORDS.search(f"{taint.key}={taint.value}"))


def blocking_taints(task: TaskState, node: Node) -> list[Taint]:
    """Return the taints that keep the pod off the node."""
    return [
        taint
        for taint in node.taints
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerates(task.pod.tolerations, taint)
    ]


def refusals(session: Session, job: JobState, task: TaskState, node: NodeState) -> frozenset[NodeReason]:
    """Return every reason, amounts aside, for which the node refuses the pod."""
    texts = [text for check in session.hooks.all_failures for text in check(task, job, node)]
    return frozenset(reason for text in texts for reason in _reasons(text, task, node))


def _reasons(text: str, task: TaskState, node: NodeState) -> Iterator[NodeReason]:
    if text in node.not_ready:
        yield NodeReason.CORDONED if text == "node is unschedulable" else NodeReason.NOT_READY
    elif text == UNTOLERATED:
        for taint in blocking_taints(task, node.node):
            yield NodeReason.STATE_TAINT if is_state_taint(taint) else NodeReason.TAINT
    elif text == PODS_EXCEEDED:
        # Pod slots are an amount like any other; a shared GPU's reservation pod needs one of its own.
        if task.asks_shared_gpu:
            yield NodeReason.POD_SLOTS
    else:
        yield _simple(text)


def _simple(text: str) -> NodeReason:
    if text == AFFINITY_MISMATCH:
        return NodeReason.SELECTOR
    if text == PORTS_TAKEN:
        return NodeReason.PORTS
    lower = text.lower()
    if any(words in lower for words in _AFFINITY_WORDS):
        return NodeReason.POD_AFFINITY
    if "can't run on non" in lower:
        return NodeReason.SELECTOR
    if "gpu memory count" in lower or "mig" in lower or "fractional/shared" in lower:
        return NodeReason.GPU_SHAPE
    if any(word in lower for word in _VOLUME_WORDS) and "resourceclaim" not in lower:
        return NodeReason.VOLUME
    if any(word in lower for word in _CLAIM_WORDS):
        return NodeReason.CLAIM
    return NodeReason.RESOURCE
