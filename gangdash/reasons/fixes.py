"""The words of fixes: one template per kind, further forms where an object of another kind is touched."""

from __future__ import annotations

from collections.abc import Mapping

from gangdash.engine.verdict import Fix, FixKind
from gangdash.reasons.wording import compose

SENTENCES: Mapping[FixKind, Mapping[str, str]] = {
    FixKind.RAISE_LIMIT: {"": "Raise the {resource} limit of queue {queue} from {now:bare} to {to}."},
    FixKind.RAISE_QUOTA: {
        "": "Raise the {resource} quota of queue {queue} from {now:bare} to {to}.",
        "namespace": "Raise ResourceQuota {name} ({resource}) in namespace {namespace} from {now} to {to}.",
    },
    FixKind.RELAX_TOPOLOGY: {
        "": "Ask for one {level} instead of one {required}.",
        "none": "Take the topology constraint off the gang.",
    },
    FixKind.FREE_NODE: {"": "Free node {node}: move or stop {gangs:list}."},
    FixKind.UNCORDON: {"": "Uncordon {nodes:list}."},
    FixKind.CORDON: {"": "Cordon {nodes:list}."},
    FixKind.ADD_NODES: {"": "Add {nodes:node|nodes} like {like}{where}."},
    FixKind.SUBMIT: {"": "Submit {gang}."},
    FixKind.SHRINK_GANG: {"": "Lower the gang's minimum from {now:bare} to {to:pod|pods}."},
    FixKind.SHRINK_POD: {"": "Ask for {to} instead of {now} in each pod."},
    FixKind.ADD_TOLERATION: {"": "Give the pods a toleration for {taint}."},
    FixKind.CHANGE_SELECTOR: {"": "Change or drop the selector {selector} of the pods."},
    FixKind.MAKE_PREEMPTIBLE: {"": "Make {gang} preemptible."},
    FixKind.RAISE_PRIORITY: {"": "Raise the gang's priority from {now:bare} to {to:bare}."},
    FixKind.MOVE_QUEUE: {"": "Move the gang to queue {queue}."},
    FixKind.EVICT_GANG: {"": "Stop {gang} ({gpus:gpu}).", "plain": "Stop {gang}."},
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
    """Return the one sentence of a fix."""
    return compose(SENTENCES[fix.kind][fix.form], {**fix.change, **fix.facts})
