"""Which rules a shard's configuration switches on, in the order in which it lists its plugins.

Opens a session: builds it from the snapshot and lets every enabled plugin hang in what it does. Plugins
that only report (snapshot, reflectjoborder) do nothing here; one that is not replayed is noted on the
gangs it could matter to. Mirrors pkg/scheduler/framework/framework.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import Shard
from gangdash.engine.rules import (
    affinity,
    capacity,
    dra,
    fairshare,
    gpu_sharing,
    minruntime,
    order,
    predicates,
    reclaimable,
    scoring,
    topology,
    versions,
)
from gangdash.engine.session import NodeScorer, Session, build_session

NUMA = "numa plugin"
USAGE = "usage database"

Arguments = Mapping[str, str]


def open_session(snapshot: ClusterSnapshot, shard: Shard) -> Session:
    """Return the session of one shard, ready for its actions."""
    session = build_session(*versions.seen_by(snapshot, shard))
    versions.follow(session)
    session.charges_queues = shard.config.plugin("proportion") is not None
    order.install(session)
    for plugin in shard.config.plugins:
        install = _PLUGINS.get(plugin.name)
        if install is not None:
            install(session, plugin.arguments)
    return session


def _predicates(session: Session, _: Arguments) -> None:
    if session.charges_queues:
        session.hooks.predicates.append(capacity.node_check(session))
    predicates.install(session)


def _proportion(session: Session, arguments: Arguments) -> None:
    fairshare.divide_cluster(session, k=max(_number(arguments.get("kValue"), fairshare.DEFAULT_K), 0.0))
    capacity.install(session)
    reclaimable.install(session)
    if session.config.usage_db:
        _not_modelled(session, USAGE)


def _placement(session: Session, arguments: Arguments) -> None:
    session.hooks.node_scorers.append(
        scoring.Placement(
            spread_gpu=arguments.get("gpu") == "spread",
            spread_cpu=arguments.get("cpu") == "spread",
        )
    )


def _numa(session: Session, _: Arguments) -> None:
    _not_modelled(session, NUMA)


def _not_modelled(session: Session, what: str) -> None:
    for job in session.jobs.values():
        session.not_modelled.setdefault(job.key, []).append(what)


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default


def _scorer(make: Callable[[], NodeScorer]) -> Callable[[Session, Arguments], None]:
    return lambda session, _: session.hooks.node_scorers.append(make())


def _plain(install: Callable[[Session], object]) -> Callable[[Session, Arguments], None]:
    def run(session: Session, _: Arguments) -> None:
        install(session)

    return run


_PLUGINS: dict[str, Callable[[Session, Arguments], None]] = {
    "predicates": _predicates,
    "proportion": _proportion,
    "nodeavailability": _scorer(scoring.Availability),
    "resourcetype": _scorer(scoring.ResourceType),
    "podaffinity": _plain(affinity.install),
    "nominatednode": _scorer(scoring.NominatedNode),
    "dynamicresources": _plain(dra.install),
    "minruntime": _plain(minruntime.install),
    "topology": _plain(topology.install),
    "gpupack": _plain(gpu_sharing.install_pack),
    "gpuspread": _plain(gpu_sharing.install_spread),
    "gpusharingorder": _scorer(scoring.GpuSharing),
    "nodeplacement": _placement,
    "numa": _numa,
}
