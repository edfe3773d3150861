"""Codes of gangs that start by themselves (WILL_START) and of gangs that fit nowhere (NO_FIT)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import AMOUNTS, DOMAINS, GPUS, LARGEST_NODE, NOT_PLACED, SELECTORS, TAINTS
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.FITS_NOW,
        title="Fits now",
        meaning="Every required pod has a node; the scheduler has not had time to place them yet.",
        who=Who.WAIT,
        sentence="Fits now: {pods:pod|pods} of {each} on {where:list}; the scheduler binds in its next cycle.",
        forms={
            "binding": "{pods:pod is|pods are} assigned to {where:list}; the binder is binding {pods:~it|them}.",
            "status_differs": (
                "Fits now: the pods of queue {queue} use {used}, {need} more stay within {allowed:bare}; only its "
                "status says {reported:bare}."
            ),
        },
        evidence=("the replay places the gang", "no sign that the scheduler had time to act"),
    ),
    Reason(
        code=ReasonCode.WAITS_FOR_RELEASE,
        title="Waits for a release",
        meaning="The gang fits on what terminating pods still hold; it starts when they are gone.",
        who=Who.WAIT,
        sentence=(
            "Starts when {terminating:terminating pod|terminating pods} of {holders:list} on {nodes:list} "
            "{terminating:~is|are} gone; {terminating:~it holds|they hold} {held:gpu} until then."
        ),
        evidence=("the replay promises nodes whose resources are being released", "pods with a deletionTimestamp"),
        upstream=(r"was pipelined to node",),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.WAITS_FOR_EVICTION,
        title="Waits for an eviction",
        meaning="The next cycle evicts other gangs for this one; it starts when their pods are gone.",
        who=Who.WAIT,
        sentence=(
            "Starts by {action}: the next cycle evicts {evicted:pod|pods} of {victims:list} for its {need} (queue "
            "{queue})."
        ),
        forms={
            "both": (
                "Starts by {action}: the next cycle evicts {evicted:pod|pods} and moves {moved} to other nodes, of "
                "{victims:list}, for its {need} (queue {queue})."
            ),
            "moves": (
                "Starts by {action}: the next cycle moves {moved:pod|pods} of {victims:list} to other nodes for "
                "its {need} (queue {queue})."
            ),
        },
        evidence=("the replay places the gang by reclaim, preempt or consolidation",),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.NODE_TOO_SMALL,
        title="Pod larger than any node",
        meaning="One pod asks for more than the largest eligible node has, even when that node is empty.",
        who=Who.OWNER,
        sentence="Pod {pod} needs {need}; the largest node it may use ({node}) has {have:bare}, even empty.",
        forms={
            "none": "Pod {pod} needs {need}; none of the {nodes:node|nodes} it may use has any.",
            "together": (
                "Pod {pod} needs {need} beside all it asks for; {node}, the best node with enough of the rest, has "
                "{have:bare}, even empty."
            ),
        },
        evidence=("allocatable of every eligible node", "exact search on the empty cluster"),
        upstream=LARGEST_NODE,
        hints=(*GPUS, *NOT_PLACED, *DOMAINS),
        never=True,
    ),
    Reason(
        code=ReasonCode.CLUSTER_TOO_SMALL,
        title="Gang larger than the cluster",
        meaning="The eligible nodes together are too few or too small for the gang, even when they are empty.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Needs {pods:pod|pods} of {each} at once; the {nodes:node|nodes} it may use can hold "
            "{fit:pod|pods} of that size, even empty."
        ),
        forms={
            "sum": (
                "Needs {need} at once; the {nodes:node|nodes} it may use {nodes:~has|have} {have:bare} in all, even "
                "empty."
            ),
            "mixed": (
                "Needs {pods:pod|pods} of different sizes at once; the {nodes:node|nodes} it may use can hold {fit} "
                "of them, even empty."
            ),
        },
        evidence=("allocatable of every eligible node", "exact search on the empty cluster"),
        upstream=(r"not enough resources in the cluster to allocate the job",),
        hints=(*GPUS, *NOT_PLACED, *DOMAINS),
        never=True,
    ),
    Reason(
        code=ReasonCode.DOMAIN_TOO_SMALL,
        title="Gang larger than any domain",
        meaning="No single topology domain could hold the gang, even when it is empty.",
        who=Who.OWNER,
        sentence="Needs {need} in one {level}; the largest ({domain}) has {have:bare}, even empty.",
        forms={
            "pods": (
                "Needs {pods:pod|pods} of {each} in one {level}; the best ({domain}) can hold {fit}, even empty "
                "({domains:domain|domains} in all)."
            ),
            "claim": (
                "Needs {pods:node|nodes} in one {level} for compute domain {claim}; the best ({domain}) can hold "
                "{fit}, even empty."
            ),
            "none": "Needs {need} in one {level}, and no node carries all labels of that topology.",
            "none_cpu": (
                "Needs {pods:pod|pods} of {each} in one {level}, and no node carries all labels of that topology."
            ),
            "part": (
                "Subgroup {part} needs {need} in one {level}; the largest ({domain}) has {have:bare}, even empty."
            ),
            "part_pods": (
                "Subgroup {part} needs {pods:pod|pods} of {each} in one {level}; the best ({domain}) can hold {fit}, "
                "even empty."
            ),
            "together": (
                "Subgroups {parts:list} fit one by one in {domain}, but no {level} ever has a domain for each of "
                "them at once, even empty."
            ),
            "pinned": (
                "Its running pods tie it to {domain} ({level}), which can never hold {pods:pod more|pods more}: "
                "{fit} would fit, even empty."
            ),
        },
        evidence=("Topology levels and node labels", "allocatable per domain", "exact search on the empty domains"),
        upstream=DOMAINS,
        hints=(*NOT_PLACED, *DOMAINS),
        never=True,
    ),
    Reason(
        code=ReasonCode.GPUS_BUSY,
        title="GPUs are in use",
        meaning="Too few GPUs are free in all; it would fit if the holders were gone, and none of them can be moved.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Needs {need}; {free:bare} of {total} {free:~is|are} free on the {nodes:node|nodes} it may use, "
            "the rest is held by {holders:list}."
        ),
        forms={
            "beside": (
                "Needs {need}; {idle} are free on the {nodes:node|nodes} it may use, but only {free:bare} beside "
                "enough CPU, memory and the rest of what its pods ask."
            ),
            "all_held": (
                "Needs {need}; none of {total} on the {nodes:node|nodes} it may use is free, all are held by "
                "{holders:list}."
            ),
            "shares": (
                "Needs {pods:pod|pods} with {each} of one device each; {fit} {fit:~fits|fit} on the "
                "{nodes:node|nodes} it may use, the rest is held by {holders:list}."
            ),
            "no_share": (
                "Needs {pods:pod|pods} with {each} of one device each; no device of the {nodes:node|nodes} it may use "
                "has that much free, all are held by {holders:list}."
            ),
            "unheld": (
                "Needs {need}; {free:bare} of {total} {free:~is|are} free on the {nodes:node|nodes} it may use."
            ),
        },
        evidence=("free GPUs per node", "holders and whether each could be evicted"),
        upstream=GPUS,
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.FRAGMENTED,
        title="Free GPUs are scattered",
        meaning="Enough GPUs are free in sum, but not enough on single nodes for the pods' size.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Needs {pods:pod|pods} of {each}; {free} are free, but {fit} {fit:~fits|fit}: the best nodes have "
            "{best:list} free."
        ),
        forms={
            "none_fits": "Needs {each} on one node; {free} are free, but scattered: the best nodes have {best:list}.",
        },
        evidence=("free GPUs per node", "holders and whether each could be evicted"),
        upstream=GPUS,
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.DOMAIN_BUSY,
        title="No domain has enough free",
        meaning="The cluster has enough free, but no single topology domain does; at least one could if it were empty.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Needs {need} in one {level}; the best ({domain}) has {have:bare} free, {could:domain|domains} could "
            "hold it if empty."
        ),
        forms={
            "pods": (
                "Needs {pods:pod|pods} of {each} in one {level}; the best ({domain}) takes {fit} now, "
                "{could:domain|domains} could hold it if empty."
            ),
            "pinned": (
                "Its running pods tie it to {domain} ({level}), where {pods:pod more|pods more} must go and {fit} "
                "{fit:~fits|fit} now."
            ),
            "none": "Needs {need} in one {level}, and no node carries all labels of that topology.",
            "none_cpu": (
                "Needs {pods:pod|pods} of {each} in one {level}, and no node carries all labels of that topology."
            ),
            "part": (
                "Subgroup {part} needs {need} in one {level}; the best ({domain}) has {have:bare} free, "
                "{could:domain|domains} could hold it if empty."
            ),
            "part_pods": (
                "Subgroup {part} needs {pods:pod|pods} of {each} in one {level}; the best ({domain}) takes {fit} now, "
                "{could:domain|domains} could hold it if empty."
            ),
            "together": (
                "Subgroups {parts:list} fit one by one in {domain}, but not each in a domain of its own at once "
                "with what is in use now."
            ),
        },
        evidence=("Topology levels and node labels", "free resources per domain"),
        upstream=DOMAINS,
        hints=(*GPUS, *NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.RESOURCE_SHORT,
        title="CPU, memory or another resource is short",
        meaning="GPUs would suffice, but another resource does not.",
        who=Who.CLUSTER_ADMIN,
        sentence="Pod {pod} needs {need}; the best node ({node}) has {have:bare} free, short by {short}.",
        forms={
            "pods": (
                "Needs {pods:pod|pods} of {each}; {fit} {fit:~fits|fit}: the best node ({node}) has {have:bare} free."
            ),
            "beside": (
                "Pod {pod} needs {need}; {node}, the best node with enough of the rest ({wanted}), has {have:bare} "
                "free."
            ),
        },
        evidence=("free resources per node", "the pod's own requests, sidecars and overhead included"),
        upstream=AMOUNTS,
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.POD_SLOTS,
        title="No free pod slot",
        meaning="The nodes with room have as many pods as their kubelet allows.",
        who=Who.CLUSTER_ADMIN,
        sentence="No free pod slot on {nodes:list}: {used} of {allowed} are in use.",
        forms={"domain": "No free pod slot on {nodes:list} in {domain}: {used} of {allowed} are in use."},
        evidence=("allocatable pods per node", "pods on each node"),
        upstream=(r"node\(s\) pod number exceeded|Too many pods|resources?: pods",),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.SELECTOR_MISMATCH,
        title="Selector matches no usable node",
        meaning="Node selector or node affinity leaves no node, or none that could hold the pods.",
        who=Who.OWNER,
        sentence=(
            "{pods:pod|pods} of {each} {pods:~asks|ask} for nodes with {selector}; the "
            "{nodes:node that has|nodes that have} it ({examples:list}) can hold {fit}, even empty."
        ),
        forms={
            "none": "{pods:pod asks|pods ask} for nodes with {selector}; no node has it.",
            "now": (
                "{pods:pod|pods} of {each} {pods:~asks|ask} for nodes with {selector}; on the "
                "{nodes:node that has|nodes that have} it ({examples:list}) {fit} {fit:~fits|fit} now."
            ),
        },
        evidence=("nodeSelector and affinity of the pods", "labels of the nodes"),
        upstream=SELECTORS,
        hints=(*NOT_PLACED, *DOMAINS),
        never=True,
    ),
    Reason(
        code=ReasonCode.TAINT_NOT_TOLERATED,
        title="Taint not tolerated",
        meaning="The nodes that could hold the pods carry a taint that the pods do not tolerate.",
        who=Who.OWNER,
        sentence=(
            "{nodes:node that could hold it carries|nodes that could hold it carry} the taint {taint}, which its "
            "pods do not tolerate ({examples:list})."
        ),
        evidence=("taints of the nodes", "tolerations of the pods"),
        upstream=TAINTS,
        hints=(*NOT_PLACED, *DOMAINS),
        never=True,
    ),
    Reason(
        code=ReasonCode.POD_AFFINITY,
        title="Pod affinity cannot be met",
        meaning="Pod affinity or anti-affinity refuses every node with room.",
        who=Who.OWNER,
        sentence="Required pod {kind} on {key} keeps it off {nodes:node|nodes} with room ({examples:list}).",
        evidence=("pod affinity terms", "labels of running pods and nodes"),
        upstream=(r"didn't match pod (anti-)?affinity rules", r"didn't satisfy existing pods anti-affinity rules"),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.VOLUME,
        title="Volume cannot be used",
        meaning="A volume claim is missing, unbound, or bound where the pod cannot run.",
        who=Who.OWNER,
        sentence="Volume claim {claim} cannot be used on the {nodes:node|nodes} with room ({examples:list}).",
        evidence=("PersistentVolumeClaim, PersistentVolume, StorageClass",),
        upstream=(
            r"persistentvolumeclaim .* not found",
            r"unbound immediate PersistentVolumeClaims",
            r"volume node affinity conflict",
            r"didn't find available persistent volumes",
        ),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.CLAIM_UNALLOCATABLE,
        title="Resource claim cannot be allocated",
        meaning="Too few nodes publish free devices for a resource claim of the pods.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{fit} of {pods:pod|pods} {fit:~fits|fit}: {without:node has|nodes have} no free device of class "
            "{device_class} ({examples:list})."
        ),
        evidence=("ResourceClaim", "ResourceSlice per node", "DeviceClass"),
        upstream=(
            r"cannot allocate all claims",
            r"ResourceClaim.* (not|no|is)",
        ),
        hints=(*NOT_PLACED, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.GPU_SHAPE,
        title="No device of the asked shape",
        meaning="A fraction, an amount of GPU memory or a MIG profile fits on no single device.",
        who=Who.OWNER,
        sentence="Needs {need} on one device; the device with most room (node {node}) has {have} free.",
        forms={
            "too_large": "Needs {need} on one device; the largest device has {largest:bare}.",
            "unknown": "Needs {need} on one device; no node it may use says how much memory its GPUs have.",
            "devices": (
                "Needs {need} on each of {devices:device|devices} of one node; the best ({node}) has "
                "{have:device|devices} with that much free."
            ),
            "profile": (
                "Needs {need}; {nodes:node offers|nodes offer} that profile, the best ({node}) with {have} free."
            ),
        },
        evidence=("GPU sharing groups per node", "MIG resources per node"),
        upstream=(r"GPU memory", r"mig profile", *GPUS),
        hints=NOT_PLACED,
    ),
    Reason(
        code=ReasonCode.NUMA_SPLIT,
        title="Free GPUs are in two NUMA zones",
        meaning="The node has enough free GPUs, but its kubelet must give them from one NUMA zone.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{node} has {free} free, but at most {best} in one NUMA zone; its kubelet gives a pod's {need} from "
            "one zone only."
        ),
        evidence=("NodeResourceTopology", "kai.scheduler/numa-placement-observed of the pods"),
        upstream=(r"(?i)numa",),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.CONFLICTING_CONSTRAINTS,
        title="Constraints exclude each other",
        meaning="Each constraint alone can be met; together they leave no placement.",
        who=Who.OWNER,
        sentence="No node meets {constraints:list} together; each alone can be met.",
        forms={"ports": "Host port {ports} is taken on the {nodes:node|nodes} with room ({examples:list})."},
        evidence=("every check on every node", "re-runs with single constraints lifted"),
        hints=(*NOT_PLACED, *GPUS, *DOMAINS),
        never=True,
    ),
)
