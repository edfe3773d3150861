"""What every record is made of: metadata, conditions, selectors, amounts.

Records are the objects of the cluster as they come over the wire, reduced to the fields that some rule
reads. What a record does not name is skipped by the decoder and never stored: environment values,
commands, pull secrets, volume contents, managed fields. ``None`` is an absent (or null) field. Encoding
a record gives API JSON again, which is what a saved reading is made of.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from gangdash.kube.allowed import kept_annotations

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Quantity = str | int | float
Amounts = dict[str, Quantity]


class Part(msgspec.Struct, omit_defaults=True, rename="camel", gc=False):
    """A part of an object; fields are the API's in snake case."""


class OwnerReference(Part):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Part):
    name: str
    namespace: str | None = None
    uid: str | None = None
    generation: Int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.annotations = kept_annotations(self.annotations)


class Record(Part, kw_only=True):
    """Any object. ``api_version`` and ``kind`` may be absent in list items; the reader fills them in."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata


class Condition(Part):
    type: str
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None
    observed_generation: Int | None = None


class Observed(Record):
    """An object of a kind that the replay does not use, cut down to the paths that its kind allows."""

    fields: dict[str, Any] = msgspec.field(default_factory=dict)


class Requirement(Part):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(Part):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class NodeSelectorTerm(Part):
    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(Part):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredNodeTerm(Part):
    weight: Int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Part):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodeTerm, ...] | None = None


class PodAffinityTerm(Part):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class PreferredPodTerm(Part):
    weight: Int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Part):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPodTerm, ...] | None = None


class Affinity(Part):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Part):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: Int | None = None


class SpreadConstraint(Part):
    max_skew: Int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int | None = None
