"""What stands in the demo cluster: 40 nodes in 5 racks and 2 blocks, departments with team queues, namespaces.

Facts only; they change while it runs in one way, cordons. Which gang finds room where follows from these numbers,
so the comments beside them say which cause of waiting they keep alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BLOCK = "topology.example.com/block"
RACK = "topology.example.com/rack"
HOST = "kubernetes.io/hostname"
TOPOLOGY = "fabric"
PRODUCT = "nvidia.com/gpu.product"
POOL = "kai.scheduler/node-pool"
QUEUE = "kai.scheduler/queue"
# The second shard's label value; its scheduler is down.
NIGHT = "night"

H100, A100, H200, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200", "NVIDIA-L40S"
UNLIMITED = -1


@dataclass(slots=True)
class Node:
    """One machine; cpu in millicores, memory in MiB, both as allocatable."""

    name: str
    block: str
    rack: str
    product: str
    gpus: int
    cpu: int
    memory: int
    pool: str = ""
    cordoned: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that selectors and topologies look at."""
        labels = {HOST: self.name, BLOCK: self.block, RACK: self.rack}
        if self.gpus:
            memory = {H200: "143771", L40S: "46068"}.get(self.product, "81559")
            labels |= {PRODUCT: self.product, "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": memory}
            labels["nvidia.com/gpu.present"] = "true"
        return labels | ({POOL: self.pool} if self.pool else {})


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue's GPU terms; cpu and memory are unlimited everywhere."""

    name: str
    parent: str = ""
    quota: int = 0
    limit: int = UNLIMITED
    weight: int = 1
    priority: int | None = None
    display_name: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Priority:
    """A PriorityClass; from 100 on a gang is never evicted."""

    name: str
    value: int
    words: str = field(default="", compare=False)


# (rack, block, product, machines); no product: no GPUs.
_RACKS = (
    ("rack-a1", "block-a", H100, 8),
    ("rack-a2", "block-a", H100, 8),
    ("rack-a3", "block-a", H100, 6),
    ("rack-a3", "block-a", "", 2),
    ("rack-b1", "block-b", A100, 8),
    ("rack-b2", "block-b", H200, 4),
    ("rack-b2", "block-b", L40S, 2),
    ("rack-b2", "block-b", "", 2),
)
_SHORT = {H100: "h100", A100: "a100", H200: "h200", L40S: "l40s", "": "cpu"}


def build_nodes() -> dict[str, Node]:
    """Return the machines by name; the last two H100 machines of rack-a3 are the night shard's."""
    nodes: dict[str, Node] = {}
    for rack, block, product, count in _RACKS:
        for number in range(1, count + 1):
            name = f"{_SHORT[product]}-{rack.removeprefix('rack-')}-{number:02}"
            pool = NIGHT if product == H100 and rack == "rack-a3" and number > 4 else ""
            gpus, cpu, memory = (8, 191_450, 2_063_880) if product else (0, 95_600, 515_900)
            nodes[name] = Node(name, block, rack, product, gpus, cpu, memory, pool)
    return nodes


# What the exporter on each node asks for, in millicores and MiB.
EXPORTER_CPU, EXPORTER_MEMORY = 300, 512

QUEUES: Mapping[str, Queue] = {
    queue.name: queue
    for queue in (
        Queue("research", quota=88, display_name="Research"),
        Queue("nlp", "research", quota=24, limit=24, weight=2, display_name="NLP"),
        # Two gangs of 4 fill it; whoever comes next is over the limit.
        Queue("vision", "research", quota=8, limit=8, display_name="Vision"),
        Queue("foundation", "research", quota=40, weight=3, display_name="Foundation models"),
        Queue("speech", "research", quota=16),
        Queue("products", quota=168, display_name="Products"),
        Queue("llm-serving", "products", quota=104, display_name="LLM serving"),
        Queue("assistants", "products", quota=32, display_name="Assistants"),
        Queue("embeddings", "products", quota=32),
        Queue("platform", quota=20, display_name="Platform"),
        # Non-preemptible work may not pass the quota; one gang of 4 fills it.
        Queue("builds", "platform", quota=4, priority=120),
        # No quota: what runs here lives on what others leave. The limit keeps it from using up the A100 rack.
        Queue("sandbox", "platform", quota=0, limit=8),
        Queue("data", "platform", quota=8),
        # Spot fills the L40S machines on credit; urgent work may take 8 of their 16 GPUs back at any time.
        Queue("spot", "platform", quota=0),
        Queue("urgent", "platform", quota=8),
        Queue("night-shift", quota=16, pool=NIGHT),
        Queue("night-batch", "night-shift", quota=16, pool=NIGHT),
    )
}

PRIORITIES: Mapping[str, Priority] = {
    priority.name: priority
    for priority in (
        Priority("train", 50, "Training: may be evicted"),
        Priority("build", 100, "Interactive and builds: never evicted"),
        Priority("inference", 125, "Serving: never evicted"),
    )
}

NAMESPACES = (
    "nlp",
    "vision",
    "foundation",
    "speech",
    "llm-serving",
    "assistants",
    "embeddings",
    "builds",
    "sandbox",
    "data",
    "spot",
    "urgent",
    "night",
)
SYSTEM_NAMESPACES = ("default", "kube-system", "kai-scheduler", "grove-system", "dynamo-system")


def ancestors(name: str) -> list[Queue]:
    """Return a queue and its parents, leaf first; empty where there is no such queue."""
    chain: list[Queue] = []
    while name in QUEUES:
        chain.append(QUEUES[name])
        name = QUEUES[name].parent
    return chain
