"""How a gang stands that waits for nothing: running, finished, or running beside a status that says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangdash.engine.explain.build import named, names
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.verdict import Finding, Fix, FixKind, ReasonCode

# Keys that people write because a node label is called so, and what KAI reads in their place.
_WRONG_KEYS = {"nvidia.com/gpu.memory": "gpu-memory"}
_MEMORY = re.compile(r"[1-9]\d*")


def ignored_settings(gang: Gang) -> Iterator[Finding]:
    """Yield GPU requests that pods make in a form that KAI does not read."""
    for wrong, right in _WRONG_KEYS.items():
        pods = [pod for pod in gang.alive if wrong in pod.meta.annotations and right not in pod.meta.annotations]
        if pods:
            value = pods[0].meta.annotations[wrong]
            yield Finding(
                ReasonCode.SETTING_IGNORED,
                facts={"pods": len(pods), "found": wrong, "wanted": right, "value": value},
                binding=(named(ConstraintId.OBJECT_SETTING, names(pods)[0], right, wrong, f"Pod/{pods[0].key}"),),
                fixes=(
                    Fix(
                        FixKind.FIX_REFERENCE,
                        {"object": f"Pod/{pods[0].key}", "field": "annotation"},
                        {"found": wrong, "wanted": f"{right} with a plain number of MiB"},
                    ),
                ),
            )
    yield from _unreadable_values(gang)


def _unreadable_values(gang: Gang) -> Iterator[Finding]:
    for key, is_read in (("gpu-memory", _is_memory), ("gpu-fraction", _is_fraction)):
        pods = [pod for pod in gang.alive if key in pod.meta.annotations and not is_read(pod.meta.annotations[key])]
        if pods:
            value = pods[0].meta.annotations[key]
            yield Finding(
                ReasonCode.SETTING_IGNORED,
                form="value",
                facts={"pods": len(pods), "found": key, "value": value},
                binding=(named(ConstraintId.OBJECT_SETTING, names(pods)[0], "a number", value, f"Pod/{pods[0].key}"),),
            )


def _is_memory(text: str) -> bool:
    return bool(_MEMORY.fullmatch(text))


def _is_fraction(text: str) -> bool:
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


def healthy(gang: Gang) -> Finding:
    """Return how the gang stands when nothing is wrong with it."""
    if not gang.alive:
        form = "ending" if gang.terminating else "" if gang.finished else "empty"
        facts = {"finished": len(gang.finished), "terminating": len(gang.terminating)}
        return Finding(ReasonCode.COMPLETED, form=form, facts=facts)
    facts = {
        "placed": len(gang.bound) + len(gang.finished),
        "needed": gang.needed,
        "running": len(gang.bound),
        "finished": len(gang.finished),
    }
    if gang.podgroup.scheduling_conditions:
        return Finding(ReasonCode.STATUS_STALE, facts=facts)
    return Finding(ReasonCode.RUNNING, facts=facts)
