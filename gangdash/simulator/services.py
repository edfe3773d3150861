"""The served models of the demo cluster: long-running anchors, and one that waits for a rack.

They stand where they stand from the beginning and never end. What they hold shapes everything else: four machines in
each of two racks, and half of every A100 machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

from gangdash.simulator.director import HALF, WHOLE
from gangdash.simulator.gangs import Gang, Member, Role, Service, Shape
from gangdash.simulator.plant import A100, H100, H200, PRODUCT, RACK

GROVE_GATE = "grove.io/podgang-pending-creation"
_FRONT = Role("frontend", 1, Shape(cpu=2_000, memory=4_096))


def services(now: datetime) -> list[Service]:
    """Return the served models; the last one needs 40 GPUs in one rack and finds them nowhere."""
    born = now - timedelta(days=9)
    pair = (Role("prefill", 1, WHOLE), Role("decode", 1, WHOLE))
    big = (Role("prefill", 2, WHOLE), Role("decode", 3, WHOLE))
    return [
        Service("llm-serving", "llama-70b", "llm-serving", born, (_FRONT,), pair, 2, dynamo=True, required_level=RACK),
        Service("llm-serving", "mixtral", "llm-serving", born, (_FRONT,), pair, 2, dynamo=False, required_level=RACK),
        Service(
            "llm-serving", "deepseek-r1", "llm-serving", now - timedelta(minutes=50), (_FRONT,), big, 2,
            dynamo=True, required_level=RACK,
        ),
    ]  # fmt: skip


def service_gangs(service: Service, rng: random.Random, nodes: list[str]) -> Iterator[Gang]:
    """Yield the base gang and the scaled ones; on the nodes, one GPU pod each, or waiting if none are given."""
    free = iter(nodes)
    for replica in range(service.replicas):
        base = replica == 0
        gang = Gang(
            namespace=service.namespace,
            name=service.base_name() if base else service.scaled_name(replica),
            queue=service.queue,
            priority="inference",
            scene="service",
            created=service.created,
            minimum=0,
            shape=WHOLE,
            members=[],
            selector={PRODUCT: H100},
            required_level=service.required_level,
            service=service,
            replica=replica,
        )
        for clique, role in service.clique_names(replica).items():
            for index in range(role.replicas):
                name = f"{clique}-{''.join(rng.choices('bcdfghjklmnpqrstvwxz', k=5))}"
                gang.members.append(Member(name, role.shape, service.created, role=clique, index=index))
        gang.minimum = len(gang.members)
        if nodes:
            _settle(gang, free, nodes[0])
        elif not base:
            for member in gang.members:
                member.gates = (GROVE_GATE,)
        yield gang


def embeddings(now: datetime, nodes: list[str]) -> Iterator[Gang]:
    """Yield one small server on each A100 machine, so that none of them is ever whole."""
    born = now - timedelta(days=3)
    for language, node in zip(("de", "en", "es", "fr", "hi", "ja", "pt", "zh"), nodes, strict=True):
        name = f"embed-{language}"
        gang = Gang(
            "embeddings", name, "embeddings", "inference", "anchor", born, 1, HALF,
            [Member(f"{name}-0", HALF, born)], {PRODUCT: A100},
        )  # fmt: skip
        _settle(gang, iter([node]), node)
        yield gang


def assistant(now: datetime, rng: random.Random, nodes: list[str]) -> Gang:
    """Return the gang that fills the H200 machines that are not cordoned."""
    born = now - timedelta(seconds=40)
    name = f"tool-use-{''.join(rng.choices('bcdfghjklm', k=4))}"
    members = [Member(f"{name}-{index}", WHOLE, born, index=index) for index in range(2)]
    gang = Gang(
        "assistants",
        name,
        "assistants",
        "inference",
        "cordoned",
        born,
        2,
        WHOLE,
        members,
        {PRODUCT: H200},
        run_seconds=160,
    )
    _settle(gang, iter(nodes), nodes[0])
    return gang


def _settle(gang: Gang, free: Iterator[str], shared: str) -> None:
    """Put a gang on its nodes as if it had run since it was made; pods without GPUs share one."""
    start = gang.created + timedelta(seconds=3)
    for member in gang.members:
        member.node = next(free) if member.shape.gpus else shared
        member.asked = member.bound = start
    gang.started = gang.last_start = start
