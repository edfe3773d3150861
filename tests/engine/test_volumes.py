"""Volumes: bound, waiting for their first consumer, or to be provisioned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.model.meta import Meta, OwnerRef
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod, PodVolumes
from gangdash.engine.model.selectors import LabelSelector, NodeSelectorTerm, Requirement
from gangdash.engine.model.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from gangdash.engine.rules import volumes
from tests.engine.builders import ZONE, Cluster, outcome, texts

EAST = Node(Meta("e", labels={ZONE: "east"}))
WEST = Node(Meta("w", labels={ZONE: "west"}))
IN_EAST = (NodeSelectorTerm((Requirement(ZONE, "In", ("east",)),)),)
POD = Pod(Meta("p", "team", uid="p"), volumes=PodVolumes(claims=("data",)))
LATE = StorageClass(Meta("late"), "csi.example.com", "WaitForFirstConsumer")


def _claim(**fields: object) -> PersistentVolumeClaim:
    start = PersistentVolumeClaim(Meta("data", "team", uid="c"), storage_class="late", requested_bytes=10)
    return replace(start, **fields)  # type: ignore[arg-type]


def _volume(name: str = "v", **fields: object) -> PersistentVolume:
    start = PersistentVolume(Meta(name), "Available", "late", ("ReadWriteOnce",), 20, node_terms=IN_EAST)
    return replace(start, **fields)  # type: ignore[arg-type]


def _rules(
    *claims: PersistentVolumeClaim,
    volumes_: tuple[PersistentVolume, ...] = (),
    classes: tuple[StorageClass, ...] = (LATE,),
    capacities: tuple[CSIStorageCapacity, ...] = (),
    drivers: tuple[CSIDriver, ...] = (),
    ignore_space: bool = False,
) -> volumes.VolumeRules:
    cluster = Cluster()
    cluster.extra = {
        "volume_claims": claims,
        "volumes": volumes_,
        "storage_classes": classes,
        "csi_capacities": capacities,
        "csi_drivers": drivers,
    }
    return volumes.VolumeRules(cluster.snapshot(), ignore_space=ignore_space)


@pytest.mark.parametrize(
    "claim, text",
    [
        pytest.param(None, 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            _claim(phase="Lost", volume_name="v"),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
            id="lost",
        ),
        pytest.param(
            _claim(meta=Meta("data", "team", deleted=1.0)),
            'persistentvolumeclaim "data" is being deleted',
            id="deleted",
        ),
        pytest.param(_claim(storage_class="soon"), volumes.UNBOUND_IMMEDIATE, id="immediate class"),
        pytest.param(_claim(storage_class=None), volumes.UNBOUND_IMMEDIATE, id="no class"),
        pytest.param(_claim(volume_name="v"), volumes.UNBOUND_IMMEDIATE, id="named volume, not bound"),
        pytest.param(_claim(), "", id="waits for its first consumer"),
        pytest.param(_claim(volume_name="v", phase="Bound"), "", id="bound"),
    ],
)
def test_what_keeps_a_claim_from_every_node(claim: PersistentVolumeClaim | None, text: str) -> None:
    soon = StorageClass(Meta("soon"), "csi.example.com")
    found = _rules(*([claim] if claim else []), classes=(LATE, soon)).pod_claims(POD)
    assert found is not None
    assert found.error == text


def test_a_generated_claim_must_belong_to_the_pod() -> None:
    pod = replace(POD, volumes=PodVolumes(ephemeral=("data",)))
    assert "waiting for ephemeral volume controller" in (_rules().pod_claims(pod) or volumes.PodClaims()).error
    foreign = _rules(_claim()).pod_claims(pod)
    assert foreign is not None
    assert "was not created for pod team/p" in foreign.error
    owner = OwnerRef("v1", "Pod", "p", "p", controller=True)
    own = _rules(_claim(meta=Meta("data", "team", owners=(owner,)))).pod_claims(pod)
    assert own is not None
    assert not own.error


def test_a_pod_without_claims_is_served_everywhere() -> None:
    rules = _rules()
    assert rules.pod_claims(Pod(Meta("p"))) is None
    assert rules.failures(Pod(Meta("p")), EAST) == ()


def test_a_bound_volume_binds_the_pod_to_its_nodes() -> None:
    rules = _rules(_claim(volume_name="v", phase="Bound"), volumes_=(_volume(),))
    assert rules.failures(POD, EAST) == ()
    assert rules.failures(POD, WEST) == (volumes.NODE_CONFLICT,)
    gone = _rules(_claim(volume_name="v", phase="Bound"))
    assert gone.failures(POD, EAST) == (volumes.VOLUME_GONE,)


@pytest.mark.parametrize(
    "volume, east",
    [
        pytest.param(_volume(), True, id="fits"),
        pytest.param(_volume(capacity_bytes=9), False, id="too small"),
        pytest.param(_volume(phase="Released"), False, id="not available"),
        pytest.param(_volume(storage_class="other"), False, id="another class"),
        pytest.param(_volume(access_modes=()), False, id="wrong access"),
        pytest.param(_volume(volume_mode="Block"), False, id="wrong mode"),
        pytest.param(_volume(claim_key="team/other"), False, id="kept for another claim"),
        pytest.param(_volume(claim_key="team/data", phase="Pending"), True, id="kept for this claim"),
        pytest.param(_volume(claim_key="team/data", claim_uid="old"), False, id="kept for an earlier claim"),
        pytest.param(_volume(meta=Meta("v", deleted=1.0)), False, id="going away"),
    ],
)
def test_an_unbound_claim_needs_a_volume_where_nothing_provisions(volume: PersistentVolume, *, east: bool) -> None:
    static = StorageClass(Meta("late"), "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    rules = _rules(_claim(access_modes=("ReadWriteOnce",)), volumes_=(volume,), classes=(static,))
    assert rules.failures(POD, EAST) == (() if east else (volumes.BIND_CONFLICT,))
    assert rules.failures(POD, WEST) == (volumes.BIND_CONFLICT,)


def test_two_claims_take_two_volumes() -> None:
    static = StorageClass(Meta("late"), "", "WaitForFirstConsumer")
    pod = replace(POD, volumes=PodVolumes(claims=("data", "more")))
    claims = (_claim(), _claim(meta=Meta("more", "team"), requested_bytes=15))
    assert _rules(*claims, volumes_=(_volume("a"), _volume("b")), classes=(static,)).failures(pod, EAST) == ()
    assert _rules(*claims, volumes_=(_volume("a"),), classes=(static,)).failures(pod, EAST) == (volumes.BIND_CONFLICT,)


def test_labels_of_a_volume_are_asked() -> None:
    static = StorageClass(Meta("late"), "", "WaitForFirstConsumer")
    claim = _claim(selector=LabelSelector({"tier": "fast"}))
    assert _rules(claim, volumes_=(_volume(),), classes=(static,)).failures(POD, EAST) == (volumes.BIND_CONFLICT,)
    fast = _volume(meta=Meta("v", labels={"tier": "fast"}))
    assert _rules(claim, volumes_=(fast,), classes=(static,)).failures(POD, EAST) == ()


def test_provisioning_asks_for_topology_and_the_chosen_node() -> None:
    here = replace(LATE, allowed_topologies=IN_EAST)
    rules = _rules(_claim(), classes=(here,))
    assert (rules.failures(POD, EAST), rules.failures(POD, WEST)) == ((), (volumes.BIND_CONFLICT,))
    chosen = _claim(meta=Meta("data", "team", annotations={volumes.SELECTED_NODE: "w"}))
    rules = _rules(chosen)
    assert (rules.failures(POD, EAST), rules.failures(POD, WEST)) == ((volumes.BIND_CONFLICT,), ())


@pytest.mark.parametrize(
    "capacity, tracked, ignored, fits",
    [
        pytest.param(
            CSIStorageCapacity(Meta("x"), "late", 10, node_selector=LabelSelector()), True, False, True, id="room"
        ),
        pytest.param(
            CSIStorageCapacity(Meta("x"), "late", 9, node_selector=LabelSelector()), True, False, False, id="none"
        ),
        pytest.param(
            CSIStorageCapacity(Meta("x"), "late", 50, 5, node_selector=LabelSelector()),
            True,
            False,
            False,
            id="per volume",
        ),
        pytest.param(CSIStorageCapacity(Meta("x"), "late", 50), True, False, False, id="no topology"),
        pytest.param(
            CSIStorageCapacity(Meta("x"), "other", 50, node_selector=LabelSelector()),
            True,
            False,
            False,
            id="other class",
        ),
        pytest.param(
            CSIStorageCapacity(Meta("x"), "late", 50, node_selector=LabelSelector({ZONE: "west"})),
            True,
            False,
            False,
            id="other zone",
        ),
        pytest.param(CSIStorageCapacity(Meta("x"), "late", 9), False, False, True, id="not tracked"),
        pytest.param(
            CSIStorageCapacity(Meta("x"), "late", 9), True, True, True, id="left to the scheduler's own count"
        ),
    ],
)
def test_space_for_new_volumes(capacity: CSIStorageCapacity, *, tracked: bool, ignored: bool, fits: bool) -> None:
    driver = CSIDriver(Meta("csi.example.com"), storage_capacity=tracked)
    rules = _rules(_claim(), capacities=(capacity,), drivers=(driver,), ignore_space=ignored)
    assert rules.failures(POD, EAST) == (() if fits else (volumes.NOT_ENOUGH_SPACE,))


def test_a_cycle_places_a_pod_beside_its_volume() -> None:
    cluster = Cluster()
    cluster.node("e", 4, labels={ZONE: "east"})
    cluster.node("w", 8, labels={ZONE: "west"})
    cluster.extra = {"volume_claims": (_claim(volume_name="v", phase="Bound"),), "volumes": (_volume(),)}
    cluster.gang("near", pod={"volumes": PodVolumes(claims=("data",))})
    cluster.gang("far", gpus=8, pod={"volumes": PodVolumes(claims=("data",))})
    cluster.gang("none", pod={"volumes": PodVolumes(claims=("lost",))})
    result = cluster.run("allocate")
    assert [pod.node for g in result.gangs if g.name == "near" for pod in g.pods] == ["e"]
    assert volumes.NODE_CONFLICT in texts(result, "far")[0][1]
    assert outcome(result, "none") == "unschedulable"
    assert (
        "Scheduling conditions were not met for pod team/none-0:\n"
        'VolumeBinding: persistentvolumeclaim "lost" not found.\n' in texts(result, "none")[0][1]
    )
