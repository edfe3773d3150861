"""Codes of gangs that a queue rule keeps waiting (POLICY)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.reason import Reason

_SHORT_WORDS = r"no nodes with enough resources were found|Resources were (not )?found for|Unable to schedule"

REASONS = (
    Reason(
        code=ReasonCode.QUEUE_LIMIT,
        title="Queue limit reached",
        meaning="The queue or one of its parents may not use more, however much is free.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Queue {queue} may use {limit}, uses {used:bare}; this gang needs {need:bare} more, so the limit would "
            "have to be {wanted:bare}."
        ),
        forms={
            "alone": (
                "Queue {queue} may use {limit}; this gang alone needs {need:bare}, so it can never start under "
                "that limit."
            ),
            "zero": "Queue {queue} has no {resource} limit in its spec, which counts as 0; this gang needs {need}.",
        },
        evidence=("Queue spec limits up to the root", "use of the queue by its bound pods"),
        upstream=(r"quota has reached the allowable limit", r"OverLimit"),
    ),
    Reason(
        code=ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
        title="Non-preemptible over quota",
        meaning="Non-preemptible gangs must stay within the quota of their queue and of every parent.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Non-preemptible, and queue {queue} has a quota of {quota} for such gangs, {used:bare} used; this one "
            "needs {need:bare} more."
        ),
        forms={
            "rounding": (
                "Non-preemptible, and {used:bare} + {need:bare} is just over the quota of {quota} of queue {queue} "
                "in binary arithmetic; a quota of {wanted:bare} starts it."
            ),
            "many": (
                "Non-preemptible, and queue {queue} has too little quota of {resources:list}: {quota} for "
                "{need:bare} needed ({used:bare} used)."
            ),
            "zero": (
                "Non-preemptible, and queue {queue} has no quota of {resources:list}; such gangs must stay within "
                "quota in each. It needs {need}."
            ),
        },
        evidence=("Queue spec quotas up to the root", "non-preemptible use of the queue"),
        upstream=(r"Non-preemptible workload is over quota", r"NonPreemptibleOverQuota"),
    ),
    Reason(
        code=ReasonCode.FAIR_SHARE_REACHED,
        title="Queue has had its share",
        meaning="Preemptible gangs of other queues hold what it needs and its own queue has no claim to it.",
        who=Who.WAIT,
        sentence=(
            "Queue {queue} uses {used} of its fair share of {share:bare}; {need:bare} more must wait until "
            "{holders:list} {verb} room."
        ),
        evidence=("fair share of the queue in this cycle", "preemptible holders in other queues"),
        hints=(_SHORT_WORDS,),
    ),
    Reason(
        code=ReasonCode.HOLDERS_PROTECTED,
        title="Holders are protected",
        meaning="Its queue has a claim to what it needs, and protection is all that keeps the holders.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Queue {queue} is entitled to {quota}, uses {used:bare}; {held} are held by {why} gangs of queue "
            "{other} ({other_used:bare} of quota {other_quota:bare})."
        ),
        forms={
            "min_runtime": (
                "Queue {queue} may reclaim {need}, but {holders:list} {verb} protected by a minimum run time until "
                "{until:time}."
            ),
        },
        evidence=("quota and use of both queues", "preemptibility and minimum run time of the holders"),
        hints=(_SHORT_WORDS,),
    ),
    Reason(
        code=ReasonCode.QUEUED_BEHIND,
        title="Another gang goes first",
        meaning="It would fit alone, but gangs ahead of it in the order take the room.",
        who=Who.WAIT,
        sentence=(
            "Fits alone ({need}), but {ahead:list} {ahead_count:~goes|go} first and {ahead_count:~takes|take} the "
            "room: {why}."
        ),
        forms={
            "bind_refused": (
                "Fits in the {free} free, but {ahead} is older, gets them first in every cycle and its bind is "
                "refused each time."
            ),
        },
        evidence=("order of queues and gangs in this cycle", "replay of the gang alone"),
        hints=(_SHORT_WORDS,),
    ),
    Reason(
        code=ReasonCode.NAMESPACE_QUOTA,
        title="Namespace quota used up",
        meaning="A ResourceQuota of the namespace keeps the missing pods from being created.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{exist} of {needed:pod exists|pods exist}: ResourceQuota {name} allows {hard} ({resource}), "
            "{used:bare} used, and pending pods count."
        ),
        forms={
            "unread": "{exist} of {needed:pod exists|pods exist}: ResourceQuota {name} in namespace {namespace} refuses the rest."
        },
        evidence=("ResourceQuota status", "events about refused pod creation"),
        upstream=(r"exceeded quota",),
        hints=(_SHORT_WORDS, r"Waiting for \d+ pods"),
    ),
    Reason(
        code=ReasonCode.PREEMPTION_DELAY,
        title="Within its preemption delay",
        meaning="The gang may not cause evictions before a set time.",
        who=Who.WAIT,
        sentence=(
            "May not cause evictions before {until:time} (preemption delay of {delay:span}); {holders:list} can "
            "make room then."
        ),
        evidence=("spec.preemptionDelay of the PodGroup", "creation and last eviction time"),
        upstream=(r"PreemptionDelayNotElapsed", r"within its preemption delay window"),
        hints=(_SHORT_WORDS,),
    ),
)
