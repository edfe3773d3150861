"""Both documents as text for a terminal: the sentence first, then what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gangdash.documents.model import BindingEntry, CycleGang, Diagnosis, ExplanationDocument, FixEntry, NodeEntry
from gangdash.documents.times import parse_stamp
from gangdash.engine.identifiers import Unit
from gangdash.engine.verdict import Verdict
from gangdash.reasons.wording import amount, clean, counted, duration, listed, number

_LABEL_WIDTH = 10
_SHOWN = 5
_NOT_WAITING = frozenset({Verdict.HEALTHY, Verdict.VIOLATED})


def diagnosis_text(diagnosis: Diagnosis, *, cycle_only: bool = False) -> str:
    """Return one file's answer; with ``cycle_only`` a row per gang instead of explanations."""
    blocks = [_headline(diagnosis)]
    if cycle_only:
        blocks.append("\n".join(_gang_row(gang) for gang in diagnosis.cycle.gangs))
    blocks += [explanation_text(entry) for entry in diagnosis.explanations]
    notes = "\n".join(_notes(diagnosis))
    return "\n\n".join(block for block in (*blocks, notes) if block) + "\n"


def explanation_text(entry: ExplanationDocument) -> str:
    """Return one gang's explanation as a block of lines."""
    return "\n".join([_title(entry), f"  {clean(entry.sentence)}", *_lines(entry)])


def _headline(diagnosis: Diagnosis) -> str:
    waiting = [entry for entry in diagnosis.explanations if entry.verdict not in _NOT_WAITING]
    verdicts = Counter(str(entry.verdict) for entry in waiting)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    said = f"{counted(len(waiting), 'gang waits', 'gangs wait')} ({counts})" if waiting else "nothing to explain"
    gangs = counted(len(diagnosis.cycle.gangs), "gang", "gangs")
    return f"{clean(diagnosis.snapshot)} as of {diagnosis.as_of}: {gangs}, {said}"


def _gang_row(gang: CycleGang) -> str:
    pods = Counter(str(pod.outcome) for pod in gang.pods)
    said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(pods.items()))
    action = f" by {gang.action}" if gang.action else ""
    return f"{gang.outcome:<14} {clean(gang.namespace)}/{clean(gang.name)} ({clean(gang.queue)}): {said}{action}"


def _title(entry: ExplanationDocument) -> str:
    waited = ""
    if entry.waiting_since and entry.verdict not in _NOT_WAITING:
        waited = f", waits {duration(parse_stamp(entry.as_of) - parse_stamp(entry.waiting_since))}"
    kind = "" if entry.gang.kind == "PodGroup" else f"{clean(entry.gang.kind)} "
    who = entry.who.replace("_", " ")
    return f"{kind}{clean(entry.gang.key)}  {entry.verdict} {entry.code}  ({entry.certainty}, who acts: {who}{waited})"


def _lines(entry: ExplanationDocument) -> Iterator[str]:
    yield from _labelled("needs", (_constraint(item) for item in entry.binding))
    yield from _labelled("met", (_constraint(item) for item in entry.slack))
    yield from _labelled("members", _members(entry))
    yield from _labelled("nodes", (_node(group) for group in entry.nodes))
    yield from _labelled("held by", _holders(entry))
    yield from _labelled("also", (f"{other.code}: {clean(other.sentence)}" for other in entry.also))
    yield from _labelled("fix", _fixes(entry))
    yield from _labelled("waiting", _waiting(entry))
    if entry.scheduler.text:
        yield from _labelled("scheduler", [f"{entry.scheduler.match}: {clean(entry.scheduler.text)}"])


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for index, line in enumerate(lines):
        yield f"    {label if index == 0 else '':<{_LABEL_WIDTH}}{line}"


def _constraint(item: BindingEntry) -> str:
    have = "not readable" if item.have is None else amount(item.have, item.unit)
    if item.unit is Unit.NAME:
        return f"{item.id} {clean(item.scope)}: {have}, wanted {amount(item.need, item.unit)} [{clean(item.source)}]"
    return f"{item.id} {clean(item.scope)}: needs {amount(item.need, item.unit)}, has {have} [{clean(item.source)}]"


def _members(entry: ExplanationDocument) -> Iterator[str]:
    members = entry.members
    if members.unfit or members.not_evaluated:
        rest = f", {members.not_evaluated} not tried" if members.not_evaluated else ""
        yield f"{members.fit} of {members.needed} fit, {members.unfit} do not{rest}"


def _holders(entry: ExplanationDocument) -> Iterator[str]:
    for holder in entry.holders[:_SHOWN]:
        yield f"{clean(holder.gang)}: {counted(holder.gpus, 'GPU', 'GPUs')}, evictable {clean(holder.evictable)}"
    if len(entry.holders) > _SHOWN:
        yield f"and {len(entry.holders) - _SHOWN} more"


def _node(group: NodeEntry) -> str:
    return f"{counted(group.count, 'node', 'nodes')} {group.reason} ({listed(group.examples)})"


def _fixes(entry: ExplanationDocument) -> Iterator[str]:
    yield from (_fix(fix) for fix in entry.fixes)
    if entry.fixes_untried:
        count = counted(entry.fixes_untried, "more change was", "more changes were")
        yield f"{count} not tried: the budget of re-runs ended"


def _fix(fix: FixEntry) -> str:
    proof = "" if fix.verified else " (not replayed)"
    return f"{clean(fix.sentence)}{proof}"


def _waiting(entry: ExplanationDocument) -> Iterator[str]:
    if entry.waiting.helps == "unknown":
        return
    until = f" until {entry.waiting.until}" if entry.waiting.until else ""
    on = f", for {listed(entry.waiting.on)}" if entry.waiting.on else ""
    yield f"helps: {entry.waiting.helps}{until}{on}"


def _notes(diagnosis: Diagnosis) -> Iterator[str]:
    for gap in diagnosis.not_read:
        if gap.matters_to:
            yield f"not read: {clean(gap.kind)} ({clean(gap.reason)}), matters to {number(gap.matters_to)}"
    for part in diagnosis.not_modelled:
        yield f"not modelled: {clean(part.what)} ({clean(part.why)}), matters to {number(part.matters_to)}"
    for odd in diagnosis.oddities:
        yield f"odd: {clean(odd.object)} {clean(odd.field)}: {clean(odd.problem)}"
