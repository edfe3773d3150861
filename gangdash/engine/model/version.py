"""Which version of the scheduler runs? Numbers out of an image tag, and what a configuration tells without one.

A tag of a build between releases (a commit, 0.0.0) names no release: then nothing is known, and the rules of the
version that this engine replays are taken.
"""

from __future__ import annotations

import re

from gangdash.engine.model.config import GENERATOR_PLUGINS, Shard

Version = tuple[int, int, int]
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_EVICTING = frozenset({"consolidation", "reclaim", "preempt"})
BEFORE_GENERATORS: Version = (0, 15, 0)
"""The latest release whose configuration names no generators of victim sets."""


def parsed(tag: str) -> Version | None:
    """Return the numbers of a release; None for a tag that names none."""
    found = _VERSION.match(tag)
    if found is None:
        return None
    version = (int(found[1]), int(found[2]), int(found[3] or 0))
    return version if version >= (0, 1, 0) else None


def running(shard: Shard) -> Version | None:
    """Return the release that runs, or the latest that it can be; None where nothing tells."""
    version = parsed(shard.version)
    if version is None and "schedulerParams" in shard.source and _has_no_generators(shard):
        return BEFORE_GENERATORS
    return version


def _has_no_generators(shard: Shard) -> bool:
    """Whether a configuration that lists its plugins evicts without any plugin that could say whom."""
    config = shard.config
    return not _EVICTING.isdisjoint(config.actions) and all(config.plugin(name) is None for name in GENERATOR_PLUGINS)


def named(version: Version) -> str:
    """Return a release as people write it: v0.16 for 0.16.0."""
    major, minor, patch = version
    return f"v{major}.{minor}.{patch}" if patch else f"v{major}.{minor}"
