"""The words of fixes: one template per kind, further forms where an object of another kind is touched."""

from __future__ import annotations

from collections.abc import Mapping

from gangdash.engine.verdict import Fix, FixKind
from gangdash.reasons.wording import MAX_SENTENCE, compose

SENTENCES: Mapping[FixKind, Mapping[str, str]] = {
    FixKind.RAISE_LIMIT: {
        "": "Raise the {resource} limit of queue {queue} from {now:bare} to {to}.",
        "several": "Raise the limits of queues {queues:list}, {resource} of {queue} from {now:bare} to {to}.",
    },
    FixKind.RAISE_QUOTA: {
        "": "Raise the {resource} quota of queue {queue} from {now:bare} to {to}.",
        "several": "Raise the quotas of queues {queues:list}, {resource} of {queue} from {now:bare} to {to}.",
        "namespace": "Raise ResourceQuota {name} ({resource}) in namespace {namespace} from {now} to {to}.",
    },
    FixKind.RELAX_TOPOLOGY: {
        "": "Ask for one {level} instead of one {required}.",
        "subgroup": "Ask for one {level} instead of one {required} for subgroup {subgroup}.",
        "none": "Take the topology constraint off the gang.",
        "owner": "Take the topology constraint off {object}.",
        "preferred": "Prefer one {level} instead of requiring it.",
        "subgroup_preferred": "Prefer one {level} for subgroup {subgroup} instead of requiring it.",
        "start": "Name {level} as the preferred level too: the scheduler then starts its search there.",
    },
    FixKind.FREE_NODE: {
        "": "Free node {node}: move or stop {gangs:list}.",
        "several": "Free nodes {nodes:list}: move or stop {gangs:list}.",
    },
    FixKind.UNCORDON: {"": "Uncordon {nodes:list}."},
    FixKind.CORDON: {"": "Cordon {nodes:list}."},
    FixKind.ADD_NODES: {
        "": "Add {nodes:node|nodes} like {like}.",
        "domain": "Add {nodes:node|nodes} like {like} in {domain}.",
        "gpus": "Add {nodes:node|nodes} like {like} but with {gpus:GPU|GPUs}.",
    },
    FixKind.SUBMIT: {"": "Submit {gang}."},
    FixKind.SHRINK_GANG: {
        "": "Lower the gang's minimum from {now:bare} to {to:pod|pods}.",
        "subgroup": "Lower the minimum of subgroup {subgroup} from {now:bare} to {to:pod|pods}.",
    },
    FixKind.SHRINK_POD: {
        "": "Ask for {to} instead of {now} in each pod.",
        "part": "Ask for {part} of every resource in each pod, {to} instead of {now}.",
    },
    FixKind.ADD_TOLERATION: {"": "Give the pods a toleration for {taint}."},
    FixKind.CHANGE_SELECTOR: {
        "": "Change or drop the selector {selector} of the pods.",
        "to": "Change the pods' selector {selector} to {label}.",
    },
    FixKind.MAKE_PREEMPTIBLE: {"": "Make {gang} preemptible.", "several": "Make {gangs:list} preemptible."},
    FixKind.RAISE_PRIORITY: {"": "Raise the gang's priority from {now:bare} to {to:bare}, class {class}."},
    FixKind.MOVE_QUEUE: {"": "Move the gang to queue {queue}."},
    FixKind.EVICT_GANG: {
        "": "Stop {gang} ({gpus:gpu}).",
        "several": "Stop {gangs:list} ({gpus:gpu}).",
        "plain": "Stop {gang}.",
        "again": "Stop {gang}, so that its pods are placed anew.",
    },
    FixKind.CREATE_OBJECT: {"": "Create {kind} {name}.", "label": "Label {kind} {name} with {label}."},
    FixKind.FIX_REFERENCE: {
        "": "Correct {field} of {object}: {found} should be {wanted}.",
        "choose": "Correct {field} of {object}, which now says {found}.",
    },
    FixKind.REMOVE_TAINT: {"": "Remove the taint {taint} from {nodes:list}."},
    FixKind.SET_LABEL: {"": "Label {object} with {label}."},
    FixKind.REPAIR_DEVICE: {"": "Bring the missing GPUs of {nodes:list} back."},
    FixKind.RESTART_COMPONENT: {"": "Restart {component}."},
    FixKind.RECREATE_WORKLOAD: {"": "Delete and create {object} again.", "remove": "Delete {object}."},
    FixKind.UPGRADE: {"": "Upgrade {component} from {version}."},
    FixKind.WAIT_FOR: {"": "Wait for {what}.", "until": "Wait for {what}, until {until:time}."},
}


def fix_sentence(fix: Fix) -> str:
    """Return the one sentence of a fix, with what is to be done beside it."""
    first, *rest = (_own_sentence(part).rstrip(".") for part in (fix, *fix.beside))
    text = " and ".join((first, *(f"{part[0].lower()}{part[1:]}" for part in rest)))
    return f"{text[: MAX_SENTENCE - 1]}…" if len(text) >= MAX_SENTENCE else f"{text}."


def _own_sentence(fix: Fix) -> str:
    return compose(SENTENCES[fix.kind][fix.form], {**fix.change, **fix.facts})
