"""Codes of gangs that a queue rule keeps waiting (POLICY)."""

from __future__ import annotations

from gangdash.engine.verdict import ReasonCode, Who
from gangdash.reasons.patterns import AMOUNTS, DOMAINS, GPUS, NOT_PLACED, NOT_READY_GANG
from gangdash.reasons.reason import Reason

REASONS = (
    Reason(
        code=ReasonCode.QUEUE_LIMIT,
        title="Queue limit reached",
        meaning="The queue or one of its parents may not use more, however much is free.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Queue {queue} may use {limit} and uses {used:bare}; this gang needs {need:bare} more, which takes a "
            "limit of {wanted:bare}."
        ),
        forms={
            "alone": (
                "Queue {queue} may use {limit}; this gang alone needs {need:bare}, so it never starts under that limit."
            ),
            "zero": "Queue {queue} names no {resource} limit, which counts as 0; this gang needs {need}.",
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
            "Non-preemptible gangs must stay within quota: queue {queue} has {quota}, {used:bare} used, and this "
            "one needs {need:bare} more."
        ),
        forms={
            "rounding": (
                "Non-preemptible, and {used:bare} + {need:bare} is a hair over the quota of {quota} of queue "
                "{queue} in the scheduler's arithmetic; {wanted:bare} would do."
            ),
            "many": (
                "Non-preemptible gangs must stay within quota: queue {queue} has too little of {resources:list} "
                "({quota}, {used:bare} used, {need:bare} needed)."
            ),
            "zero": (
                "Non-preemptible gangs must stay within quota, and queue {queue} has a quota of 0 for "
                "{resources:list}; this one needs {need}."
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
            "Queue {queue} uses {used} of its fair share of {share:bare}; {need:bare} more would pass it, so it waits "
            "until {holders:list} {count:~makes|make} room."
        ),
        forms={
            "others_within": (
                "Queue {queue} may take {lacks} more only from queues above their share; {other} holds {held} of its "
                "{share:bare}, so {holders:list} {count:~stays|stay}."
            ),
            "surplus": (
                "Queue {queue} may take only what other queues hold above their share: {spare} of the {lacks:bare} "
                "it lacks, so {holders:list} {count:~stays|stay}."
            ),
            "unlimited": (
                "Queue {queue} may not take {need} from {holders:list}: queue {other} has an unlimited quota, so "
                "nothing that it holds is above its share."
            ),
            "rules": (
                "Queue {queue} may not take {need} from {holders:list}: the fair shares of the queues do not allow it."
            ),
        },
        evidence=("fair share of the queue in this cycle", "preemptible holders in other queues"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.HOLDERS_PROTECTED,
        title="Holders are protected",
        meaning="Its queue has a claim to what it needs, and protection is all that keeps the holders.",
        who=Who.QUEUE_ADMIN,
        sentence=(
            "Queue {queue} may use {quota} by right and uses {used:bare}; queue {other} holds {held} (quota "
            "{other_quota:bare}) by non-preemptible gangs, which stay."
        ),
        forms={
            "min_runtime": (
                "Queue {queue} may take {need} from {holders:list}, which {count:~is|are} protected by a minimum "
                "run time until {until:time}."
            ),
            "min_runtime_open": (
                "Queue {queue} may take {need} from {holders:list}, which {count:~is|are} protected by a minimum "
                "run time."
            ),
        },
        evidence=("quota and use of both queues", "preemptibility and minimum run time of the holders"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.QUEUED_BEHIND,
        title="Another gang goes first",
        meaning="It would fit alone, but gangs ahead of it in the order take the room.",
        who=Who.WAIT,
        sentence="Fits alone ({need}), but {ahead:list} {count:~goes|go} first in this cycle.",
        forms={
            "older": (
                "Fits alone ({need}), but {ahead:list}, older and of the same priority, {count:~goes|go} first and "
                "{count:~takes|take} the room."
            ),
            "priority": (
                "Fits alone ({need}), but {ahead:list} of higher priority {count:~goes|go} first and "
                "{count:~takes|take} the room."
            ),
            "queue": (
                "Fits alone ({need}), but {ahead:list} of another queue {count:~goes|go} first: queue {queue} is "
                "behind in this cycle's order."
            ),
            "bind_refused": (
                "Fits in the {free} free, but {first} is given them first in every cycle, and its bind is refused "
                "each time."
            ),
        },
        evidence=("order of queues and gangs in this cycle", "replay of the gang alone"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *DOMAINS),
    ),
    Reason(
        code=ReasonCode.NAMESPACE_QUOTA,
        title="Namespace quota used up",
        meaning="A ResourceQuota of the namespace keeps the missing pods from being created.",
        who=Who.CLUSTER_ADMIN,
        sentence=(
            "{exist} of {needed:pod|pods} {exist:~exists|exist}: ResourceQuota {name} allows {hard} ({resource}), "
            "{used:bare} used, and pending pods count."
        ),
        forms={
            "unread": (
                "{exist} of {needed:pod|pods} {exist:~exists|exist}: ResourceQuota {name} in namespace {namespace} "
                "refuses the rest."
            ),
        },
        evidence=("ResourceQuota status", "events about refused pod creation"),
        upstream=(r"exceeded quota",),
        hints=(*NOT_PLACED, *NOT_READY_GANG),
    ),
    Reason(
        code=ReasonCode.PREEMPTION_DELAY,
        title="Within its preemption delay",
        meaning="The gang may not cause evictions before a set time.",
        who=Who.WAIT,
        sentence=(
            "May not cause evictions before {until:time} (preemption delay {delay:span}); until then "
            "{holders:list} stay."
        ),
        evidence=("spec.preemptionDelay of the PodGroup", "creation and last eviction time"),
        upstream=(r"PreemptionDelayNotElapsed", r"within its preemption delay window"),
        hints=(*NOT_PLACED, *GPUS, *AMOUNTS, *DOMAINS),
    ),
)
