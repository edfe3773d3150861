"""The registry, the enum and the documented set of codes are one set; every wording can be said."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from gangdash.documents.schema import json_schema
from gangdash.engine import explain, identifiers, verdict
from gangdash.engine.identifiers import Unit
from gangdash.engine.verdict import VERDICT_OF, Amount, FactValue, Finding, Fix, FixKind, ReasonCode, Verdict
from gangdash.reasons import REGISTRY, Reason, fix_sentence, sentence
from gangdash.reasons.fixes import SENTENCES
from gangdash.reasons.identifiers import MEANINGS
from gangdash.reasons.wording import MAX_SENTENCE, names_in

EXPLAIN = Path(explain.__file__).parent
CODES = {
    "WILL_START": "FITS_NOW WAITS_FOR_RELEASE WAITS_FOR_EVICTION",
    "NO_FIT": (
        "NODE_TOO_SMALL CLUSTER_TOO_SMALL DOMAIN_TOO_SMALL GPUS_BUSY FRAGMENTED DOMAIN_BUSY RESOURCE_SHORT POD_SLOTS "
        "SELECTOR_MISMATCH TAINT_NOT_TOLERATED POD_AFFINITY VOLUME CLAIM_UNALLOCATABLE GPU_SHAPE NUMA_SPLIT "
        "CONFLICTING_CONSTRAINTS"
    ),
    "POLICY": (
        "QUEUE_LIMIT NON_PREEMPTIBLE_OVER_QUOTA FAIR_SHARE_REACHED HOLDERS_PROTECTED QUEUED_BEHIND NAMESPACE_QUOTA "
        "PREEMPTION_DELAY"
    ),
    "CONFIG": (
        "NO_PODGROUP WRONG_SCHEDULER NOT_IN_SHARD QUEUE_MISSING QUEUE_NOT_LEAF QUEUE_ORPHANED SUBGROUP_UNKNOWN "
        "SUBGROUP_TREE_INVALID MINIMUM_UNREACHABLE TOPOLOGY_MISSING TOPOLOGY_LEVEL_UNKNOWN TOPOLOGY_LABEL_MISSING "
        "PRIORITY_CLASS_MISSING OBJECT_MISSING KIND_NOT_SERVED FEATURE_OFF SETTING_IGNORED LABEL_MISSING EMPTY_PODGROUP"
    ),
    "GATED": "UPSTREAM_STAGE SCHEDULING_GATE SUSPENDED MEMBERS_MISSING ADMISSION_DOWN BACKOFF WAITS_FOR_BASE_GANG",
    "NODE": (
        "NODES_CORDONED NODES_NOT_READY NODES_TAINTED_BY_STATE DEVICES_UNHEALTHY DEVICE_PLUGIN_MISSING "
        "TERMINATING_PODS_HOLD ADMISSION_REFUSED"
    ),
    "PARTIAL": "GANG_NOT_ENFORCED BELOW_MINIMUM SIBLING_GANG_WAITS MUTUAL_WAIT",
    "VIOLATED": "TOPOLOGY_NOT_KEPT LIMIT_EXCEEDED",
    "EVICTED": "RECLAIMED PREEMPTED CONSOLIDATED STALE_GANG EVICTED_BY_NODE EVICTION_LOOP",
    "STUCK": (
        "PLACEABLE_NOT_PLACED SCHEDULER_SILENT SCHEDULER_DOWN CONTROLLER_SILENT BIND_FAILING BIND_LOOP "
        "HELPER_POD_REFUSED SCHEDULER_DEFECT GREEDY_MISS SEARCH_BUDGET"
    ),
    "STARTING": "IMAGE_PULL VOLUME_MOUNT INIT_CONTAINER CONTAINER_START PROBE_FAILING CRASH_LOOP",
    "HEALTHY": "RUNNING COMPLETED STATUS_STALE",
    "NO_VERDICT": "NOT_READ NOT_MODELLED BUDGET_EXHAUSTED ENGINE_FAULT STALE_DATA",
}
GUESSES = re.compile(r"\b(probably|likely|seems?|maybe|perhaps|should be|insufficient|tenant)\b", re.IGNORECASE)
LONG = "a" * 253


def wordings() -> Iterator[tuple[Reason, str, str]]:
    for reason in REGISTRY.values():
        yield reason, "", reason.sentence
        for form, template in reason.forms.items():
            yield reason, form, template


def sample(template: str, *, long: bool = False) -> dict[str, FactValue]:
    """Return facts of the type that each place of a template asks for."""
    facts: dict[str, FactValue] = {}
    for _, name, spec, _ in string.Formatter().parse(template):
        if name is None:
            continue
        if spec == "list":
            facts[name] = (LONG,) * 9 if long else ("node-1", "node-2")
        elif spec == "bare":
            facts.setdefault(name, 12345.678 if long else Amount(3, Unit.GPU))
        elif spec in {"span", "time", "gpu"} or "|" in (spec or ""):
            facts[name] = 123456 if long else 3
        else:
            facts.setdefault(name, LONG if long else "team-a")
    return facts


def test_registry_enum_and_documented_codes_are_one_set() -> None:
    documented = {code: name for name, codes in CODES.items() for code in codes.split()}
    assert {code.value for code in ReasonCode} == set(documented)
    assert set(REGISTRY) == set(ReasonCode)
    assert {code: verdict_.value for code, verdict_ in VERDICT_OF.items()} == documented


def test_every_verdict_has_a_code() -> None:
    assert set(VERDICT_OF.values()) == set(Verdict)


@pytest.mark.parametrize("reason", REGISTRY.values(), ids=lambda reason: reason.code)
def test_entry_says_what_it_means_and_what_it_rests_on(reason: Reason) -> None:
    assert reason.title
    assert reason.meaning.endswith(".")
    assert reason.evidence
    assert reason.slug == reason.code.lower().replace("_", "-")
    for pattern in (*reason.upstream, *reason.hints):
        re.compile(pattern)


@pytest.mark.parametrize(
    "reason, form, template", list(wordings()), ids=lambda value: getattr(value, "code", value)[:24]
)
def test_wording_can_be_said_and_never_guesses(reason: Reason, form: str, template: str) -> None:
    told = sentence(Finding(reason.code, form=form, facts=sample(template)))
    assert told.endswith((".", "…"))
    assert "{" not in told
    assert not GUESSES.search(told)


@pytest.mark.parametrize(
    "reason, form, template", list(wordings()), ids=lambda value: getattr(value, "code", value)[:24]
)
def test_long_names_leave_a_sentence_of_240_characters(reason: Reason, form: str, template: str) -> None:
    told = sentence(Finding(reason.code, form=form, facts=sample(template, long=True)))
    assert len(told) <= MAX_SENTENCE


@pytest.mark.parametrize("kind", FixKind)
def test_every_kind_of_fix_has_words(kind: FixKind) -> None:
    for form, template in SENTENCES[kind].items():
        facts = sample(template)
        assert names_in(template) == set(facts)
        assert fix_sentence(Fix(kind, {}, facts, form=form)).endswith(".")


@pytest.mark.parametrize(
    "name, members",
    [
        ("Verdict", verdict.Verdict),
        ("Who", verdict.Who),
        ("Certainty", verdict.Certainty),
        ("Match", verdict.Match),
        ("FixKind", verdict.FixKind),
        ("Unit", identifiers.Unit),
        ("ConstraintId", identifiers.ConstraintId),
        ("NodeReason", identifiers.NodeReason),
    ],
)
def test_every_member_of_a_closed_set_has_a_meaning(name: str, members: type) -> None:
    assert set(MEANINGS[name]) == {str(member) for member in members}  # type: ignore[attr-defined]


def test_identifiers_are_dotted_and_lower_case() -> None:
    assert all(re.fullmatch(r"[a-z]+(\.[a-z_]+)+", member) for member in identifiers.ConstraintId)


def test_schema_lists_every_closed_set_with_its_meanings() -> None:
    schema = json_schema()
    told = schema["$defs"]["ReasonCode"]["x-meanings"]
    assert told["DOMAIN_BUSY"] == REGISTRY[ReasonCode.DOMAIN_BUSY].meaning
    assert set(schema["x-fix-kinds"]) == {kind.value for kind in FixKind}
    assert schema["$defs"]["ExplanationDocument"]["required"][:3] == ["gang", "verdict", "code"]


def forms_of(call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the codes of a finding with the forms that its call writes out."""
    codes = [node.attr for node in ast.walk(call.args[0]) if isinstance(node, ast.Attribute)]
    for keyword in call.keywords:
        if keyword.arg == "form":
            texts = [node.value for node in ast.walk(keyword.value) if isinstance(node, ast.Constant)]
            yield from ((code, text) for code in codes for text in texts if isinstance(text, str))


def test_every_form_that_a_finding_names_has_its_words() -> None:
    missing, seen = [], 0
    for file in sorted(EXPLAIN.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and node.args:
                for code, form in forms_of(node):
                    seen += 1
                    if code in ReasonCode.__members__ and form and form not in REGISTRY[ReasonCode[code]].forms:
                        missing.append(f"{file.name}:{node.lineno} {code} {form}")
    assert missing == []
    assert seen > 40
