"""A served model as API objects, from its graph down to its pods, each easy to bend."""

from __future__ import annotations

import json
from typing import Any

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.snapshot.archive import load_bytes, snapshot_of

NOW = "2026-11-30T09:00:00Z"
AS_OF = 1796029200.0
GATE = "grove.io/podgang-pending-creation"
ALL_READ = (
    "Pod", "Node", "PodGroup", "Queue", "PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang", "PodGangMap",
    "DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoWorkerMetadata", "Deployment", "Event",
)  # fmt: skip

Object = dict[str, Any]


def ago(seconds: int) -> str:
    hours, rest = divmod(9 * 3600 - seconds, 3600)
    return f"2026-11-30T{hours:02}:{rest // 60:02}:{rest % 60:02}Z"


def ref(item: Object) -> Object:
    meta = item["metadata"]
    return {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def thing(api: str, kind: str, name: str, *, owner: Object | None = None, age: int = 600, labels: Object | None = None,
          notes: Object | None = None, spec: Object | None = None, status: Object | None = None, uid: str = "",
          namespace: str = "team") -> Object:  # fmt: skip
    meta: Object = {"name": name, "uid": uid or f"{kind}-{name}", "creationTimestamp": ago(age)}
    if namespace:
        meta["namespace"] = namespace
    meta |= {"labels": labels or {}, "annotations": notes or {}}
    if owner is not None:
        meta["ownerReferences"] = [ref(owner)]
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec or {}, "status": status or {}}


def condition(type_: str, status: str, reason: str = "", message: str = "", age: int = 300) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(age)}


def graph(name: str = "llm", *, ready: Object | None = None, state: str = "pending", **more: Any) -> Object:
    components = more.pop("components", [{"name": "Decode", "type": "decode", "replicas": 2}])
    status: Object = {"state": state, "observedGeneration": 1} if state else {}
    if ready is not None:
        status["conditions"] = [ready]
    spec = {"components": components}
    return thing("nvidia.com/v1beta1", "DynamoGraphDeployment", name, spec=spec, status=status, **more)


def clique_set(owner: Object | None = None, name: str = "llm", *, cliques: tuple[str, ...] = ("decode",),
               groups: tuple[Object, ...] = (), status: Object | None = None, **more: Any) -> Object:  # fmt: skip
    template: Object = {"cliques": [{"name": clique} for clique in cliques], "podCliqueScalingGroups": list(groups)}
    template |= more.pop("template", {})
    spec = {"replicas": more.pop("replicas", 1), "template": template}
    return thing("grove.io/v1alpha1", "PodCliqueSet", name, owner=owner, spec=spec, status=status, **more)


def clique(owner: Object, name: str = "llm-0-decode", *, replicas: int = 2, gang: str = "llm-0", **more: Any) -> Object:
    labels = {"grove.io/podgang": gang, **more.pop("labels", {})}
    spec = {"replicas": replicas, "minAvailable": replicas}
    return thing("grove.io/v1alpha1", "PodClique", name, owner=owner, labels=labels, spec=spec, **more)


def gang(owner: Object, name: str = "llm-0", *, cliques: tuple[str, ...] = ("llm-0-decode",), least: int = 2,
         listed: tuple[str, ...] | None = None, initialized: str = "True", **more: Any) -> Object:  # fmt: skip
    names = tuple(f"{c}-{i}" for c in cliques for i in range(2)) if listed is None else listed
    groups = [
        {
            "name": c,
            "minReplicas": least,
            "podReferences": [{"namespace": "team", "name": n} for n in names if n.startswith(c)],
        }
        for c in cliques
    ]
    status = {"phase": "Pending", "conditions": [condition("Initialized", initialized)]}
    spec = {"podgroups": groups}
    return thing("scheduler.grove.io/v1alpha1", "PodGang", name, owner=owner, spec=spec, status=status, **more)


def podgroup(owner: Object | None, name: str = "pg-llm-0", **more: Any) -> Object:
    spec = {"queue": "q", "minMember": 2, **more.pop("spec", {})}
    return thing("scheduling.run.ai/v2alpha2", "PodGroup", name, owner=owner, spec=spec, **more)


def pod(owner: Object | None, name: str = "llm-0-decode-0", *, gang: str = "llm-0", group: str = "", node: str = "",
        gates: tuple[str, ...] = (), ready: bool = False, **more: Any) -> Object:  # fmt: skip
    labels = {"grove.io/podgang": gang, **more.pop("labels", {})} if gang else more.pop("labels", {})
    notes = {"pod-group-name": group} if group else {}
    if owner is not None and owner["kind"] == "PodClique":
        labels["grove.io/podclique"] = owner["metadata"]["name"]
    spec: Object = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
    spec |= {"schedulingGates": [{"name": gate} for gate in gates]}
    status: Object = {"phase": "Running" if ready else "Pending"}
    if node:
        spec["nodeName"] = node
    if ready:
        status["conditions"] = [condition("Ready", "True", age=more.pop("ready_age", 400))]
    age = more.pop("age", 500)
    return thing("v1", "Pod", name, owner=owner, labels=labels, notes=notes, spec=spec, status=status, age=age, **more)


def event(about: Object, reason: str, message: str, age: int = 60, uid: str = "") -> Object:
    meta = about["metadata"]
    involved = {
        "kind": about["kind"],
        "namespace": meta.get("namespace", ""),
        "name": meta["name"],
        "uid": uid or meta["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{reason}", "namespace": "team", "creationTimestamp": ago(age)},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": "Warning",
        "lastTimestamp": ago(age),
    }


def deployment(name: str, namespace: str, *, image: str = "", ready: int = 1, **more: Any) -> Object:
    container = {"name": "main", "image": image or f"registry.example.com/{name}:v1.0.0"}
    spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    status = {"readyReplicas": ready} if ready else {}
    return thing("apps/v1", "Deployment", name, namespace=namespace, spec=spec, status=status, **more)


def snapshot(*objects: Object, read: tuple[str, ...] = ALL_READ, not_read: dict[str, str] | None = None
             ) -> ClusterSnapshot:  # fmt: skip
    gaps = not_read or {}
    content = {
        "apiVersion": "v1",
        "kind": "List",
        "asOf": NOW,
        "items": list(objects),
        "read": [kind for kind in read if kind not in gaps],
        "notRead": [{"kind": kind, "reason": reason} for kind, reason in gaps.items()],
    }
    return snapshot_of(load_bytes(json.dumps(content).encode(), name="world.json"))


def served(*, nodes: tuple[str, ...] = ("n1", "n2"), ready: bool = True, group: bool = True) -> list[Object]:
    """Return a graph of one clique of two pods, placed and ready."""
    top = graph(ready=condition("Ready", "True", "all_resources_are_ready"), state="successful")
    under = clique_set(top)
    made = clique(under)
    tied = gang(under)
    found = [top, under, made, tied]
    if group:
        found.append(podgroup(tied))
    name = "pg-llm-0" if group else ""
    placed = zip(range(2), nodes, strict=True)
    return [*found, *(pod(made, f"llm-0-decode-{i}", group=name, node=n, ready=ready) for i, n in placed)]
