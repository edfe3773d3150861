"""Are queues and shards set up as NVCF and KAI expect? V8, V9, V11, C17."""

from __future__ import annotations

from collections.abc import Iterator

from apps.checks.rules.base import (
    FUNCTION_NAMESPACE,
    Check,
    Outcome,
    Severity,
    View,
    absent,
    counted,
    failed,
    passed,
    some,
    unknown,
    verdict,
)
from gangdash.engine.model.config import Shard
from gangdash.engine.model.queue import Queue

PARENT, LEAF = "default-parent-queue", "default-queue"


def default_queues(view: View) -> Outcome:
    """V8: the two default queues exist, one above the other."""
    gap = view.gap("Queue")
    if gap:
        return unknown(gap)
    problems = list(_default_problems(view))
    if not view.is_nvcf and LEAF not in view.queues:
        return absent(f"No {LEAF}, and NVCF is not installed; pods without a queue label would wait")
    return verdict(problems, f"{LEAF} under {PARENT}", [f"Queue/{LEAF}", f"Queue/{PARENT}"])


def _default_problems(view: View) -> Iterator[str]:
    leaf, parent = view.queues.get(LEAF), view.queues.get(PARENT)
    yield from (f"Queue {name} does not exist" for name, q in ((PARENT, parent), (LEAF, leaf)) if q is None)
    if parent is not None and parent.parent:
        yield f"Queue {PARENT} has the parent {parent.parent}"
    if leaf is not None and leaf.parent != PARENT:
        yield f"Queue {LEAF} has {f'the parent {leaf.parent}' if leaf.parent else 'no parent'}"


def default_amounts(view: View) -> Outcome:
    """V9: the default queues are unlimited. An absent limit counts as 0, so it is told too."""
    gap = view.gap("Queue")
    if gap:
        return unknown(gap)
    if not view.is_nvcf:
        return view.no_nvcf
    found = [view.queues[name] for name in (PARENT, LEAF) if name in view.queues]
    if not found:
        return failed(f"Neither {PARENT} nor {LEAF} exists")
    problems = [text for queue in found for text in _amount_problems(queue)]
    return verdict(problems, f"quota and limit -1, weight 1 in {counted(len(found), 'queue')}")


def _amount_problems(queue: Queue) -> Iterator[str]:
    for name, amount in (("cpu", queue.cpu), ("gpu", queue.gpu), ("memory", queue.memory)):
        if amount is None:
            yield f"Queue {queue.name} does not name {name}"
            continue
        for what, found, wanted in (
            ("quota", amount.quota, -1.0),
            ("limit", amount.limit, -1.0),
            ("overQuotaWeight", amount.over_quota_weight, 1.0),
        ):
            if found != wanted:
                yield f"Queue {queue.name}: {name} {what} is {'not set' if found is None else f'{found:g}'}"


def placement(view: View) -> Outcome:
    """V11: GPUs are packed, CPUs spread, preemption and consolidation off, as the stack sets it."""
    if not view.is_nvcf:
        return view.no_nvcf
    if view.gap("SchedulingShard", "Config"):
        return unknown(view.gap("SchedulingShard", "Config"))
    problems = [text for shard in view.snapshot.shards for text in _placement_problems(shard)]
    return verdict(problems, "gpu binpack, cpu spread, no preempt, no consolidation")


def _placement_problems(shard: Shard) -> Iterator[str]:
    plugin = shard.config.plugin("nodeplacement")
    arguments = plugin.arguments if plugin is not None else {}
    for name, wanted in (("gpu", "binpack"), ("cpu", "spread")):
        found = arguments.get(name, "")
        if found != wanted:
            yield f"shard {shard.name}: {name} placement is {found or 'not set'}, not {wanted}"
    for action in ("preempt", "consolidation"):
        if action in shard.config.actions:
            yield f"shard {shard.name}: {action} is on"


def named_queues(view: View) -> Outcome:
    """C17: each PodGroup names a queue that exists and is a leaf; one of NVCF names the default queue."""
    gap = view.gap("Queue", "PodGroup")
    if gap:
        return unknown(gap)
    groups = view.chain.podgroups
    if not groups:
        return absent("No PodGroup")
    problems, objects = [], []
    for key, group in groups.items():
        text = _queue_problem(view, group.queue)
        if not text and group.meta.namespace.startswith(FUNCTION_NAMESPACE) and group.queue != LEAF:
            text = f"names {group.queue}, not {LEAF}"
        if text:
            problems.append(f"PodGroup {key} {text}")
            objects.append(f"PodGroup/{key}")
    if problems:
        return failed(some(problems, "; "), objects[:20])
    return passed(f"{counted(len(groups), 'PodGroup')} in {counted(len({g.queue for g in groups.values()}), 'queue')}")


def _queue_problem(view: View, name: str) -> str:
    if name not in view.queues:
        return f"names queue {name or '(none)'}, which does not exist"
    return f"names {name}, which is no leaf" if name in view.parents else ""


CHECKS = (
    Check("V8", "Default queues exist", Severity.CRITICAL,
          "Create default-parent-queue, and default-queue under it.", default_queues),
    Check("V9", "Default queues are unlimited", Severity.WARNING,
          "Set quota and limit to -1 and overQuotaWeight to 1 for cpu, gpu and memory; a wrong value takes NVCA down.",
          default_amounts),
    Check("V11", "Placement is as the stack sets it", Severity.WARNING,
          "Correct SchedulingShard/default: placement strategy and actions.", placement),
    Check("C17", "Queues named by gangs exist", Severity.CRITICAL,
          "Create the queue as a leaf, or make the gang again with the right label.", named_queues),
)  # fmt: skip
