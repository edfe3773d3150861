"""The rules that gangdash brings along, by number, with the settings they start with."""

from __future__ import annotations

from apps.alerts.rules.base import Param, Rule, Source
from apps.alerts.rules.blindness import blind
from apps.alerts.rules.capacity import capacity_loss, fragmentation, limit_wall, starvation
from apps.alerts.rules.progress import flapping, stuck_stage
from apps.alerts.rules.promises import slo_burn
from apps.alerts.rules.verdicts import disagreement, head_fits, never_fits, silent_wait, stale_condition
from apps.delivery.messages import Severity

MINUTE, HOUR, DAY = 60, 3600, 86_400
_QUEUES_NOTE = "Queues are known as they were since gangdash keeps them for alerts."
_SAMPLES_NOTE = "Capacity older than a day is known once an hour."

_LIST = (
    Rule("head_fits", 1, "Fits and does not start",
         "A placement exists and the scheduler has not used it for three of its periods.",
         Severity.PAGE, 2 * MINUTE, 5 * MINUTE, (Source.REASONS,), head_fits),
    Rule("never_fits", 2, "Never fits",
         "A gang that not even an empty cluster could hold, or that is larger than its queue's limit.",
         Severity.TICKET, 0, 5 * MINUTE, (Source.REASONS,), never_fits, (Source.QUEUES,), note=_QUEUES_NOTE),
    Rule("slo_burn", 3, "Start objective burns",
         "Too many gangs start later than was promised, in a short or in a long window.",
         Severity.TICKET, 0, 15 * MINUTE, (Source.ATTEMPTS,), slo_burn, (Source.REASONS,),
         (Param("fast_seconds", "Short window", 2 * HOUR, 10 * MINUTE, DAY, "s"),
          Param("fast_burn", "Burn rate in the short window", 6.7, 1, 1000),
          Param("slow_seconds", "Long window", DAY, HOUR, 7 * DAY, "s"),
          Param("slow_burn", "Burn rate in the long window", 2.8, 1, 1000),
          Param("missed", "Missed starts at least", 3, 1, 1000)),
         note="Objectives and quotas are taken as they are now.", ending="The budget burns slower again"),
    Rule("stuck_stage", 4, "Stuck in a stage",
         "A gang stays in one stage for three times as long as 99 of 100 runs needed; names who moves it on.",
         Severity.TICKET, 0, 5 * MINUTE, (Source.ATTEMPTS, Source.REASONS), stuck_stage, (),
         (Param("times", "Times what 99 of 100 runs needed", 3, 1, 100),
          Param("least_seconds", "Not before", 5 * MINUTE, 10, DAY, "s"),
          Param("runs", "Runs that make a measure", 20, 1, 10_000),
          Param("unknown_seconds", "Limit without a measure", 30 * MINUTE, MINUTE, 7 * DAY, "s"))),
    Rule("silent_wait", 5, "Silent wait",
         "Gangs were handed to the scheduler, and it has said nothing of them.",
         Severity.TICKET, 5 * MINUTE, 5 * MINUTE, (Source.STANCES, Source.REASONS), silent_wait, (Source.STATES,)),
    Rule("flapping", 6, "Flapping",
         "A gang goes back and forth between reasons, is evicted again and again, or is bound in vain.",
         Severity.TICKET, 0, 15 * MINUTE, (Source.REASONS,), flapping, (Source.ATTEMPTS,),
         (Param("turns", "Returns to a reason", 4, 1, 100),
          Param("turn_seconds", "Within", 30 * MINUTE, MINUTE, DAY, "s"),
          Param("evictions", "Evictions", 3, 1, 100),
          Param("eviction_seconds", "Within", 2 * HOUR, MINUTE, DAY, "s"))),
    Rule("fragmentation", 7, "Fragmentation",
         "Enough GPUs are free for the oldest gang of a cause, but no one place has them.",
         Severity.TICKET, 15 * MINUTE, 10 * MINUTE, (Source.REASONS, Source.CAPACITY), fragmentation,
         note=_SAMPLES_NOTE),
    Rule("starvation", 8, "Starvation beside borrowing",
         "A queue holds less than it deserves and has work that waits, while a sibling holds more than it deserves.",
         Severity.TICKET, 20 * MINUTE, 10 * MINUTE, (Source.REASONS, Source.CAPACITY, Source.QUEUES), starvation,
         note=f"{_QUEUES_NOTE} {_SAMPLES_NOTE}"),
    Rule("capacity_loss", 9, "Capacity lost",
         "GPUs that pods may use went away, or a whole domain has none left; lists gangs that can no longer fit.",
         Severity.PAGE, 0, 10 * MINUTE, (Source.CAPACITY,), capacity_loss, (Source.REASONS,),
         (Param("share", "Part of the cluster's GPUs", 5, 0, 100, "%"),
          Param("window_seconds", "Compared with the best of the last", DAY, 10 * MINUTE, 7 * DAY, "s")),
         note=_SAMPLES_NOTE, ending="The GPUs are back, or the loss is older than what it is compared with"),
    Rule("limit_wall", 10, "Limit wall",
         "A queue stood at its limit for most of the day while the cluster had free GPUs.",
         Severity.INFO, 0, HOUR, (Source.CAPACITY, Source.QUEUES), limit_wall, (),
         (Param("share", "Part of the time", 60, 1, 100, "%"),
          Param("window_seconds", "Over the last", DAY, HOUR, 7 * DAY, "s")),
         note=f"{_QUEUES_NOTE} {_SAMPLES_NOTE}", ending="It was below its limit for longer"),
    Rule("disagreement", 11, "Disagreement with the scheduler",
         "Too many verdicts contradict what the scheduler says: for those who maintain gangdash.",
         Severity.INFO, 5 * MINUTE, 15 * MINUTE, (Source.STANCES, Source.REASONS), disagreement, (),
         (Param("share", "Part of all gangs", 1, 0, 100, "%"),)),
    Rule("blind", 12, "Blind",
         "A cluster cannot be read or analysed, so that what is said of it is old; silences rules 1 to 10.",
         Severity.PAGE, 0, 2 * MINUTE, (Source.READINGS,), blind, ending="It is read and analysed again"),
    Rule("stale_condition", 13, "Stale condition",
         "A gang runs while its own status still says that it cannot be scheduled.",
         Severity.INFO, 10 * MINUTE, 10 * MINUTE, (Source.REASONS,), stale_condition),
)  # fmt: skip

RULES = {rule.key: rule for rule in _LIST}
SILENT_WHEN_BLIND = frozenset(rule.key for rule in _LIST if rule.number <= 10)
CUSTOM_NEEDS = (Source.REASONS,)
