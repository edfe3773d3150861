"""Codes of gangs that a missing or wrong object keeps from being handled (CONFIG)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import DOMAINS, NOT_PLACED, NOT_READY_GANG
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.NO_PODGROUP,
        title="No PodGroup",
        meaning="The pods belong to no PodGroup, so KAI does not handle them.",
        who=Who.OWNER,
        sentence=(
            "{kind} {name} has no PodGroup: {pods:pod carries|pods carry} no pod-group-name annotation, so "
            "{scheduler} does not see {pods:~it|them}."
        ),
        forms={
            "skipped": (
                "{kind} {name} opts out of KAI's pod grouper ({key}) and nothing else made a PodGroup, so "
                "{scheduler} does not see {pods:pod|pods} of it."
            ),
            "lost": (
                "{pods:pod names|pods name} PodGroup {podgroup}, which does not exist in namespace {namespace}, so "
                "{scheduler} leaves {pods:~it|them} out."
            ),
            "grouper_down": (
                "{kind} {name} has no PodGroup: {component}, which would make it, is down, so {scheduler} does not "
                "see {pods:pod|pods} of it."
            ),
            "warning": "{kind} {name} has no PodGroup; the pod grouper says: {warning}.",
        },
        evidence=("annotation pod-group-name of the pods", "PodGroups of the namespace"),
        upstream=(r"PodGrouperWarning",),
        never=True,
    ),
    Reason(
        code=ReasonCode.WRONG_SCHEDULER,
        title="Pods name another scheduler",
        meaning="schedulerName is not the scheduler that should handle them.",
        who=Who.OWNER,
        sentence=(
            "{pods:pod names|pods name} scheduler {found}, which does not run here; KAI's is called {scheduler} "
            "({examples:list})."
        ),
        forms={
            "member": (
                "{examples:list} {pods:~names|name} scheduler {found}, so {pods:~it gets|they get} no membership: "
                "{scheduler} counts {exist} of {needed:member|members}."
            ),
            "queue_label": (
                "{pods:pod carries|pods carry} the label {key} and {pods:~names|name} scheduler {found}; KAI's is "
                "called {scheduler} ({examples:list})."
            ),
        },
        evidence=("spec.schedulerName of the pods", "name that the scheduler answers to"),
        never=True,
    ),
    Reason(
        code=ReasonCode.NOT_IN_SHARD,
        title="In no shard",
        meaning="Its node-pool label belongs to no SchedulingShard, so no scheduler looks at it.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Node pool {pool} ({key}) has no SchedulingShard, so no scheduler looks at this gang, its queue or the "
            "{nodes:node|nodes} of that pool."
        ),
        evidence=("node-pool label of the PodGroup", "partitionLabelValue of every SchedulingShard"),
        never=True,
    ),
    Reason(
        code=ReasonCode.QUEUE_MISSING,
        title="Queue does not exist",
        meaning="The queue that the PodGroup names does not exist, or not in its shard.",
        who=Who.QUEUE_ADMIN,
        sentence="Queue {queue} does not exist; create it, or name one that does ({known:list}).",
        forms={
            "empty": "The PodGroup names no queue; set the label {key} to one that exists ({known:list}).",
            "default": "It has no label {key}, so it went to queue {queue}, which does not exist ({known:list} do).",
            "shard": (
                "Queue {queue} exists but lacks the label {key}={pool}, so the shard of that node pool does not see it."
            ),
            "other_shard": (
                "Queue {queue} carries the label {key}={found} and belongs to that node pool, while this gang is in "
                "the default one, whose shard does not see it."
            ),
        },
        evidence=("spec.queue of the PodGroup", "Queues of the shard"),
        upstream=(r"Queue '.*' does not exist", r"QueueDoesNotExist"),
        never=True,
    ),
    Reason(
        code=ReasonCode.QUEUE_NOT_LEAF,
        title="Queue has children",
        meaning="Only a queue without children may hold gangs.",
        who=Who.OWNER,
        sentence=(
            "Queue {queue} has {children:child queue|child queues} ({examples:list}); only a leaf queue may hold gangs."
        ),
        evidence=("spec.parentQueue of every Queue",),
        hints=NOT_PLACED,
        never=True,
    ),
    Reason(
        code=ReasonCode.QUEUE_ORPHANED,
        title="Queue's parent is missing",
        meaning="The queue exists, but its parent does not, so the scheduler drops it.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Queue {queue} exists, but its parent {parent} does not, so the scheduler drops {queue} and everything "
            "in it."
        ),
        forms={
            "shard": (
                "Queue {queue} exists, but its parent {parent} lacks the label {key}={pool}, so the shard drops "
                "{queue} as an orphan."
            ),
            "no_parent": "Queue {queue} has no parent queue; this scheduler serves only queues below a parent.",
            "no_parent_in": (
                "Queue {queue} has no parent queue; this scheduler ({version}) serves only queues below a parent."
            ),
        },
        evidence=("spec.parentQueue up to the root", "node-pool label of each queue"),
        upstream=(r"Queue '.*' does not exist", r"QueueDoesNotExist"),
        hints=NOT_PLACED,
        never=True,
    ),
    Reason(
        code=ReasonCode.SUBGROUP_UNKNOWN,
        title="Pod names an unknown subgroup",
        meaning="A pod's subgroup label names no subgroup of its PodGroup, so it does not count.",
        who=Who.OWNER,
        sentence=(
            "{pods:pod names|pods name} subgroup {subgroup}, which the PodGroup does not have ({known:list}); "
            "{pods:~it does|they do} not count ({examples:list})."
        ),
        forms={
            "unlabelled": (
                "{pods:pod has|pods have} no label {key} and the PodGroup has no subgroup default ({known:list}); "
                "{pods:~it does|they do} not count ({examples:list})."
            ),
        },
        evidence=("label kai.scheduler/subgroup-name of the pods", "spec.subGroups"),
        upstream=(r"references subgroup .* which does not exist",),
        never=True,
    ),
    Reason(
        code=ReasonCode.SUBGROUP_TREE_INVALID,
        title="Subgroup tree is broken",
        meaning="Subgroups repeat a name, name a missing parent or form a circle, so the scheduler ignores them all.",
        who=Who.OWNER,
        sentence="The PodGroup's subgroups are ignored; its labelled pods then count for nothing.",
        forms={
            "duplicate": (
                "Two subgroups are called {subgroup}, so the scheduler ignores them all; labelled pods then count "
                "for nothing."
            ),
            "parent": (
                "Subgroup {subgroup} names parent {parent}, which does not exist, so the scheduler ignores all "
                "subgroups; labelled pods then count for nothing."
            ),
            "circle": "Subgroup {subgroup} is its own ancestor (parent {parent}), so it never starts.",
        },
        evidence=("spec.subGroups: names, parents",),
        upstream=(r"references subgroup .* which does not exist",),
        never=True,
    ),
    Reason(
        code=ReasonCode.MINIMUM_UNREACHABLE,
        title="Minimum cannot be reached",
        meaning="The gang asks for more members than can ever exist.",
        who=Who.OWNER,
        sentence="The gang needs {needed:pod|pods}, but its owner {owner} makes only {makes:bare}.",
        forms={
            "children": "Subgroup set {subgroup} needs {needed:child|children} and has {makes}.",
        },
        evidence=("minimums of the PodGroup", "replicas of the owner"),
        hints=NOT_READY_GANG,
        never=True,
    ),
    Reason(
        code=ReasonCode.TOPOLOGY_MISSING,
        title="Topology does not exist",
        meaning="The PodGroup names a Topology object that does not exist.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "Topology {topology} does not exist ({known:Topology|Topologies} in the cluster); create it or take "
            "the constraint off the gang."
        ),
        evidence=("topologyConstraint of the PodGroup", "Topology objects"),
        upstream=(r"Requested topology .* does not exist",),
        never=True,
    ),
    Reason(
        code=ReasonCode.TOPOLOGY_LEVEL_UNKNOWN,
        title="Topology level unknown",
        meaning="The level that the gang asks for is not in its Topology.",
        who=Who.OWNER,
        sentence=(
            "Level {level} is not in Topology {topology} (levels: {known:list}); the scheduler skips the gang "
            "without a word."
        ),
        forms={
            "inverted": (
                "Preferred level {level} is broader than the required level {required} in Topology {topology}; the "
                "scheduler skips the gang without a word."
            ),
            "no_levels": "Topology {topology} has no levels, so no domain can be formed for {level}.",
            "no_constraint": "A topology {topology} is named without a required or preferred level.",
        },
        evidence=("topologyConstraint of the PodGroup", "levels of the Topology"),
        upstream=(r"does not contain a level with this name",),
        hints=NOT_PLACED,
        never=True,
    ),
    Reason(
        code=ReasonCode.TOPOLOGY_LABEL_MISSING,
        title="Nodes lack a topology label",
        meaning="Nodes that lack one of the Topology's labels are in no domain and cannot host the gang.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{nodes:node lacks|nodes lack} the label {label} of Topology {topology} and {nodes:~is|are} in no "
            "domain ({examples:list}); with it the gang would fit."
        ),
        evidence=("labels of the nodes", "levels of the Topology"),
        hints=(*DOMAINS, *NOT_PLACED),
        never=True,
    ),
    Reason(
        code=ReasonCode.PRIORITY_CLASS_MISSING,
        title="PriorityClass does not exist",
        meaning="The named PriorityClass does not exist; the scheduler falls back to the default without a word.",
        who=Who.OWNER,
        sentence="PriorityClass {priority_class} does not exist; the gang runs with the default priority {default}.",
        evidence=("priorityClassName of the PodGroup", "PriorityClasses"),
    ),
    Reason(
        code=ReasonCode.OBJECT_MISSING,
        title="A named object is missing",
        meaning="An object that the pods need does not exist.",
        who=Who.OWNER,
        sentence=(
            "{kind} {name} does not exist in namespace {namespace}; {pods:pod needs|pods need} it ({examples:list})."
        ),
        evidence=("references of the pods", "objects of that kind"),
        upstream=(r"(?i)(configmap|resourceclaim|persistentvolumeclaim)s? .*not found", r"Missing required configmap"),
        hints=NOT_PLACED,
        never=True,
    ),
    Reason(
        code=ReasonCode.KIND_NOT_SERVED,
        title="A kind is not served",
        meaning="The API server does not serve a kind that this gang needs.",
        who=Who.CLUSTER_ADMIN,
        sentence="The API server does not serve {kind}, which {component} needs.",
        forms={"stage": "{kind} {name} cannot be carried out: {problem:text}."},
        evidence=("CustomResourceDefinitions and their served versions",),
        never=True,
    ),
    Reason(
        code=ReasonCode.FEATURE_OFF,
        title="A feature is off",
        meaning="The component could handle this, but the feature is not enabled.",
        who=Who.PLATFORM,
        sentence="{component} refuses its pods because {feature} is off there: {problem:text}.",
        forms={
            "action": (
                "Shard {shard} does not run the action {action}; with it the scheduler would start this gang by {noun}."
            ),
            "stage": "{object} is refused by {controller} because a feature is off there: {problem:text}.",
        },
        evidence=("configuration of the component", "its own words"),
    ),
    Reason(
        code=ReasonCode.SETTING_IGNORED,
        title="A setting is not read",
        meaning="The object carries a setting in a place where the component does not read it.",
        who=Who.OWNER,
        sentence=(
            "{pods:pod carries|pods carry} the annotation {found}={value}, which KAI does not read; it reads "
            "{wanted} with a plain number, so {pods:~it asks|they ask} for no GPU."
        ),
        forms={
            "value": (
                "{pods:pod carries|pods carry} {found}={value}, which KAI cannot read as a number, so "
                "{pods:~it asks|they ask} for no GPU."
            ),
        },
        evidence=("annotations of the pods", "keys that KAI reads"),
    ),
    Reason(
        code=ReasonCode.LABEL_MISSING,
        title="A needed label is missing",
        meaning="A node, claim or queue lacks a label that placement or quota needs.",
        who=Who.CLUSTER_ADMIN,
        sentence="{examples:list} {count:~lacks|lack} the label {label}, which placement needs.",
        forms={
            "claim": (
                "ResourceClaim {claim} is shared by name and lacks the label {label}={queue}; KAI takes a shared "
                "GPU claim only with the label of its pods' queue."
            ),
            "claim_other": (
                "ResourceClaim {claim} carries {label}={found}, its pods are in queue {queue}; KAI takes a shared "
                "GPU claim only with their queue's label."
            ),
            "gpu_memory": (
                "The pods ask for {asked} MiB of GPU memory, but {examples:list} {count:~lacks|lack} the label "
                "{label}, so no share can be worked out."
            ),
        },
        evidence=("labels of the object",),
        upstream=(r"does not have a queue label", r"gpu memory count on the node was not synced"),
        hints=NOT_PLACED,
        never=True,
    ),
    Reason(
        code=ReasonCode.EMPTY_PODGROUP,
        title="No pod joins the PodGroup",
        meaning="No pod carries the annotation that names this PodGroup.",
        who=Who.OWNER,
        sentence=(
            "No pod carries the annotation pod-group-name={name}, so this PodGroup of {needed:pod|pods} stays empty."
        ),
        forms={
            "elsewhere": (
                "No pod carries pod-group-name={name}; the {pods:pod|pods} named like it ({examples:list}) joined "
                "{groups:other PodGroup|other PodGroups} instead."
            ),
        },
        evidence=("annotation pod-group-name of every pod", "owner of the PodGroup"),
        never=True,
    ),
)
