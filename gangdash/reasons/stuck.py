"""Codes of gangs that could be placed while the live system does not act (STUCK)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import BINDING, NOT_PLACED
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.PLACEABLE_NOT_PLACED,
        title="Fits, but is not placed",
        meaning="The replay places the gang, and the running scheduler has had time to and has not.",
        who=Who.PLATFORM,
        sentence=(
            "{pods:pod|pods} of {each} {pods:~fits|fit} on {where:list}, yet {scheduler} has not placed "
            "{pods:~it|them} for {since:span}."
        ),
        forms={
            "by_eviction": (
                "In the replay {action} of {need} from {victims:list} starts it; {scheduler} has not done so for "
                "{since:span}."
            ),
            "by_move": (
                "In the replay {action} starts it by moving {moved:pod|pods} of {victims:list}; {scheduler} has "
                "not done so for {since:span}."
            ),
        },
        evidence=("the replay places the gang", "a condition, event or unchanged cluster older than the limits"),
    ),
    Reason(
        code=ReasonCode.SCHEDULER_SILENT,
        title="Scheduler writes nothing",
        meaning="The scheduler runs, and no gang has had a condition, event or BindRequest from it.",
        who=Who.PLATFORM,
        sentence=(
            "{pods:pod|pods} of {each} {pods:~fits|fit} on {where:list}, but {scheduler} has written nothing about "
            "any of {gangs:waiting gang|waiting gangs} for {since:span}."
        ),
        evidence=("conditions, events and BindRequests of all gangs", "Deployment of the scheduler"),
    ),
    Reason(
        code=ReasonCode.SCHEDULER_DOWN,
        title="Scheduler is down",
        meaning="The scheduler's Deployment has no ready pod.",
        who=Who.PLATFORM,
        sentence="The scheduler is down: Deployment {deployment} has {ready} of {wanted} pods ready ({state}).",
        evidence=("Deployment and pods of the scheduler",),
    ),
    Reason(
        code=ReasonCode.CONTROLLER_SILENT,
        title="A controller does not act",
        meaning="A controller that should act on this gang has not.",
        who=Who.PLATFORM,
        sentence="{controller} has not acted on {object} for {since:span}: {problem:text}.",
        forms={"down": "{controller} is down ({state}), so {object} has waited for {since:span}: {problem:text}."},
        evidence=("status and events of the controller's objects",),
    ),
    Reason(
        code=ReasonCode.BIND_FAILING,
        title="Binding fails",
        meaning="The scheduler chose nodes, and binding fails or does not happen.",
        who=Who.PLATFORM,
        sentence="Assigned to node {node}, and binding {examples:list} failed: {problem}.",
        forms={
            "silent": (
                "Assigned to node {node} {since:span} ago, and the binder has not answered the BindRequest "
                "({examples:list})."
            ),
            "down": (
                "Assigned to node {node} {since:span} ago, and {component} is down ({state}), so nothing binds it "
                "({examples:list})."
            ),
            "helper": (
                "Fits on node {node}, but the binder makes no reservation pod while scaling pod {helper} exists, "
                "which hangs in Terminating on {helper_node} for {since:span}."
            ),
        },
        evidence=("BindRequest status", "BindingError events"),
        upstream=BINDING,
        hints=(r"Bound successfully",),
    ),
    Reason(
        code=ReasonCode.BIND_LOOP,
        title="Bind loop",
        meaning="The gang is assigned, fails to bind and is assigned again.",
        who=Who.PLATFORM,
        sentence="Assigned to node {node} {times:time|times}, and every bind fails: {problem}.",
        forms={
            "helper": (
                "Fits on node {node}, but the binder makes no reservation pod while scaling pod {helper} exists, "
                "which hangs in Terminating on {helper_node} for {since:span}."
            ),
        },
        evidence=("repeated Scheduled and BindingError events", "BindRequest status"),
        upstream=BINDING,
        hints=(r"Bound successfully", r"Successfully assigned"),
    ),
    Reason(
        code=ReasonCode.HELPER_POD_REFUSED,
        title="Helper pod not admitted",
        meaning="A reservation or scaling pod that the scheduler needs is not admitted or cannot run.",
        who=Who.PLATFORM,
        sentence="Fits on {node}, but KAI's {helper} pod for the shared GPU is refused: {problem:text}.",
        forms={
            "kubelet": (
                "Fits on {node}, but the kubelet there refused KAI's pod {helper} for the shared GPU ({problem:text})."
            ),
        },
        evidence=("reservation and scaling pods", "their events"),
        upstream=(r"reservation pod",),
        hints=(r"BindingError",),
    ),
    Reason(
        code=ReasonCode.SCHEDULER_DEFECT,
        title="Known defect of this version",
        meaning="A known fault of the running scheduler version fits the evidence.",
        who=Who.PLATFORM,
        sentence="KAI {version} has a known fault that fits the evidence, mended in {mended}.",
        forms={
            "signature": (
                "KAI {version} takes gangs for the same that differ in topology alone, and gives up on all when one "
                "does not fit; mended in {mended}."
            ),
            "mig_keys": (
                "KAI {version} takes a node whose MIG profiles are all at 0 for a MIG node and keeps whole GPUs off "
                "it; mended in {mended}."
            ),
            "reclaim_order": (
                "KAI {version} gives up reclaim when a queue that it may not take from comes first in its order; "
                "mended in {mended}."
            ),
        },
        evidence=("version of the scheduler", "the signs of that fault in the objects"),
    ),
    Reason(
        code=ReasonCode.GREEDY_MISS,
        title="A placement exists that the scheduler cannot find",
        meaning="An exact search places the gang now; the scheduler's walk, one pod after the other, does not.",
        who=Who.OWNER,
        sentence=(
            "A placement exists ({where:list}), but the scheduler places pods one by one without going back and "
            "misses it."
        ),
        forms={
            "common_domain": (
                "It fits in {domain}, but all nodes share one {level}, so the scheduler starts below that level "
                "and finds no room; a preferred level of {level} too avoids it."
            ),
        },
        evidence=("exact search on the snapshot", "replay of the scheduler's walk"),
        hints=(*NOT_PLACED, r"couldn't be satisfied"),
    ),
    Reason(
        code=ReasonCode.SEARCH_BUDGET,
        title="Scheduler's search budget ends",
        meaning="The scheduler's own search for victims ends before it finds a solution that exists.",
        who=Who.PLATFORM,
        sentence=(
            "Evictions that start it exist, but the search budget of shard {shard} ({budget}) ends before the "
            "scheduler finds them."
        ),
        evidence=("scenario search budgets of the shard", "replay without them"),
        hints=(*NOT_PLACED,),
    ),
)
