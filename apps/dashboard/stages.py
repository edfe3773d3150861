"""The way of a gang from the object that a person wrote to ready containers, and the step at which it stands.

The steps a gang has depend on who made it: a bare PodGroup begins at the PodGroup, a Dynamo deployment four steps
earlier. Stage numbers are those of the explanation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gangdash.engine.verdict import Verdict

GRAPH, CLIQUE_SET, POD_GANG, POD_GROUP, PODS, BIND, READY = range(7)
TITLES = ("DynamoGraphDeployment", "PodCliqueSet", "PodGang", "PodGroup", "Pods", "Bind", "Ready")
CONTROLLERS = (
    "dynamo-operator",
    "grove-operator",
    "grove-operator",
    "kai pod-grouper",
    "kai-scheduler",
    "kai-binder",
    "kubelet",
)
STEP_OF_STAGE: Mapping[int, int] = {
    **dict.fromkeys(range(5), GRAPH),
    **dict.fromkeys((5, 6, 7, 24, 25), CLIQUE_SET),
    **dict.fromkeys((8, 9, 10, 11, 12, 13, 14), POD_GANG),
    **dict.fromkeys((15, 16, 17), POD_GROUP),
    **dict.fromkeys((18, 19, 23, 26, 27, 29, 30), PODS),
    20: BIND,
    **dict.fromkeys((21, 22, 28, 31), READY),
}
STEP_OF_VERDICT: Mapping[str, int] = {Verdict.STARTING: READY, Verdict.GATED: POD_GROUP, Verdict.CONFIG: POD_GROUP}
FIRST_STEP: Mapping[str, int] = {TITLES[GRAPH]: GRAPH, TITLES[CLIQUE_SET]: CLIQUE_SET, TITLES[POD_GANG]: POD_GANG}


@dataclass(frozen=True, slots=True)
class Step:
    """``state`` is done, stuck or todo; exactly one step of a waiting gang is stuck."""

    title: str
    name: str
    controller: str
    state: str


def step_of(document: Mapping[str, Any]) -> int | None:
    """Return where the gang stands; None where nothing holds it back."""
    if document["verdict"] in {Verdict.HEALTHY, Verdict.VIOLATED}:
        return None
    stage = str(document.get("stage") or "")
    if stage[1:].isdigit() and int(stage[1:]) in STEP_OF_STAGE:
        return STEP_OF_STAGE[int(stage[1:])]
    return STEP_OF_VERDICT.get(document["verdict"], PODS)


def ladder(document: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a gang, the one it stands at marked."""
    gang = document["gang"]
    owner_kind, _, owner_path = (gang.get("owner") or "").partition("/")
    stuck = step_of(document)
    first = FIRST_STEP.get(owner_kind, POD_GROUP)
    if stuck is not None:
        first = min(first, stuck)
    names = {first: owner_path.rpartition("/")[2]} if first < POD_GROUP else {}
    names[POD_GROUP] = gang["name"] if gang["kind"] == TITLES[POD_GROUP] else ""
    steps = []
    for at in range(first, len(TITLES)):
        state = "done" if stuck is None or at < stuck else "stuck" if at == stuck else "todo"
        steps.append(Step(TITLES[at], names.get(at, ""), CONTROLLERS[at], state))
    return steps
