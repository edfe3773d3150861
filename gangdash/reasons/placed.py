"""Codes of gangs that hold or held nodes: PARTIAL, VIOLATED, EVICTED, STARTING and HEALTHY; and of NO_VERDICT."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import AMOUNTS, GPUS, NOT_PLACED, NOT_READY_GANG
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.GANG_NOT_ENFORCED,
        title="Not one gang",
        meaning=(
            "The members are not grouped, or with a minimum of fewer pods than it needs, so part of them runs alone."
        ),
        who=Who.OWNER,
        sentence=(
            "{placed} of {total:pod|pods} {placed:~runs|run} and {waiting:waits|wait}: its PodGroup starts pods from "
            "{minimum} on, so nothing holds all {total} together."
        ),
        forms={
            "siblings": (
                "Its sibling {sibling} runs in {domain} and pod affinity ties it there ({key}), where {have} of "
                "{need:bare} are free; each is a PodGroup of its own, though {spare:list} could hold both."
            ),
            "none": (
                "{placed} of {total:pod|pods} {placed:~holds|hold} {held} and {waiting:pod waits|pods wait}; groups of "
                "{size} need each other, and {scheduler} places pods one by one: no PodGroup binds them."
            ),
        },
        evidence=("minimum of the PodGroup against the size of its owner",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, r"quota has reached"),
    ),
    Reason(
        code=ReasonCode.BELOW_MINIMUM,
        title="Below its minimum",
        meaning="Fewer members run than the gang needs.",
        who=Who.OWNER,
        sentence=(
            "{placed} of {needed} required pods {placed:~runs|run}; the scheduler evicts {placed:~it|them} at "
            "{until:time} unless the rest is there."
        ),
        forms={
            "soon": (
                "{placed} of {needed} required pods {placed:~runs|run}; the scheduler evicts {placed:~it|them} "
                "after {grace:span} unless the rest is there."
            ),
            "kept": "{placed} of {needed} required pods {placed:~runs|run}; short gangs are not evicted here.",
        },
        evidence=("minimum of the PodGroup", "stale timestamp and grace period"),
        upstream=(r"Job is stale",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.SIBLING_GANG_WAITS,
        title="A sibling gang waits",
        meaning="It is placed, but a gang of the same workload that it needs is not.",
        who=Who.OWNER,
        sentence=(
            "Placed, but {kind} {graph} is of no use yet: its component {component} has no gang placed ({sibling} "
            "waits)."
        ),
        evidence=("gangs of one owner",),
        hints=(
            *NOT_PLACED,
            *GPUS,
            *AMOUNTS,
        ),
    ),
    Reason(
        code=ReasonCode.MUTUAL_WAIT,
        title="Gangs wait for each other",
        meaning="Several workloads hold part of what each needs, and none can complete.",
        who=Who.OWNER,
        sentence=(
            "Has {placed} of {pods:pod|pods}; {count} {kind}s hold {held} of {total:bare} on {nodes} of "
            "{all_nodes:node|nodes} and each lacks pods, so none completes: no PodGroup binds them."
        ),
        evidence=("placed and waiting pods of each workload", "free capacity"),
        hints=(
            *NOT_PLACED,
            *GPUS,
            *AMOUNTS,
        ),
    ),
    Reason(
        code=ReasonCode.TOPOLOGY_NOT_KEPT,
        title="Topology rule not kept",
        meaning="It is placed over more domains than declared.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{kind} {name} asks for one {level}, but its pods are in {domains:list}: each of its "
            "{gangs:gang|gangs} keeps the rule alone."
        ),
        forms={"self": "Asks for one {level}, but its pods run in {domains:list}."},
        evidence=("topology constraint of the workload", "nodes of its pods"),
    ),
    Reason(
        code=ReasonCode.LIMIT_EXCEEDED,
        title="Above a limit",
        meaning="It runs although a limit or quota does not allow it.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Runs above the limit: queue {queue} uses {used} of {limit:bare}; nothing is evicted for it, but new "
            "gangs of the queue wait."
        ),
        forms={
            "quota": (
                "Runs above the quota: non-preemptible gangs of queue {queue} use {used} of {limit:bare}; nothing "
                "is evicted for it, but new ones wait."
            ),
            "kueue": (
                "Runs although Kueue Workload {name} is not admitted: {used} are used of a quota of {limit:bare}; "
                "its admission gate is gone."
            ),
            "kueue_unknown": "Runs although Kueue Workload {name} is not admitted; its admission gate is gone.",
        },
        evidence=("use of the queue by its bound pods", "limits and quotas of the queue"),
    ),
    Reason(
        code=ReasonCode.RECLAIMED,
        title="Reclaimed for another queue",
        meaning="Its pods were evicted to give another queue its share.",
        who=Who.WAIT,
        sentence=(
            "{evicted:pod was|pods were} evicted {ago:span} ago by reclaim for {by} ({examples:list}); it has "
            "waited since."
        ),
        forms={
            "unknown": "The scheduler evicted it {ago:span} ago, and no event says for whom; it has waited since.",
            "unread": (
                "The scheduler evicted it {ago:span} ago, for whom only events would say, and they were not read; it "
                "has waited since."
            ),
        },
        evidence=("Evict event or annotation of the PodGroup",),
        upstream=(r"was preempted by workload",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.PREEMPTED,
        title="Preempted",
        meaning="Its pods were evicted for a gang of higher priority in the same queue.",
        who=Who.WAIT,
        sentence="{evicted:pod was|pods were} preempted {ago:span} ago by {by} ({examples:list}); it has waited since.",
        forms={
            "gone": "{evicted:pod was|pods were} preempted {ago:span} ago by {by}, and {owner} has made none again."
        },
        evidence=("Evict event of the PodGroup",),
        upstream=(r"was preempted by higher priority workload",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.CONSOLIDATED,
        title="Moved to make room",
        meaning="Its pods were evicted so that they could be packed elsewhere.",
        who=Who.WAIT,
        sentence="{evicted:pod was|pods were} evicted {ago:span} ago to be packed elsewhere; it has waited since.",
        evidence=("Evict event of the PodGroup",),
        upstream=(r"bin packing \(resource consolidation\)",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.STALE_GANG,
        title="Evicted as a stale gang",
        meaning="It ran below its minimum for longer than the grace period, so the scheduler evicted the rest.",
        who=Who.OWNER,
        sentence=(
            "{evicted} of its {needed:pod|pods} {evicted:~was|were} evicted {ago:span} ago: the gang ran below its "
            "minimum of {needed} for longer than the grace period."
        ),
        forms={
            "finished": (
                "{evicted} of its {needed:pod|pods} {evicted:~was|were} evicted {ago:span} ago because others had "
                "finished: KAI {version} does not count finished pods toward the minimum of {needed}."
            ),
            "unknown": (
                "Evicted about {ago:span} ago because it ran below its minimum of {needed}; no Evict event is left "
                "to say so."
            ),
        },
        evidence=("StaleJob and Evict events", "minimum and grace period of the PodGroup"),
        upstream=(r"doesn't meet the minimum required number of pods", r"Job is stale"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.EVICTED_BY_NODE,
        title="Evicted by its node",
        meaning="The kubelet or the node controller removed its pods.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{evicted:pod was|pods were} removed by node {node} ({reason}: {examples:list}); the replacements wait."
        ),
        evidence=("status.reason of the pods", "taint eviction events"),
        upstream=(r"TaintManagerEviction|Evicted",),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.EVICTION_LOOP,
        title="Evicted again and again",
        meaning="It is placed and evicted in turns.",
        who=Who.QUEUE_ADMIN,
        sentence="Placed and evicted {times:time|times} in {window:span}, the last time {ago:span} ago for {by}.",
        forms={
            "unknown": (
                "Placed, and lost its nodes {times:time|times} in {window:span}, the last time {ago:span} ago; no "
                "event says for whom."
            )
        },
        evidence=("repeated Evict events of the PodGroup", "evictions that earlier readings saw"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, r"preempted"),
    ),
    Reason(
        code=ReasonCode.IMAGE_PULL,
        title="Image cannot be pulled",
        meaning="Bound; the node cannot pull an image.",
        who=Who.OWNER,
        sentence="{pods:pod is|pods are} bound and cannot pull an image on {nodes:list} ({examples:list}): {reason}.",
        evidence=("container states",),
    ),
    Reason(
        code=ReasonCode.VOLUME_MOUNT,
        title="Volume cannot be mounted",
        meaning="Bound; the node cannot mount a volume.",
        who=Who.PLATFORM,
        sentence="{pods:pod is|pods are} bound; {nodes:list} cannot mount a volume ({examples:list}): {reason}.",
        evidence=("FailedMount and FailedAttachVolume events",),
    ),
    Reason(
        code=ReasonCode.INIT_CONTAINER,
        title="Init container runs",
        meaning="Bound; an init container has not finished.",
        who=Who.OWNER,
        sentence="{pods:pod is|pods are} bound; init container {container} has not finished ({examples:list}).",
        forms={"waits_for": "{pods:pod is|pods are} bound; start order waits for {wanted} ({examples:list})."},
        evidence=("init container states", "start-order arguments"),
    ),
    Reason(
        code=ReasonCode.CONTAINER_START,
        title="Containers do not start",
        meaning="Bound; the containers are not running yet.",
        who=Who.OWNER,
        sentence="{pods:pod is|pods are} bound to {nodes:list}; the containers are not running yet ({examples:list}).",
        forms={
            "fails": "Bound to {nodes:list}; container {container} failed to start {restarts:time|times}: {reason}."
        },
        evidence=("container states", "events of the pods"),
    ),
    Reason(
        code=ReasonCode.PROBE_FAILING,
        title="Not ready",
        meaning="Running; the readiness or startup probe does not pass.",
        who=Who.OWNER,
        sentence="{pods:pod runs|pods run} without being ready ({examples:list} on {nodes:list}).",
        evidence=("Ready condition and container states",),
    ),
    Reason(
        code=ReasonCode.CRASH_LOOP,
        title="Containers crash",
        meaning="Bound; containers start and end again.",
        who=Who.OWNER,
        sentence=(
            "{pods:pod is|pods are} bound; container {container} has crashed {restarts:time|times} on "
            "{nodes:list}: {reason}."
        ),
        evidence=("container states and restart counts",),
    ),
    Reason(
        code=ReasonCode.RUNNING,
        title="Running",
        meaning="All required members run.",
        who=Who.NOBODY,
        sentence="{placed} of {needed} required pods {placed:~runs|run}.",
        evidence=("phase and readiness of the pods",),
    ),
    Reason(
        code=ReasonCode.COMPLETED,
        title="Completed",
        meaning="Its pods have finished.",
        who=Who.NOBODY,
        sentence="{finished:pod has|pods have} finished; nothing is left to place.",
        forms={
            "empty": "It has no pod left; its owner is gone or done, and it reserves nothing.",
            "ending": "Its last {terminating:pod is|pods are} terminating; nothing is left to place.",
        },
        evidence=("phase of the pods", "owner of the PodGroup"),
    ),
    Reason(
        code=ReasonCode.STATUS_STALE,
        title="Only a status is stale",
        meaning="Nothing is wrong; a status field or condition says something that is no longer true.",
        who=Who.NOBODY,
        sentence=(
            "{placed} of {needed:member|members} {placed:~is|are} in place ({running} running, {finished} finished); "
            "the condition on its PodGroup is left over."
        ),
        evidence=("pods of the gang", "conditions of the PodGroup"),
    ),
    Reason(
        code=ReasonCode.NOT_READ,
        title="Something could not be read",
        meaning="A kind that decides this gang could not be read, so no verdict is given.",
        who=Who.CLUSTER_ADMIN,
        sentence="No verdict: {kinds:list} could not be read ({reason}), and this gang depends on {count:~it|them}.",
        evidence=("what was read and what not",),
    ),
    Reason(
        code=ReasonCode.NOT_MODELLED,
        title="Not modelled",
        meaning="The gang depends on a part of the scheduler that the replay does not model.",
        who=Who.NOBODY,
        sentence="No verdict: this gang depends on {parts:list}, which the replay does not model.",
        evidence=("configuration of the scheduler", "spec of the pods"),
    ),
    Reason(
        code=ReasonCode.BUDGET_EXHAUSTED,
        title="Search budget used up",
        meaning="Our own search ended before it had an answer.",
        who=Who.NOBODY,
        sentence="No verdict: the search ended after {steps:step|steps} without an answer.",
        evidence=("steps of the search",),
    ),
    Reason(
        code=ReasonCode.ENGINE_FAULT,
        title="Engine fault",
        meaning="The engine failed on this gang; the fault is ours.",
        who=Who.NOBODY,
        sentence="No verdict: the engine failed on this gang ({fault}); the other gangs are not affected.",
        evidence=("log of the engine",),
    ),
    Reason(
        code=ReasonCode.STALE_DATA,
        title="Data too old",
        meaning="The reading is too old or objects contradict each other.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "No verdict: {object} was made {ahead:span} after the moment that this answer is for, so the objects are "
            "not of one moment."
        ),
        evidence=("times of the reading",),
    ),
)
