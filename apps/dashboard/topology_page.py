"""The map of a topology: domains inside domains down to nodes, and where one picked gang would fit.

Whether a domain fits is told from its GPUs alone, now and if empty; the gang's page has the verdict that weighs
everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.scope import Scope
from apps.dashboard import numbers
from apps.dashboard.gang_page import needed_gpus
from apps.dashboard.links import gang_url
from apps.dashboard.names import level_word
from apps.diagnosis.selectors import explanation_get
from apps.inventory.choices import NodeState
from apps.inventory.models import Domain, Node, Topology
from apps.workloads.models import Gang
from apps.workloads.selectors import gang_get

SQUARES_MAX = 16


@dataclass(frozen=True, slots=True)
class NodeCell:
    """One node with a square per GPU; more than ``SQUARES_MAX`` are written only."""

    node: Node
    css: str
    squares: tuple[str, ...]
    words: str
    icon: str


@dataclass(slots=True)
class Place:
    """One domain with what is inside it."""

    domain: Domain
    level: str
    places: list[Place] = field(default_factory=list)
    nodes: list[NodeCell] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Map:
    """``loose`` are nodes without a place in the topology, usually for want of a label."""

    places: tuple[Place, ...]
    loose: tuple[NodeCell, ...]


def build(topology: Topology | None, domains: Sequence[Domain], nodes: Sequence[Node]) -> Map:
    """Return the domains as a tree with the nodes in the narrowest one that holds them."""
    if topology is None:
        return Map((), tuple(cell(node) for node in nodes))
    labels = [str(level["label"]) for level in topology.levels]
    words = [str(level.get("alias") or level_word(label)) for level, label in zip(topology.levels, labels, strict=True)]
    places = {domain.path: Place(domain, words[domain.level]) for domain in domains if domain.level < len(words)}
    for place in places.values():
        parent = places.get(place.domain.parent_path)
        if parent is not None and parent is not place:
            parent.places.append(place)
    loose: list[NodeCell] = []
    for node in nodes:
        home = _home(node, labels, places)
        (home.nodes if home else loose).append(cell(node))
    return Map(tuple(place for place in places.values() if not place.domain.level), tuple(loose))


def _home(node: Node, labels: Sequence[str], places: dict[str, Place]) -> Place | None:
    """Return the narrowest domain of a node; a level without its label ends the path."""
    found, path = None, ""
    for label in labels:
        value = node.labels.get(label)
        if value is None:
            break
        path = f"{path}/{value}" if path else str(value)
        inner = places.get(path)
        # The level of single nodes would draw a box around each cell.
        if inner is None or label == "kubernetes.io/hostname":
            break
        found = inner
    return found


def cell(node: Node) -> NodeCell:
    css = {NodeState.CORDONED: "cord", NodeState.NOT_READY: "down", NodeState.TAINTED: "cord"}.get(
        NodeState(node.state), ""
    )
    icon = {"cord": "node", "down": "x"}.get(css, "")
    words = f"{numbers.number(node.gpus_free)} free" if node.gpus else "no GPU"
    if css:
        words = str(NodeState(node.state).label).lower()
    whole = [round(amount) for amount in (node.gpus_used, node.gpus_free, node.gpus_lost)]
    squares = ["np"] * whole[0] + ["fr"] * whole[1] + ["lost"] * whole[2]
    full = "full" if not css and node.gpus_free == 0 else ""
    return NodeCell(node, css or full, tuple(squares) if len(squares) <= SQUARES_MAX else (), words, icon)


@dataclass(frozen=True, slots=True)
class Level:
    """How many domains of one level hold the picked gang's GPUs: now, only if empty, never."""

    word: str
    now: int
    if_empty: int
    never: int
    is_required: bool


def picked_gang(
    scope: Scope, cluster: str, uid: str, domains: Sequence[Domain], topology: Topology | None
) -> dict[str, Any]:
    """Return what the map says about one gang; nothing where none is picked or visible."""
    if not uid:
        return {}
    try:
        gang = gang_get(scope=scope, public_id=f"{cluster}~{uid}")
    except Gang.DoesNotExist:
        return {}
    record = explanation_get(gang=gang)
    need = needed_gpus(record.data(), gang) if record else gang.gpus_waiting or gang.gpus or 0.0
    levels = levels_of(domains, topology, need, gang.required_level) if topology else []
    return {"picked": gang, "picked_url": gang_url(gang), "need": need, "levels": levels}


def levels_of(domains: Sequence[Domain], topology: Topology, need: float, required: str) -> list[Level]:
    found = []
    for at, level in enumerate(topology.levels):
        here = [domain for domain in domains if domain.level == at]
        now = sum(domain.gpus_free >= need for domain in here)
        empty = sum(domain.gpus >= need > domain.gpus_free for domain in here)
        names = {str(level["label"]), str(level.get("alias") or "")}
        word = str(level.get("alias") or level_word(str(level["label"])))
        found.append(Level(word, now, empty, len(here) - now - empty, required in names if required else False))
    return found
