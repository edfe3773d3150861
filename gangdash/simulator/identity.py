"""Uids, times and references of the demo cluster's objects: the same seed gives the same ones."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from gangdash.simulator.events import About
from gangdash.simulator.gangs import Gang, Member


@lru_cache(maxsize=8192)
def uid(seed: int, kind: str, namespace: str, name: str) -> str:
    """Return an object's uid, in the shape that API servers make."""
    digest = blake2b(f"{seed}/{kind}/{namespace}/{name}".encode(), digest_size=16).digest()
    return str(uuid.UUID(bytes=digest, version=4))


def stamp(moment: datetime) -> str:
    """Return a time as objects carry it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def podgroup_name(seed: int, gang: Gang) -> str:
    """Return the PodGroup's name: the grouper's own for Jobs, else the gang's."""
    if gang.job:
        return f"pg-{gang.job}-{uid(seed, 'Job', gang.namespace, gang.job)}"
    return gang.name


def about_gang(seed: int, gang: Gang) -> About:
    name = podgroup_name(seed, gang)
    return About(
        "scheduling.run.ai/v2alpha2", "PodGroup", gang.namespace, name, uid(seed, "PodGroup", gang.namespace, name)
    )


def about_pod(seed: int, gang: Gang, member: Member) -> About:
    return About("v1", "Pod", gang.namespace, member.name, uid(seed, "Pod", gang.namespace, member.name))


def owner(
    seed: int, api_version: str, kind: str, namespace: str, name: str, *, controller: bool = True
) -> dict[str, Any]:
    """Return an owner reference; a PodGroup of a Job has one that is no controller."""
    reference: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "name": name}
    reference["uid"] = uid(seed, kind, namespace, name)
    return reference | ({"controller": True, "blockOwnerDeletion": True} if controller else {})
