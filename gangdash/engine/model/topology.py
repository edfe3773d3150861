"""Topology objects: the node labels that make up a tree of domains, broadest first."""

from __future__ import annotations

from dataclasses import dataclass

from gangdash.engine.model.meta import Meta


@dataclass(frozen=True, slots=True)
class TopologyLevel:
    node_label: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    meta: Meta
    levels: tuple[TopologyLevel, ...] = ()

    @property
    def name(self) -> str:
        return self.meta.name
