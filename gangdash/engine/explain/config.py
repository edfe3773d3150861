"""Is the gang set up so that the right component handles it? Shard, queue and subgroups.

Relies on the objects alone. Follows the scheduler's own order of refusal (kai-scheduler d5bc503a,
cluster_info.go and input_jobs.go); most of these causes the scheduler reports vaguely or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from gangdash.engine.explain import unread
from gangdash.engine.explain.build import first, named, names
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.queue import Queue
from gangdash.engine.session.build import SUB_GROUP_LABEL, in_pool, is_backed_off
from gangdash.engine.statement import DEFAULT_POD_SET
from gangdash.engine.verdict import Constraint, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_NO_WAIT = Waiting(helps="no")


def handling(gang: Gang) -> Iterator[Finding]:
    """Yield why no scheduler looks at the gang at all."""
    if gang.shard is None:
        yield from unread.shards(gang)
        yield _not_in_shard(gang)
    elif is_backed_off(gang.podgroup, gang.params):
        yield _backed_off(gang)


def _not_in_shard(gang: Gang) -> Finding:
    params = gang.context.params
    key = params.node_pool_label_key
    pool = gang.meta.labels.get(key, "")
    nodes = [node.name for node in gang.context.snapshot.nodes if node.meta.labels.get(key) == pool]
    return Finding(
        ReasonCode.NOT_IN_SHARD,
        facts={"pool": pool, "key": key, "nodes": len(nodes)},
        binding=(named(ConstraintId.SHARD_SERVED, pool, f"a SchedulingShard for {pool}", "none", f"label {key}"),),
        waiting=_NO_WAIT,
        fixes=(
            Fix(FixKind.CREATE_OBJECT, {"object": "SchedulingShard"}, {"kind": "a SchedulingShard for", "name": pool}),
        ),
    )


def _backed_off(gang: Gang) -> Finding:
    key = gang.params.node_pool_label_key
    pool = gang.meta.labels.get(key, "default")
    return Finding(
        ReasonCode.BACKOFF,
        form="scheduler",
        facts={"pool": pool, "key": key},
        binding=(named(ConstraintId.STAGE_BACKOFF, pool, "another node pool", pool, f"PodGroup/{gang.podgroup.key}"),),
        who=Who.PLATFORM,
    )


# Queues


def queue(gang: Gang) -> Iterator[Finding]:
    """Yield what is wrong with the queue itself: it is missing, orphaned or not a leaf."""
    name = gang.podgroup.queue
    found = gang.context.queues.get(name)
    if found is None:
        yield _queue_missing(gang, name)
    elif not in_pool(found.meta, gang.params):
        yield _queue_in_other_pool(gang, found)
    else:
        yield from _queue_place(gang, found)


def _known_queues(gang: Gang, meant: str) -> tuple[str, ...]:
    """Return the leaf queues that the gang could name, those spelled nearly alike first."""
    context = gang.context
    known = sorted(
        q.name for q in context.queues.values() if not context.children.get(q.name) and in_pool(q.meta, gang.params)
    )
    alike = get_close_matches(meant, known)
    return (*alike, *(name for name in known if name not in alike))


def _queue_missing(gang: Gang, name: str) -> Finding:
    key, known = gang.params.queue_label_key, _known_queues(gang, name)
    labelled = key in gang.meta.labels or any(key in pod.meta.labels for pod in gang.pods)
    labelled = labelled or any(key in owner.meta.labels for owner in gang.owners)
    form = "" if labelled or not (gang.owners or gang.meta.owners) else "default"
    if not name:
        form = "empty"
    fixes = [Fix(FixKind.CREATE_OBJECT, {"object": f"Queue/{name}"}, {"kind": "queue", "name": name})] if name else []
    fixes.append(
        Fix(
            FixKind.FIX_REFERENCE,
            {"object": f"PodGroup/{gang.podgroup.key}", "field": "spec.queue"},
            {"found": name or "nothing"},
            form="choose",
        )
    )
    return Finding(
        ReasonCode.QUEUE_MISSING,
        form=form,
        facts={"queue": name, "known": known, "key": key},
        binding=(
            named(ConstraintId.QUEUE_EXISTS, name, name or "a queue", "missing", f"PodGroup/{gang.podgroup.key}"),
        ),
        waiting=_NO_WAIT,
        fixes=tuple(fixes),
        who=Who.OWNER if form else Who.QUEUE_ADMIN,
    )


def _queue_in_other_pool(gang: Gang, found: Queue) -> Finding:
    key, pool = gang.params.node_pool_label_key, gang.params.node_pool_label_value
    actual = found.meta.labels.get(key, "no such label")
    return Finding(
        ReasonCode.QUEUE_MISSING,
        form="shard" if pool else "other_shard",
        facts={"queue": found.name, "key": key, "pool": pool, "found": actual},
        binding=(named(ConstraintId.QUEUE_EXISTS, found.name, pool or "no label", actual, f"Queue/{found.name}"),),
        waiting=_NO_WAIT,
        fixes=(_label_fix(f"Queue/{found.name}", f"{key}={pool}"),) if pool else (),
        who=Who.QUEUE_ADMIN,
    )


def _label_fix(target: str, label: str) -> Fix:
    key, _, value = label.partition("=")
    return Fix(
        FixKind.SET_LABEL, {"object": target, "key": key, "value": value}, {"label": label}, who=Who.CLUSTER_ADMIN
    )


def _queue_place(gang: Gang, found: Queue) -> Iterator[Finding]:
    context, params = gang.context, gang.params
    if not params.full_hierarchy_fairness and not found.parent:
        yield _queue_without_parent(gang, found)
        return
    children = [child.name for child in context.children.get(found.name, ()) if in_pool(child.meta, params)]
    if children and params.full_hierarchy_fairness:
        yield Finding(
            ReasonCode.QUEUE_NOT_LEAF,
            facts={"queue": found.name, "children": len(children), "examples": first(children)},
            binding=(
                named(ConstraintId.QUEUE_LEAF, found.name, "no children", first(children)[0], f"Queue/{found.name}"),
            ),
            waiting=_NO_WAIT,
            fixes=(
                Fix(
                    FixKind.MOVE_QUEUE,
                    {"object": f"PodGroup/{gang.podgroup.key}", "queue": first(children)[0]},
                ),
            ),
        )
    orphan = _orphan(gang, found) if params.full_hierarchy_fairness else None
    if orphan is not None:
        yield orphan


def _queue_without_parent(gang: Gang, found: Queue) -> Finding:
    version = gang.shard.version if gang.shard is not None else ""
    return Finding(
        ReasonCode.QUEUE_ORPHANED,
        form="no_parent_in" if version else "no_parent",
        facts={"queue": found.name, "version": version},
        binding=(named(ConstraintId.QUEUE_PARENT, found.name, "a parent queue", "no parent", f"Queue/{found.name}"),),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.FIX_REFERENCE,
                {"object": f"Queue/{found.name}", "field": "spec.parentQueue"},
                {"found": "nothing"},
                form="choose",
                who=Who.QUEUE_ADMIN,
            ),
        ),
    )


def _orphan(gang: Gang, found: Queue) -> Finding | None:
    """Return a finding when some queue above names a parent that this shard does not see."""
    context, params, seen, current = gang.context, gang.params, {found.name}, found
    while current.parent:
        parent = context.queues.get(current.parent)
        if parent is None or not in_pool(parent.meta, params):
            return _orphaned(gang, found, current, exists=parent is not None)
        if parent.name in seen:
            return None
        seen.add(parent.name)
        current = parent
    return None


def _orphaned(gang: Gang, found: Queue, child: Queue, *, exists: bool) -> Finding:
    key, pool = gang.params.node_pool_label_key, gang.params.node_pool_label_value
    if exists:
        fix = _label_fix(f"Queue/{child.parent}", f"{key}={pool}")
    else:
        fix = Fix(FixKind.CREATE_OBJECT, {"object": f"Queue/{child.parent}"}, {"kind": "queue", "name": child.parent})
    return Finding(
        ReasonCode.QUEUE_ORPHANED,
        form="shard" if exists else "",
        facts={"queue": found.name, "parent": child.parent, "key": key, "pool": pool},
        binding=(
            named(
                ConstraintId.QUEUE_PARENT,
                child.name,
                child.parent,
                "outside the shard" if exists else "missing",
                f"Queue/{child.name}",
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(fix,),
    )


# Subgroups


def subgroups(gang: Gang) -> Iterator[Finding]:
    """Yield what is wrong with the gang's subgroups and the labels that join them."""
    problem = _tree_problem(gang)
    if problem is not None:
        yield Finding(
            ReasonCode.SUBGROUP_TREE_INVALID,
            form=problem[0],
            facts={"subgroup": problem[1], "parent": problem[2]},
            binding=(named(ConstraintId.GANG_SUB_GROUP, problem[1], "a tree of subgroups", problem[0], _source(gang)),),
            waiting=_NO_WAIT,
        )
    if gang.strangers:
        yield _stranger(gang)
    short = _unreachable_set(gang)
    if short is not None:
        yield short


def _source(gang: Gang) -> str:
    return f"PodGroup/{gang.podgroup.key}"


def _tree_problem(gang: Gang) -> tuple[str, str, str] | None:
    """Return what keeps the tree from being built: its form, the subgroup and the parent it names."""
    specs = gang.podgroup.sub_groups
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            return "duplicate", spec.name, spec.parent
        seen.add(spec.name)
    parents = {spec.name: spec.parent for spec in specs}
    for spec in specs:
        if spec.parent and spec.parent.lower() not in seen:
            return "parent", spec.name, spec.parent
        if _circles(parents, spec.name):
            return "circle", spec.name, spec.parent
    return None


def _circles(parents: dict[str, str], start: str) -> bool:
    seen, current = {start}, parents.get(start, "")
    while current:
        if current in seen:
            return True
        seen.add(current)
        current = parents.get(current, "")
    return False


def _stranger(gang: Gang) -> Finding:
    labels = {pod.meta.labels.get(SUB_GROUP_LABEL, "") for pod in gang.strangers}
    wrong = min(labels)
    pods = [pod for pod in gang.strangers if pod.meta.labels.get(SUB_GROUP_LABEL, "") == wrong]
    known = tuple(name for name in gang.parts if name != DEFAULT_POD_SET) or tuple(gang.parts)
    return Finding(
        ReasonCode.SUBGROUP_UNKNOWN,
        form="" if wrong else "unlabelled",
        facts={"pods": len(pods), "subgroup": wrong, "known": known, "examples": names(pods), "key": SUB_GROUP_LABEL},
        binding=(
            named(
                ConstraintId.GANG_SUB_GROUP, names(pods)[0], " or ".join(known[:3]), wrong or "no label", _source(gang)
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.FIX_REFERENCE,
                {"object": f"Pod/{pods[0].key}", "field": f"label {SUB_GROUP_LABEL}"},
                {"found": wrong or "nothing"},
                form="choose",
            ),
        ),
    )


def _unreachable_set(gang: Gang) -> Finding | None:
    for group in (gang.root, *gang.root.groups):
        if group.minimum > len(group.members):
            return Finding(
                ReasonCode.MINIMUM_UNREACHABLE,
                form="children",
                facts={"subgroup": group.name or gang.meta.name, "needed": group.minimum, "makes": len(group.members)},
                binding=(
                    Constraint(
                        ConstraintId.GANG_SUB_GROUP,
                        group.name or gang.meta.name,
                        group.minimum,
                        len(group.members),
                        Unit.COUNT,
                        _source(gang),
                    ),
                ),
                waiting=_NO_WAIT,
            )
    return None
