"""An alert as a message: what page, REST and report say of its first gang, its numbers, and links.

Pure but for the addresses of pages. Texts are raw; what a channel may not be told is hidden by the veil it brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from apps.alerts.models import Alert
from apps.delivery.messages import Fact, Line, Link, Message, Severity
from apps.workloads.models import Gang
from apps.workloads.veil import Veil
from gangdash.engine.identifiers import Unit
from gangdash.engine.verdict import Certainty, Verdict, Who
from gangdash.reasons.wording import amount, counted, duration, number

LINES_SHOWN = 8
FIXES_SHOWN = 3
MUTE_HOURS = 1
_VERDICT_WORDS = {Verdict.NODE: "Node state"}
_NUMBERS = frozenset(Unit) - {Unit.NAME}
_HELPS = {"yes": "Yes", "no": "No", "unknown": "Not known"}


@dataclass(frozen=True, slots=True)
class Member:
    """One gang that may be named, with the newest explanation of it; None where there is none."""

    gang: Gang
    document: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Told:
    """What one channel may be told: the gangs by name, and how many more there are."""

    members: Sequence[Member]
    hidden: int
    veil: Veil

    def text(self, text: str, alert: Alert) -> str:
        return self.veil.text(text, cluster=alert.cluster.name)


def verdict_word(verdict: str) -> str:
    """Return a verdict in words, the first of them large."""
    return _VERDICT_WORDS.get(Verdict(verdict), verdict.replace("_", " ").capitalize()) if verdict else ""


def who_word(who: str) -> str:
    return who.replace("_", " ").capitalize()


def words(identifier: str) -> str:
    return identifier.replace("_", " ").capitalize()


def alert_message(*, alert: Alert, told: Told, as_of: datetime) -> Message:
    """Return the first message about a cause."""
    document = _first_document(told)
    title, text = told.text(alert.title, alert), _text(alert, told, document)
    who = who_word(alert.who) if alert.who else ""
    label = verdict_word(alert.verdict) or alert.rule.title
    acts = f" {who} acts." if alert.who not in {"", Who.NOBODY, Who.WAIT} else ""
    return Message(
        title=title,
        text=text,
        label=label,
        code=alert.code,
        cluster=alert.cluster.name,
        lines=tuple(_lines(alert, told, as_of)),
        facts=tuple(_facts(alert, told, document)),
        fixes=tuple(_fixes(alert, told, document)),
        links=tuple(_links(alert, told, as_of)),
        context=_context(alert, document, as_of),
        summary=f"{label} on {alert.cluster.name}: {title}. {text}{acts}",
        short=_short(alert, told, who),
        severity=Severity(alert.severity),
        document=_veiled(document, alert, told),
    )


def _first_document(told: Told) -> Mapping[str, Any]:
    return next((member.document for member in told.members if member.document), {})


def _veiled(document: Mapping[str, Any], alert: Alert, told: Told) -> dict[str, Any] | None:
    if not document:
        return None
    hidden: dict[str, Any] = told.veil.value(dict(document), cluster=alert.cluster.name)
    return hidden


def _text(alert: Alert, told: Told, document: Mapping[str, Any]) -> str:
    """Return the sentence of the first gang where the alert is about its reason, and what the rule adds."""
    is_same = document.get("code") == alert.code
    parts = [str(document.get("sentence", "")) if is_same else "", alert.text]
    return told.text(" ".join(part for part in parts if part), alert)


def _lines(alert: Alert, told: Told, as_of: datetime) -> Iterator[Line]:
    for member in told.members[:LINES_SHOWN]:
        gang = member.gang
        yield Line(f"{gang.namespace}/{gang.name}", _need(member, as_of), gang_url(alert, gang, as_of))
    more, hidden = max(len(told.members) - LINES_SHOWN, 0), told.hidden
    if more:
        yield Line(f"and {counted(more, 'more gang', 'more gangs')}", "", alert_url(alert))
    if hidden:
        yield Line(counted(hidden, "gang of another namespace", "gangs of other namespaces"))


def _need(member: Member, as_of: datetime) -> str:
    """Say what a gang needs, by how much it is short, and for how long it waits."""
    parts = list(_shortfall(member.document or {}))
    if not parts and member.gang.gpus_waiting:
        parts.append(f"needs {counted(member.gang.gpus_waiting, 'GPU', 'GPUs')}")
    if member.gang.is_waiting and member.gang.waiting_since:
        parts.append(f"waits {duration((as_of - member.gang.waiting_since).total_seconds())}")
    return ", ".join(parts)


def _shortfall(document: Mapping[str, Any]) -> Iterator[str]:
    binding = document.get("binding") or []
    if not binding or binding[0].get("unit") not in _NUMBERS:
        return
    need, have, unit = binding[0]["need"], binding[0]["have"], Unit(binding[0]["unit"])
    if isinstance(need, str):
        return
    yield f"needs {amount(need, unit)}"
    if isinstance(have, int | float) and need > have:
        short = amount(need - have, unit)
        yield f"short by {number(need - have) if unit in {Unit.GPU, Unit.PODS, Unit.NODES} else short}"


def _facts(alert: Alert, told: Told, document: Mapping[str, Any]) -> Iterator[Fact]:
    if alert.who:
        yield Fact("Who acts", who_word(alert.who))
    if not document:
        return
    waiting, scheduler = document["waiting"], document["scheduler"]
    yield Fact("Will waiting help?", told.text(_helps(waiting), alert))
    said = f"{words(scheduler['match'])}: {scheduler['text']}" if scheduler["text"] else "Nothing"
    yield Fact("The scheduler says", told.text(said, alert))
    yield Fact("Certainty", words(document["certainty"] or Certainty.NO_VERDICT))


def _helps(waiting: Mapping[str, Any]) -> str:
    until = f", until {waiting['until']}" if waiting["until"] else ""
    on = f": {', '.join(waiting['on'][:3])}" if waiting["on"] else ""
    return f"{_HELPS[waiting['helps']]}{until}{on}"


def _fixes(alert: Alert, told: Told, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cheapest changes that were re-run and start the gang, with who may make them and what they cost."""
    verified = [fix for fix in document.get("fixes") or [] if fix["verified"]]
    for fix in verified[:FIXES_SHOWN]:
        costs = [
            f"{verb} {counted(len(fix[name]), 'gang', 'gangs')}"
            for name, verb in (("starts", "Starts"), ("moves", "moves"), ("evicts", "evicts"), ("delays", "delays"))
            if fix.get(name)
        ]
        effect = ", ".join(costs) if costs else "Evicts nobody"
        yield told.text(f"{who_word(fix['who'])}: {fix['sentence'].rstrip('.')}. {effect}.", alert)


def _links(alert: Alert, told: Told, as_of: datetime) -> Iterator[Link]:
    cluster = {"cluster": alert.cluster.name}
    if told.members:
        gang = told.members[0].gang
        yield Link("Open gang", gang_url(alert, gang, as_of), "open_gang")
        if alert.verdict in {Verdict.NO_FIT, Verdict.NODE}:
            query = urlencode({**cluster, "gang": gang.public_id})
            yield Link("Show on map", f"{reverse('dashboard:topology')}?{query}", "open_map")
    else:
        yield Link("Open alert", alert_url(alert), "open_alert")
    if alert.rule.key == "slo_burn":
        yield Link("Open objectives", f"{reverse('dashboard:objectives')}?{urlencode(cluster)}", "open_objectives")
    if alert.verdict == Verdict.POLICY:
        yield Link("Open queues", f"{reverse('dashboard:queues')}?{urlencode(cluster)}", "open_queues")
    query = urlencode({"alert": alert.pk, "hours": MUTE_HOURS})
    yield Link(f"Mute {MUTE_HOURS} h", f"{reverse('dashboard:mute-new')}?{query}", "mute")


def gang_url(alert: Alert, gang: Gang, as_of: datetime) -> str:
    """Return the page of a gang, pinned to the moment that the message speaks of.

    No message is lost over a name that no address can carry: that gang is reached through the alert.
    """
    names = [alert.cluster.name, gang.namespace, gang.name]
    if any(not name or "/" in name for name in names):
        return alert_url(alert)
    path = reverse("dashboard:gang", args=names)
    return f"{path}?{urlencode({'uid': gang.uid, 'at': as_of.isoformat().replace('+00:00', 'Z')})}"


def alert_url(alert: Alert) -> str:
    return reverse("dashboard:alert", args=[alert.pk])


def _context(alert: Alert, document: Mapping[str, Any], as_of: datetime) -> str:
    snapshot = str(document.get("digest", "")).removeprefix("sha256:")[:8]
    made = f", snapshot {snapshot}, engine {document['engine']}" if snapshot else ""
    lasts = f" for {duration(alert.rule.for_seconds)}" if alert.rule.for_seconds else ""
    return f"As of {as_of:%H:%M:%S} UTC{made}. Rule: {alert.rule.title}{lasts}."


def _short(alert: Alert, told: Told, who: str) -> str:
    """Return the line of a digest."""
    parts = [
        told.text(" ".join(part for part in (alert.code, alert.subject) if part) or alert.title, alert),
        counted(alert.gang_count, "gang", "gangs") if alert.gang_count else "",
        counted(alert.gpus, "GPU", "GPUs") if alert.gpus else "",
        who.lower(),
    ]
    return ", ".join(part for part in parts if part)


def update_message(*, alert: Alert, told: Told, left: Sequence[str], now: datetime) -> Message:
    """Return what changed since the last message: how many gangs, how severe, who left and how."""
    title = f"{now:%H:%M}, {told.text(alert.title, alert)}"
    parts = ["; ".join(left[:3]) + "." if left else ""]
    if alert.told_severity and alert.told_severity != alert.severity:
        parts.append(f"Severity is now {alert.severity}.")
    if alert.told_gangs != alert.gang_count:
        parts.append(f"{counted(alert.told_gangs, 'gang', 'gangs')} before, {alert.gang_count} now.")
    text = told.text(" ".join(part for part in parts if part), alert)
    return _follow_up(alert, title, text)


def resolved_message(*, alert: Alert, told: Told) -> Message:
    """Return the end of a cause, with what ended it."""
    lasted = ""
    if alert.fired_at and alert.resolved_at:
        lasted = f" after {duration((alert.resolved_at - alert.fired_at).total_seconds())}"
    return _follow_up(alert, f"Resolved{lasted}.", told.text(alert.resolution, alert))


def acknowledged_message(*, alert: Alert) -> Message:
    """Return that someone takes care."""
    return _follow_up(alert, f"Acknowledged by {alert.acknowledged_name}.", alert.acknowledged_note)


def _follow_up(alert: Alert, title: str, text: str) -> Message:
    label = verdict_word(alert.verdict) or alert.rule.title
    return Message(
        title=title,
        text=text,
        label=label,
        code=alert.code,
        cluster=alert.cluster.name,
        links=(Link("Open alert", alert_url(alert), "open_alert"),),
        summary=f"{label} on {alert.cluster.name}: {title} {text}".strip(),
        severity=Severity(alert.severity),
    )
