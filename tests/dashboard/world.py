"""One invented cluster in the store, rich enough for every page: causes of many kinds, history, nodes, queues.

Rows are written straight into the tables; documents have the shape of the contract. Numbers agree with each other:
212 GPUs on 40 nodes, 10 waiting gangs, one kind that may not be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Model

from apps.accounts.choices import Role
from apps.accounts.models import NamespaceGrant, User
from apps.clusters.choices import PollOutcome, Source
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.inventory.choices import NodeState
from apps.inventory.models import CapacitySample, Domain, Node, Queue, StateChange, Topology
from apps.workloads.choices import PLACED_VERDICTS, GangState
from apps.workloads.models import Attempt, Gang, Pod
from gangdash import __version__

RACK = "topology.example/rack"
BLOCK = "topology.example/block"
DIGEST = "sha256:9f2c41d7a06be3518c2f90d4e7b1385aa64c02f7d91e5b38c6a0f41f27d8e3b5"
KINDS = ("Node", "Pod", "PodGroup", "Queue", "Topology", "PriorityClass", "Event", "ResourceClaim")


def bind(ident: str, scope: str, amounts: tuple[Any, Any, str], source: str) -> dict[str, Any]:
    """Return a constraint; ``amounts`` are need, have and unit."""
    need, have, unit = amounts
    return {"id": ident, "scope": scope, "need": need, "have": have, "unit": unit, "source": source}


def document(gang: Gang, verdict: str, code: str, sentence: str, **changes: Any) -> dict[str, Any]:
    """Return an explanation document; every field can be replaced."""
    base: dict[str, Any] = {
        "gang": {
            "namespace": gang.namespace,
            "name": gang.name,
            "uid": gang.uid,
            "kind": gang.kind,
            "owner": gang.owner or None,
        },
        "verdict": verdict,
        "code": code,
        "who": "cluster_admin",
        "certainty": "proved",
        "sentence": sentence,
        "shard": "default",
        "stage": "S18",
        "waiting_since": None,
        "binding": [],
        "slack": [],
        "members": {"needed": 0, "fit": 0, "unfit": 0, "not_evaluated": 0},
        "nodes": [],
        "holders": [],
        "fixes": [],
        "fixes_refused": 0,
        "waiting": {"helps": "unknown", "until": None, "on": []},
        "also": [],
        "scheduler": {"text": None, "at": None, "match": "silent"},
        "as_of": "",
        "digest": DIGEST,
        "engine": __version__,
        "not_read": [],
        "not_modelled": [],
    }
    return {**base, **changes}


def fix(
    kind: str, sentence: str, *, verified: bool = True, who: str = "owner", **effects: Sequence[str]
) -> dict[str, Any]:
    empty: dict[str, Any] = {"starts": [], "moves": [], "delays": [], "sets_back": [], "evicts": []}
    return {
        "change": {"kind": kind},
        "sentence": sentence,
        "verified": verified,
        "who": who,
        "cost": 1,
        **empty,
        **effects,
    }


class World:
    """Builds one cluster at one moment and remembers it."""

    def __init__(self, name: str = "fjord-1", now: datetime | None = None) -> None:
        self.now = now or datetime.now(UTC).replace(microsecond=0)
        self.as_of = self.now - timedelta(seconds=6)
        self.cluster = Cluster.objects.create(
            name=name,
            source=Source.DEMO,
            server_version="v1.35.4",
            read_as_of=self.as_of,
            diagnosed_as_of=self.as_of,
            diagnosed_digest=DIGEST,
            engine=__version__,
        )
        Cluster.objects.filter(pk=self.cluster.pk).update(added_at=self.now - timedelta(days=30))
        self.snapshot = Snapshot.objects.create(
            cluster=self.cluster,
            as_of=self.as_of,
            digest=DIGEST,
            engine=__version__,
            started_at=self.as_of,
            ended_at=self.as_of + timedelta(seconds=2),
            outcome=AnalysisOutcome.DONE,
        )
        self.before = Snapshot.objects.create(
            cluster=self.cluster,
            as_of=self.as_of - timedelta(hours=4),
            digest=DIGEST,
            engine=__version__,
            started_at=self.as_of,
            outcome=AnalysisOutcome.DONE,
        )

        self._later: list[Model] | None = None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Write what is added inside in one go per table: the world is built for many tests."""
        self._later = []
        yield
        later, self._later = self._later, None
        tables: tuple[type[Model], ...] = (Pod, ReasonTimeline, ExplanationRecord, PollRun, KindFreshness, Queue)
        for table in tables:
            table._default_manager.bulk_create([row for row in later if isinstance(row, table)])

    def _write(self, *rows: Model) -> None:
        if self._later is not None:
            self._later += rows
            return
        for row in rows:
            row.save()

    def at(self, minutes: float) -> datetime:
        """Return the moment so many minutes before the reading."""
        return self.as_of - timedelta(minutes=minutes)

    def stamp(self, moment: datetime) -> str:
        return moment.isoformat().replace("+00:00", "Z")

    # ------------------------------------------------------------------------------------------------- readings
    def reading(self, *, refused: Mapping[str, str] | None = None) -> None:
        """Say per kind what was read, and put twelve polls behind it."""
        refused = {"ResourceClaim": "403"} if refused is None else refused
        for kind in KINDS:
            self._write(
                KindFreshness(
                    cluster=self.cluster,
                    kind=kind,
                    is_required=kind in {"Node", "Pod", "PodGroup", "Queue"},
                    is_read=kind not in refused,
                    reason=refused.get(kind, ""),
                    read_at=None if kind in refused else self.as_of,
                    checked_at=self.as_of,
                    count=None if kind in refused else 40,
                )
            )
        for back in range(12):
            started = self.as_of - timedelta(seconds=15 * back)
            self._write(
                PollRun(
                    cluster=self.cluster,
                    started_at=started,
                    ended_at=started + timedelta(seconds=1),
                    outcome=PollOutcome.PARTIAL if refused else PollOutcome.READ,
                    requests=14,
                    received_bytes=1_200_000,
                )
            )

    def nodes(self) -> None:
        """Lay out two blocks with three racks; one node is cordoned, one is not ready."""
        Topology.objects.create(
            cluster=self.cluster,
            name="gb200",
            levels=[{"label": BLOCK, "alias": "block"}, {"label": RACK, "alias": "rack"}],
        )
        self._rack("block-1", "rack-a1", 18, 4, used=8)
        self._rack("block-1", "rack-a2", 9, 4, used=5)
        self._rack("block-2", "rack-b1", 13, 8, used=11)
        Node.objects.filter(name="a1-14").update(state=NodeState.CORDONED, gpus_free=0, gpus_lost=4, gpus_used=0)
        Node.objects.filter(name="b1-13").update(state=NodeState.NOT_READY, gpus_free=0, gpus_lost=8, gpus_used=0)
        for block in ("block-1", "block-2"):
            self._domain(block, "", 0, BLOCK)
        for rack, block in (("rack-a1", "block-1"), ("rack-a2", "block-1"), ("rack-b1", "block-2")):
            self._domain(rack, block, 1, RACK)

    def _rack(self, block: str, rack: str, count: int, gpus: int, *, used: int) -> None:
        Node.objects.bulk_create(
            Node(
                cluster=self.cluster,
                name=f"{rack.removeprefix('rack-')}-{at:02d}",
                state=NodeState.READY,
                product="GB200" if gpus == 4 else "H100",
                gpus=gpus,
                gpus_used=gpus if at <= used else 0,
                gpus_free=0 if at <= used else gpus,
                pods=3 if at <= used else 0,
                labels={BLOCK: block, RACK: rack},
            )
            for at in range(1, count + 1)
        )

    def _domain(self, name: str, parent: str, level: int, label: str) -> None:
        members = [node for node in Node.objects.filter(cluster=self.cluster) if node.labels.get(label) == name]
        Domain.objects.create(
            cluster=self.cluster,
            topology="gb200",
            level=level,
            label=label,
            path=f"{parent}/{name}" if parent else name,
            parent_path=parent,
            name=name,
            nodes=len(members),
            nodes_free=sum(node.gpus_free == node.gpus for node in members),
            gpus=sum(node.gpus for node in members),
            gpus_used=sum(node.gpus_used for node in members),
            gpus_free=sum(node.gpus_free for node in members),
            gpus_lost=sum(node.gpus_lost for node in members),
        )

    def queues(self) -> None:
        rows = (
            ("inference", "", 92, -1, 103, 42),
            ("chat-serving", "inference", 72, 96, 78, 20),
            ("search-serving", "inference", 20, 32, 25, 22),
            ("research", "", 64, -1, 75, 46),
            ("pretrain", "research", 36, -1, 40, 16),
            ("sandbox", "research", None, 32, 10, 19),
            ("batch-eval", "research", 12, 24, 15, 24),
        )
        for name, parent, quota, limit, fair, held in rows:
            amounts = {"cpu": 0, "memory": 0, "gpu": held}
            self._write(
                Queue(
                    cluster=self.cluster,
                    name=name,
                    parent=parent,
                    is_leaf=bool(parent),
                    gpu_quota=quota,
                    gpu_limit=limit,
                    cycle=[
                        {
                            "shard": "default",
                            "fair_share": {"cpu": 0, "memory": 0, "gpu": fair},
                            "allocated_before": amounts,
                            "allocated_after": amounts,
                        }
                    ],
                    cycle_as_of=self.as_of,
                )
            )

    # ---------------------------------------------------------------------------------------------------- gangs
    def gang(self, key: str, queue: str, shape: tuple[int, float], waited: timedelta, **values: Any) -> Gang:
        """Add the gang ``namespace/name`` of ``(pods, GPUs each)``; ``placed`` pods of it have a node."""
        namespace, _, name = key.partition("/")
        pods, each = shape
        placed = values.pop("placed", 0)
        gang = Gang.objects.create(
            cluster=self.cluster,
            uid=f"uid-{namespace}-{name}"[:64],
            namespace=namespace,
            name=name,
            queue=queue,
            pods_total=pods,
            pods_placed=placed,
            pods_waiting=pods - placed,
            gpus=pods * each,
            gpus_waiting=(pods - placed) * each,
            shape=f"{pods} x {each:g}",
            created_at=self.as_of - waited,
            first_seen_at=self.as_of - waited,
            last_seen_at=self.as_of,
            waiting_since=self.as_of - waited,
            **{"shard": "default", "min_member": pods, **values},
        )
        pods_of_gang = [
            Pod(
                cluster=self.cluster,
                gang=gang,
                uid=f"{gang.uid}-{at}",
                namespace=namespace,
                name=f"{name}-{at}",
                phase="Running" if at < placed else "Pending",
                node="a1-01" if at < placed else "",
                gpus=each,
            )
            for at in range(pods)
        ]
        self._write(*pods_of_gang)
        return gang

    def says(self, gang: Gang, verdict: str, code: str, sentence: str, **changes: Any) -> ExplanationRecord:
        """Store what is said of a gang, in the table and in its columns; its reason began at ``opened``."""
        since = gang.waiting_since
        opened = changes.pop("opened", since or self.as_of)
        made = document(
            gang,
            verdict,
            code,
            sentence,
            **{"as_of": self.stamp(self.as_of), "waiting_since": self.stamp(since) if since else None, **changes},
        )
        gang.verdict, gang.code, gang.sentence = verdict, code, sentence
        gang.who, gang.certainty, gang.stage = made["who"], made["certainty"], made["stage"] or ""
        gang.subject = made["binding"][0]["source"] if made["binding"] else ""
        gang.state = GangState.WAITS
        if verdict in PLACED_VERDICTS:
            gang.state = GangState.FINE if code == "RUNNING" else GangState.TELLS
        gang.diagnosed_as_of = self.as_of
        gang.save()
        self.reason(gang, verdict, code, sentence, since=opened)
        record = ExplanationRecord(
            snapshot=self.snapshot,
            gang=gang,
            verdict=verdict,
            code=code,
            who=gang.who,
            certainty=gang.certainty,
            sentence=sentence,
            document=json.dumps(made),
        )
        self._write(record)
        return record

    def reason_rows_delete(self, gang: Gang) -> None:
        ReasonTimeline.objects.filter(gang=gang).delete()

    def reason(
        self, gang: Gang, verdict: str, code: str, sentence: str, *, since: datetime, until: datetime | None = None
    ) -> None:
        row = ReasonTimeline(
            gang=gang,
            snapshot=self.snapshot,
            verdict=verdict,
            code=code,
            who=gang.who,
            state=gang.state,
            sentence=sentence,
            gpus=gang.gpus_waiting or 0,
            opened_at=since,
            closed_at=until,
        )
        self._write(row)


def disaggregated(world: World) -> Gang:
    """Add the gang that has everything: binding and slack, nodes, holders, fixes, the scheduler's words."""
    gang = world.gang(
        "chat-prod/llama-70b-disagg-0",
        "chat-serving",
        (12, 4),
        timedelta(minutes=47),
        owner="DynamoGraphDeployment/chat-prod/llama-70b-disagg",
        preemptibility="non-preemptible",
        priority_class="inference",
        topology="gb200",
        required_level=RACK,
    )
    world.says(
        gang,
        "NO_FIT",
        "DOMAIN_BUSY",
        "Needs 48 GPUs in one rack; the best rack (rack-a1) has 36 free, 1 rack could hold it if empty.",
        opened=world.as_of - timedelta(minutes=32),
        binding=[bind("domain.gpu", "rack-a1", (48, 36, "gpu"), "Topology/gb200 level rack")],
        slack=[
            bind("queue.limit.gpu", "chat-serving", (68, 96, "gpu"), "Queue/chat-serving"),
            bind("queue.quota.gpu", "chat-serving", (68, 72, "gpu"), "Queue/chat-serving"),
            bind("domain.cpu", "rack-a1", (1_180_000, 1_296_000, "millicores"), "Node"),
            bind("domain.memory", "rack-a1", (5760 * 1024**3, 7776 * 1024**3, "bytes"), "Node"),
            bind("gang.min_member", "llama-70b-disagg-0", (12, 12, "pods"), "PodGroup/llama-70b-disagg-0"),
        ],
        members={"needed": 12, "fit": 9, "unfit": 3, "not_evaluated": 0},
        nodes=[
            {"reason": "fits", "count": 9, "examples": [f"a1-{at:02d}" for at in (9, 10, 11, 12, 13, 15, 16, 17, 18)]},
            {"reason": "gpu", "count": 8, "examples": [f"a1-{at:02d}" for at in range(1, 9)]},
            {"reason": "cordoned", "count": 1, "examples": ["a1-14"]},
            {"reason": "outside_domain", "count": 22, "examples": ["a2-01", "a2-02", "b1-01"]},
        ],
        holders=[
            {"gang": "search-prod/embed-e5-large-1", "gpus": 12, "evictable": "no: non-preemptible"},
            {"gang": "chat-prod/qwen-32b-agg-2", "gpus": 8, "evictable": "no: non-preemptible"},
        ],
        fixes=[
            fix(
                "relax_topology",
                "Ask for one block instead of one rack",
                starts=["chat-prod/llama-70b-disagg-0"],
            ),
            fix(
                "free_node",
                "Move search-prod/embed-e5-large-1 out of rack-a1",
                who="cluster_admin",
                starts=["chat-prod/llama-70b-disagg-0"],
                moves=["search-prod/embed-e5-large-1"],
            ),
            fix("restart_component", "Restart the scheduler", verified=False, who="platform"),
        ],
        fixes_refused=6,
        waiting={"helps": "no", "until": None, "on": []},
        also=[
            {
                "verdict": "POLICY",
                "code": "QUEUE_LIMIT",
                "sentence": "Queue chat-serving may use 96 GPUs, and the gang behind it asks for 104.",
            }
        ],
        scheduler={
            "text": "Unable to schedule podgroup: 2 node-group(s) didn't have enough resources: GPUs.",
            "at": world.stamp(world.as_of),
            "match": "less_specific",
        },
    )
    first = world.as_of - timedelta(minutes=47)
    world.reason(
        gang, "GATED", "MEMBERS_MISSING", "9 of 12 pods exist.", since=first, until=first + timedelta(minutes=2)
    )
    world.reason(
        gang,
        "POLICY",
        "QUEUE_LIMIT",
        "Queue chat-serving may use 64 GPUs, uses 28, and the gang asks for 48.",
        since=first + timedelta(minutes=2),
        until=first + timedelta(minutes=15),
    )
    return gang


def waiting_causes(world: World) -> None:
    """Add gangs of further causes, several of one cause among them."""
    limit = "Queue batch-eval may use 24 GPUs and uses 24; the gang asks for {}."
    for name, pods, each, hours in (
        ("swe-bench-qwen-9", 2, 8, 4.4),
        ("mmlu-pro-sweep-12", 8, 1, 6.9),
        ("ruler-128k-4", 8, 1, 7),
    ):
        gang = world.gang(f"eval-nightly/{name}", "batch-eval", (pods, each), timedelta(hours=hours))
        need = bind("queue.limit.gpu", "batch-eval", (24 + pods * each, 24, "gpu"), "Queue/batch-eval")
        world.says(
            gang,
            "POLICY",
            "QUEUE_LIMIT",
            limit.format(pods * each),
            who="queue_admin",
            binding=[need],
            fixes=[
                fix("raise_limit", f"Raise the limit of batch-eval from 24 to {24 + pods * each}", who="queue_admin")
            ],
        )
    rows: Sequence[tuple[Any, ...]] = (
        (("mm-lab/whisper-large-ft-1", "multi-modal", (1, 8), timedelta(hours=21.8)), "CONFIG", "QUEUE_MISSING",
         "Queue multi-modal does not exist; the nearest leaf queue is multimodal.", "owner",
         bind("queue.exists", "multi-modal", ("multi-modal", "multimodal", "name"), "Queue/multi-modal")),
        (("chat-prod/llama-70b-disagg-0-decode-1", "chat-serving", (8, 4), timedelta(minutes=47)), "GATED",
         "WAITS_FOR_BASE_GANG", "Waits for its base gang llama-70b-disagg-0 to be placed.", "wait",
         bind("stage.base_gang", "llama-70b-disagg-0", (1, 0, "count"), "PodGang/llama-70b-disagg-0")),
        (("pretrain-lab/qwen3-235b-sft-7", "pretrain", (10, 4), timedelta(minutes=24)), "NODE", "NODES_CORDONED",
         "Needs 10 whole nodes; 9 are free, and a1-14 is empty and cordoned.", "cluster_admin",
         bind("node.cordon", "a1-14", (10, 9, "nodes"), "Node/a1-14")),
        (("sandbox-dmitri/dra-mps-probe-2", "sandbox", (1, 2), timedelta(minutes=58)), "NO_VERDICT", "NOT_READ",
         "ResourceClaim could not be read (403), so nothing can be said.", "platform",
         bind("snapshot.read", "ResourceClaim", ("ResourceClaim", None, "name"), "ResourceClaim")),
        (("alignment-lab/ppo-llama-8b-22", "alignment", (1, 8), timedelta(minutes=22)), "STUCK", "SCHEDULER_SILENT",
         "Fits now on b1-12; the scheduler has not acted for 22 min.", "platform",
         bind("scheduler.acts", "kai-scheduler", (3, 1320, "seconds"), "Deployment/kai/kai-scheduler")),
        (("pretrain-lab/olmo-7b-ablate-19", "pretrain", (1, 4), timedelta(seconds=12)), "WILL_START", "FITS_NOW",
         "Fits now: the pod has a node (a1-09); the scheduler binds on its next cycle.", "nobody", None),
    )  # fmt: skip
    for size, verdict, code, sentence, who, need in rows:
        gang = world.gang(*size)
        certainty = {"NO_VERDICT": "no_verdict", "CONFIG": "derived", "GATED": "derived"}.get(verdict, "proved")
        world.says(gang, verdict, code, sentence, who=who, certainty=certainty, binding=[need] if need else [])


def placed_gangs(world: World) -> None:
    """Add gangs that run, one of them with something to tell."""
    for at in range(6):
        gang = world.gang(f"chat-prod/serve-{at}", "chat-serving", (2, 4), timedelta(days=2), placed=2)
        world.says(gang, "HEALTHY", "RUNNING", "Runs: 2 of 2 pods are ready.", who="nobody", stage=None)
    gang = world.gang("search-prod/embed-e5-large-1", "search-serving", (3, 4), timedelta(days=11), placed=3)
    world.says(
        gang, "STARTING", "IMAGE_PULL", "Pod embed-e5-large-1-0 pulls its image for 3 min.", who="wait", stage="S21"
    )


def history(world: World) -> None:
    """Give the disaggregated gang an attempt before it that lost its nodes, and the cluster a day of samples."""
    gang = Gang.objects.get(cluster=world.cluster, name="llama-70b-disagg-0")
    before = Gang.objects.create(
        cluster=world.cluster, uid=f"{gang.uid}-before", namespace=gang.namespace, name="llama-70b-disagg-0-old",
        first_seen_at=world.at(300), last_seen_at=world.at(240), gone_at=world.at(240),
    )  # fmt: skip
    known = {"cluster": world.cluster, "lineage": "llama"}
    Attempt.objects.create(
        **known, gang=before, requested_at=world.at(302), created_at=world.at(301), seen_at=world.at(300),
        decided_at=world.at(290), bound_at=world.at(289), evicted_at=world.at(250), evictions=1,
        ended_at=world.at(240),
    )  # fmt: skip
    Attempt.objects.create(
        **known, number=2, gang=gang, requested_at=world.at(239), created_at=world.at(238), gated_at=world.at(238),
        gates_removed_at=world.at(236), seen_at=world.at(238),
    )  # fmt: skip
    rows = Domain.objects.filter(cluster=world.cluster).values_list("path", "gpus", "gpus_free", "gpus_lost", "nodes")
    domains = {f"gb200|{path}": [*amounts, 0] for path, *amounts in rows}
    whole = [sum(amounts[place] for key, amounts in domains.items() if "/" not in key) for place in range(5)]
    for minutes in (1500, 700, 90, 20):
        free = whole[1] - minutes / 100
        sample = {**domains, "": [whole[0], free, *whole[2:]]}
        queues = {name: [10 + minutes / 100, 20] for name in ("chat-serving", "pretrain", "sandbox")}
        CapacitySample.objects.create(cluster=world.cluster, at=world.at(minutes), queues=queues, domains=sample)
    for minutes, subject, was, state in ((400, "a1-14", "ready", "cordoned"), (30, "b1-13", "ready", "not_ready")):
        StateChange.objects.create(
            cluster=world.cluster, kind="Node", subject=subject, at=world.at(minutes), was=was, state=state,
            reason="by hand" if state == "cordoned" else "KubeletNotReady",
        )  # fmt: skip


def whole_world(name: str = "fjord-1", now: datetime | None = None) -> World:
    """Build everything."""
    world = World(name, now)
    world.nodes()
    with world.at_once():
        world.reading()
        world.queues()
        disaggregated(world)
        waiting_causes(world)
        placed_gangs(world)
    return world


def alice() -> User:
    """Return an admin."""
    return User.objects.create_user("alice", password="correct horse", role=Role.ADMIN, is_superuser=True)


def bob(cluster: str = "fjord-1", namespace: str = "mm-lab") -> User:
    """Return a viewer of one namespace."""
    user = User.objects.create_user("bob", password="battery staple", role=Role.NAMESPACES)
    NamespaceGrant.objects.create(user=user, cluster=cluster, namespace=namespace)
    return user
