"""Codes of gangs not handed to the scheduler yet (GATED) and of capacity lost to node state (NODE)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import DOMAINS, GPUS, LARGEST_NODE, NOT_PLACED, NOT_READY_GANG, TAINTS
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.UPSTREAM_STAGE,
        title="An earlier stage has not finished",
        meaning="A controller before the scheduler has not handed the gang over.",
        who=Who.PLATFORM,
        sentence="{controller} has not finished {object}: {problem:text}.",
        forms={
            "podgang_missing": (
                "{gated:pod is|pods are} gated and PodGang {podgang} does not exist; {controller} must make it first."
            ),
            "podgang_not_initialized": (
                "{gated:pod is|pods are} gated: PodGang {podgang} is not initialized, so a member is still "
                "missing; {controller} removes the gate after that."
            ),
            "podgang_short": (
                "{gated:pod is|pods are} gated: PodGang {podgang} does not list {examples:list}; {controller} must "
                "add {unlisted:~it|them} first."
            ),
        },
        evidence=("status and conditions of the controller's object", "events of that controller"),
        upstream=NOT_READY_GANG,
    ),
    Reason(
        code=ReasonCode.SCHEDULING_GATE,
        title="Scheduling gate",
        meaning="Pods carry a scheduling gate that its controller has not removed.",
        who=Who.PLATFORM,
        sentence=(
            "{gated:pod still has|pods still have} the gate {gate} ({examples:list}); {controller} must remove it "
            "before the scheduler looks."
        ),
        forms={
            "stage": "Not handed to the scheduler: {problem:text} ({object}); {controller} must remove the gate first.",
            "late": (
                "{gated:pod has|pods have} had the gate {gate} for {since:span} ({examples:list}) although the "
                "PodGang is complete; {controller} removes it at its next resync."
            ),
        },
        evidence=("spec.schedulingGates of the pods",),
        upstream=(*NOT_READY_GANG, r"SchedulingGated"),
    ),
    Reason(
        code=ReasonCode.SUSPENDED,
        title="Suspended",
        meaning="The workload is suspended; its pods are not created until it is resumed.",
        who=Who.OWNER,
        sentence="{kind} {name} is suspended ({field}), so {missing:pod is|pods are} not created.",
        forms={"stage": "{kind} {name} waits as it was told to: {problem:text}."},
        evidence=("spec.suspend of the owner",),
        upstream=NOT_READY_GANG,
    ),
    Reason(
        code=ReasonCode.MEMBERS_MISSING,
        title="Members are missing",
        meaning="Fewer pods exist than the gang needs before the scheduler may start it.",
        who=Who.WAIT,
        sentence=(
            "{exist} of {needed:pod|pods} {exist:~exists|exist}; the scheduler starts a gang only when all are there."
        ),
        forms={
            "one": "Its one pod does not exist; the scheduler starts the gang only when it is there.",
            "one_owner": ("{owner} has not made its one pod; the scheduler starts the gang only when it is there."),
            "owner": (
                "{exist} of {needed:pod|pods} {exist:~exists|exist}; {owner} has not made the rest, and the scheduler "
                "starts a gang only when all are there."
            ),
            "subgroup": (
                "Subgroup {subgroup} has {exist} of {needed:pod|pods}; the scheduler starts the gang only when all "
                "are there."
            ),
            "failing": (
                "{exist} of {needed:pod|pods} {exist:~exists|exist}: {kind} {name} has failed {failed:time|times} and "
                "waits before it tries again."
            ),
            "finished": (
                "{exist} of {needed:pod|pods} {exist:~exists|exist} and {finished} finished; finished pods do not "
                "count, so the rest waits."
            ),
        },
        evidence=("pods with the gang's annotation", "minimums of the PodGroup"),
        upstream=NOT_READY_GANG,
    ),
    Reason(
        code=ReasonCode.ADMISSION_DOWN,
        title="Admission webhook refuses or does not answer",
        meaning="Pods cannot be created because an admission webhook refuses them or is down.",
        who=Who.PLATFORM,
        sentence=(
            "{kind} {name} has {exist} of {needed:pod|pods}: webhook {webhook} does not answer, so the API server "
            "refuses every new pod."
        ),
        forms={
            "component": (
                "{kind} {name} has {exist} of {needed:pod|pods}: webhook {webhook} is down with {component} "
                "({state}), so the API server refuses every new pod."
            ),
            "refuses": "{kind} {name} has {exist} of {needed:pod|pods}: webhook {webhook} refuses new pods: {problem}.",
        },
        evidence=("FailedCreate events", "webhook configuration and the Deployment behind it"),
        upstream=(r"failed calling webhook", r"denied the request"),
    ),
    Reason(
        code=ReasonCode.BACKOFF,
        title="Back-off",
        meaning="The scheduler or a controller waits before it tries again.",
        who=Who.WAIT,
        sentence="{kind} {name} is in back-off: {problem}.",
        forms={
            "scheduler": (
                "schedulingBackoff is 1 and the gang failed once in node pool {pool}, so the scheduler skips it "
                "until its label {key} changes."
            ),
        },
        evidence=("schedulingBackoff and the last scheduling condition", "status of the controller"),
    ),
    Reason(
        code=ReasonCode.WAITS_FOR_BASE_GANG,
        title="Waits for its base gang",
        meaning="A scaled gang is gated until its base gang is placed.",
        who=Who.WAIT,
        sentence=(
            "Gated until base gang {base} is placed: {have} of its {need} required pods {have:~has|have} a node."
        ),
        forms={
            "missing": "Gated until base gang {base} is placed, and no PodGroup of {base} exists.",
            "stage": "Gated: {problem:text} ({object}).",
            "not_ready": (
                "Gated until base gang {base} is ready: {placed:pod is|pods are} bound, {have} of {need} ready."
            ),
            "compute_domain": (
                "Gated until base gang {base} is ready; {base} cannot start because ComputeDomain {claim} counts "
                "to {need:node|nodes}, has {have}, and the rest need the gated pods."
            ),
        },
        evidence=("label grove.io/base-podgang", "state of the base gang"),
        upstream=(*NOT_READY_GANG, r"SchedulingGated"),
    ),
    Reason(
        code=ReasonCode.NODES_CORDONED,
        title="Nodes are cordoned",
        meaning="It would fit on nodes that are cordoned. KAI refuses cordoned nodes whatever a pod tolerates.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Would fit with {examples:list} uncordoned ({free} free there); KAI refuses a cordoned node whatever a "
            "pod tolerates."
        ),
        evidence=("spec.unschedulable of the nodes", "re-run with the nodes repaired"),
        upstream=(r"node\(s\) were unschedulable|NodeUnschedulable|unschedulable",),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.NODES_NOT_READY,
        title="Nodes are not ready",
        meaning="It would fit on nodes that are not ready.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Would fit with {examples:list} ready ({free} free there), which {nodes:~has|have} not been ready for "
            "{since:span}."
        ),
        forms={"unknown": "Would fit with {examples:list} ready ({free} free there)."},
        evidence=("Ready condition of the nodes", "re-run with the nodes repaired"),
        upstream=(r"not ready|NotReady|unreachable",),
        hints=(*NOT_PLACED, *GPUS, *TAINTS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.NODES_TAINTED_BY_STATE,
        title="Nodes are tainted for repair",
        meaning="It would fit on nodes that carry a taint put there because of their state.",
        who=Who.CLUSTER_ADMIN,
        sentence="Would fit on {examples:list}, which {nodes:~carries|carry} the taint {taint} since {since:span} ago.",
        forms={
            "plain": "Would fit on {examples:list}, which {nodes:~carries|carry} the taint {taint}.",
            "pinned": (
                "Its pods are pinned to {examples:list}, which {nodes:~carries|carry} the taint {taint}; "
                "{spare_nodes:list} {spare:~has|have} room, but the selector excludes {spare:~it|them}."
            ),
        },
        evidence=("taints of the nodes and when they were added", "re-run with the nodes repaired"),
        upstream=TAINTS,
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.DEVICES_UNHEALTHY,
        title="GPUs are unhealthy",
        meaning="A node offers fewer GPUs than it has; with all of them it would fit.",
        who=Who.PLATFORM,
        sentence=(
            "{node} offers {offered} of its {capacity}; with all of them the gang would fit ({fit} of "
            "{pods:pod fits|pods fit} now)."
        ),
        forms={
            "several": (
                "{examples:list} do not offer all their GPUs; with all of them the gang would fit ({fit} of "
                "{pods:pod fits|pods fit} now)."
            ),
        },
        evidence=(
            "allocatable against capacity of the node",
            "device plugin on that node",
            "re-run with the devices back",
        ),
        upstream=GPUS,
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.DEVICE_PLUGIN_MISSING,
        title="Device plugin is missing",
        meaning="Nodes with GPUs advertise none because the device plugin does not run there.",
        who=Who.PLATFORM,
        sentence=(
            "{examples:list} {nodes:~offers none of its|offer none of their} {capacity}: "
            "no device plugin pod is ready there; "
            "{offering:node offers|nodes offer} GPUs."
        ),
        forms={
            "paused": (
                "{examples:list} {nodes:~offers none of its|offer none of their} {capacity}: "
                "the device plugin is paused by label "
                "{what}."
            ),
            "driver": (
                "{examples:list} {nodes:~offers none of its|offer none of their} {capacity}: "
                "driver pod {what} is not ready, so no "
                "device plugin runs; {offering:node offers|nodes offer} GPUs, the gang's next step is "
                "{needed:pod|pods}."
            ),
            "pod": (
                "{examples:list} {nodes:~offers none of its|offer none of their} {capacity}: "
                "device plugin pod {what} is not ready "
                "there; {offering:node offers|nodes offer} GPUs."
            ),
            "selector": (
                "No node offers a GPU: the device plugin's DaemonSet {daemonset} selects {selector}, which no node "
                "carries, so it runs 0 pods."
            ),
        },
        evidence=("allocatable of the nodes", "DaemonSet and pods of the device plugin", "labels of the nodes"),
        upstream=(*GPUS, *LARGEST_NODE),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.TERMINATING_PODS_HOLD,
        title="Terminating pods hold the room",
        meaning="Pods that should be gone still hold what the gang needs.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{holders:list} {pods:~has|have} been terminating on {nodes:list} for {age:span} and "
            "{pods:~holds|hold} {held} that it needs."
        ),
        forms={
            "dead_node": (
                "{holders:list} {pods:~has|have} been terminating for {age:span} on {nodes:list}, which is not "
                "ready, and {pods:~holds|hold} {held} that it needs."
            ),
        },
        evidence=("deletionTimestamp of the pods", "state of their nodes", "re-run with the pods gone"),
        upstream=(r"was pipelined to node",),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.ADMISSION_REFUSED,
        title="The kubelet refused pods",
        meaning="Pods were bound, and the node refused them on arrival.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{fit} of {needed} required pods {fit:~runs|run}; the kubelet of {node} refused {refused} ({reason})."
        ),
        forms={
            "taker": (
                "{fit} of {needed} required pods {fit:~runs|run}; the kubelet of {node} refused {refused} "
                "({reason}), as {scheduler} had just put {taker} there."
            ),
        },
        evidence=("phase Failed with a reason of the kubelet", "events of the pods"),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
)
