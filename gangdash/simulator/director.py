"""Who comes to the demo cluster and who leaves: the play that keeps many causes of waiting on stage at all times.

Each scene is one cause (or one kind of everyday work) with its own queue, hardware and clockwork. A scene submits a
gang whenever fewer than it promises would wait or run, so what it stands for is there at every moment.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gangdash.simulator.gangs import Gang, Member, Shape
from gangdash.simulator.plant import A100, H100, H200, L40S, NIGHT, PRODUCT, RACK

WHOLE = Shape(gpus=8, cpu=64_000, memory=524_288)
HALF = Shape(gpus=4, cpu=24_000, memory=196_608)
PAIR = Shape(gpus=2, cpu=12_000, memory=98_304)
ONE = Shape(gpus=1, cpu=6_000, memory=49_152)
NO_GPU = Shape(gpus=0, cpu=16_000, memory=65_536)

GATE = "example.com/data-staged"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Scene:
    """One part of the play.

    `keep_waiting` gangs wait at any time and `keep_alive` are there in all. Times are ranges in seconds.
    """

    name: str
    namespace: str
    queue: str
    stems: tuple[str, ...]
    pods: tuple[int, int]
    shape: Shape
    priority: str = "train"
    product: str = H100
    required_level: str | None = None
    preferred_level: str | None = None
    run: tuple[int, int] | None = (150, 400)
    patience: tuple[int, int] | None = None
    keep_waiting: int = 0
    keep_alive: int = 0
    job: bool = False
    gated: bool = False
    missing: int = 0
    image_broken: bool = False
    pool: str = ""
    then: str = "leave"
    """What the owner does when patience ends: leave, ungate or complete."""
    pace: float = 0.6
    """How likely it is that a gang that may come comes in this step."""


# Numbers hold together: the H100 racks a1 and a2 keep 4 machines each and a3 all 4 for this traffic, and the queues'
# limits let it use 36 of those 96 GPUs, some more while pods leave. So 40 are always free, never over 32 in one rack.
SCENES: tuple[Scene, ...] = (
    Scene(
        "everyday", "nlp", "nlp", ("sft-llama", "dpo-mix", "rlhf-judge", "eval-long"), (1, 3), HALF,
        preferred_level=RACK, run=(150, 420), keep_alive=3, job=True,
    ),
    Scene(
        "limit", "vision", "vision", ("vit-large", "ocr-train", "segment"), (2, 2), PAIR,
        run=(120, 300), keep_waiting=2,
    ),
    Scene(
        "over-quota", "builds", "builds", ("wheel-cuda", "image-bake"), (2, 2), PAIR,
        priority="build", run=(140, 320), keep_waiting=2, job=True,
    ),
    Scene(
        "domain-busy", "foundation", "foundation", ("pretrain-40b", "pretrain-moe"), (10, 10), HALF,
        required_level=RACK, patience=(300, 600), keep_waiting=1,
    ),
    Scene(
        "domain-too-small", "foundation", "foundation", ("pretrain-405b",), (9, 9), WHOLE,
        required_level=RACK, patience=(600, 1200), keep_waiting=1,
    ),
    Scene(
        "fragmented", "speech", "speech", ("asr-multi", "tts-finetune"), (2, 2), WHOLE,
        product=A100, patience=(300, 700), keep_waiting=2,
    ),
    Scene(
        "cordoned", "assistants", "assistants", ("tool-use", "chat-distill"), (2, 2), WHOLE,
        product=H200, priority="inference", run=(150, 280), keep_waiting=2,
    ),
    Scene(
        "gated", "nlp", "nlp", ("corpus-v3", "curriculum"), (2, 2), HALF,
        gated=True, job=True, patience=(150, 320), keep_waiting=1, then="ungate",
    ),
    Scene(
        "members-missing", "nlp", "nlp", ("ring-attn", "tensor-par"), (4, 4), HALF,
        missing=2, job=True, patience=(160, 340), keep_waiting=1, then="complete",
    ),
    Scene("queue-missing", "vision", "visoin", ("clip-small",), (2, 2), HALF, patience=(240, 480), keep_waiting=1),
    Scene(
        "no-such-node", "foundation", "foundation", ("b200-trial",), (2, 2), WHOLE,
        product="NVIDIA-B200", patience=(300, 900), keep_waiting=1,
    ),
    Scene(
        "node-too-small", "speech", "speech", ("whisper-xl",), (1, 1), Shape(gpus=16, cpu=64_000, memory=524_288),
        product=A100, patience=(400, 800), keep_waiting=1,
    ),
    Scene("night", "night", "night-batch", ("night-index",), (1, 1), WHOLE, pool=NIGHT, keep_waiting=2),
    Scene(
        "image-broken", "speech", "speech", ("diarize",), (2, 2), ONE,
        product=A100, run=(400, 900), keep_alive=1, image_broken=True,
    ),
    Scene(
        "sandbox", "sandbox", "sandbox", ("try", "notebook", "demo"), (1, 2), ONE,
        product=A100, run=(300, 900), keep_alive=5,
    ),
    Scene(
        "data", "data", "data", ("dedup", "tokenize", "shuffle"), (2, 4), NO_GPU,
        product="", run=(400, 1200), keep_alive=7, job=True,
    ),
    Scene(
        "spot", "spot", "spot", ("sweep", "ablation"), (2, 2), PAIR,
        product=L40S, run=(300, 900), keep_alive=5, job=True,
    ),
    Scene(
        "urgent", "urgent", "urgent", ("hotfix-eval", "incident"), (2, 2), HALF,
        product=L40S, run=(50, 110), keep_alive=1, pace=0.04,
    ),
)  # fmt: skip


@dataclass(slots=True)
class Director:
    """Writes the programme; `rng` is the only source of chance."""

    rng: random.Random
    scenes: Mapping[str, Scene] = field(default_factory=lambda: {scene.name: scene for scene in SCENES})

    def arrivals(self, gangs: list[Gang], now: datetime) -> Iterator[Gang]:
        """Yield the gangs that must come now so that every scene keeps its promise."""
        for scene in self.scenes.values():
            own = [gang for gang in gangs if gang.scene == scene.name and not gang.ends]
            waiting = [gang for gang in own if gang.waits and not self.is_out_of_patience(gang, now)]
            alive = [gang for gang in own if any(member.finished is None for member in gang.members)]
            for _ in range(scene.keep_waiting - len(waiting)):
                yield self.cast(scene, now)
            # One at a time, so that everyday work trickles in.
            if len(alive) < scene.keep_alive and self.rng.random() < scene.pace:
                yield self.cast(scene, now)

    def is_out_of_patience(self, gang: Gang, now: datetime) -> bool:
        """Tell whether a waiting gang's owner is about to do something about it."""
        return gang.patience is not None and now - gang.created >= timedelta(seconds=gang.patience)

    def may_leave(self, gang: Gang, gangs: list[Gang], now: datetime) -> bool:
        """Tell whether a gang's owner acts now: only once another one stands in for its cause."""
        if not self.is_out_of_patience(gang, now) or not gang.waits:
            return False
        rest = [other for other in gangs if other.scene == gang.scene and other.waits and other is not gang]
        fresh = [other for other in rest if not self.is_out_of_patience(other, now)]
        return len(fresh) >= self.scenes[gang.scene].keep_waiting

    def cast(self, scene: Scene, now: datetime) -> Gang:
        """Make one gang of a scene."""
        name = f"{self.rng.choice(scene.stems)}-{self._suffix(4)}"
        count = self.rng.randint(*scene.pods)
        names = [self._pod_name(name, index, job=scene.job) for index in range(count - scene.missing)]
        gates = (GATE,) if scene.gated else ()
        members = [Member(pod, scene.shape, now, index=index, gates=gates) for index, pod in enumerate(names)]
        selector = {PRODUCT: scene.product} if scene.product else {}
        return Gang(
            namespace=scene.namespace,
            name=name,
            queue=scene.queue,
            priority=scene.priority,
            scene=scene.name,
            created=now,
            minimum=count,
            shape=scene.shape,
            members=members,
            selector=selector,
            required_level=scene.required_level,
            preferred_level=scene.preferred_level,
            pool=scene.pool,
            job=name if scene.job else "",
            run_seconds=self._seconds(scene.run),
            patience=self._seconds(scene.patience),
            image_broken=scene.image_broken,
        )

    def complete(self, gang: Gang, now: datetime) -> None:
        """Add the members that are missing."""
        for index in range(len(gang.members), gang.minimum):
            gang.members.append(
                Member(self._pod_name(gang.name, index, job=bool(gang.job)), gang.shape, now, index=index)
            )

    def _pod_name(self, gang: str, index: int, *, job: bool) -> str:
        return f"{gang}-{self._suffix(5) if job else index}"

    def _seconds(self, span: tuple[int, int] | None) -> int | None:
        return self.rng.randint(*span) if span else None

    def _suffix(self, length: int) -> str:
        return "".join(self.rng.choices(_LETTERS, k=length))
