"""The three forms of one cluster, what was read and when, and what a saved reading keeps."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangdash.engine.model.cluster import ClusterSnapshot, GangHistory
from gangdash.engine.model.deadlines import Deadlines
from gangdash.engine.model.digest import snapshot_digest
from gangdash.kube.reading import History, Reading
from gangdash.snapshot.archive import load_bytes, load_reading, load_snapshot, snapshot_of, write_dump
from gangdash.snapshot.errors import SnapshotError
from tests.kube import raw

OBJECTS = [raw.pod("p"), raw.node("n"), raw.queue("q"), raw.podgroup()]


def _reading(content: dict[str, Any] | bytes) -> Reading:
    return load_bytes(content if isinstance(content, bytes) else json.dumps(content).encode(), name="file")


def _snapshot(content: dict[str, Any] | bytes) -> ClusterSnapshot:
    return snapshot_of(_reading(content))


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("snapshot.json", content)
    return buffer.getvalue()


DUMP = json.dumps(raw.dump(*OBJECTS)).encode()


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(DUMP),
        _zipped(DUMP),
        gzip.compress(_zipped(DUMP)),
        yaml.safe_dump(json.loads(DUMP)).encode(),
        gzip.compress(yaml.safe_dump(json.loads(DUMP)).encode()),
        b"\xef\xbb\xbf" + DUMP,
        b"\n\n  " + DUMP + b"\n",
        DUMP.decode().encode("utf-16"),
        json.dumps(json.loads(DUMP), indent=4).encode(),
    ],
    ids=["gzip", "zip", "zip in gzip", "yaml", "yaml in gzip", "byte order mark", "blanks", "utf-16", "indented"],
)
def test_packing_makes_no_difference(content: bytes) -> None:
    assert snapshot_digest(_snapshot(content)) == snapshot_digest(_snapshot(DUMP))


def test_name_of_a_file_makes_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.gzip.txt"
    path.write_bytes(_zipped(DUMP))

    assert load_snapshot(path).name == "snapshot.gzip.txt"
    assert snapshot_digest(load_snapshot(path)) == snapshot_digest(_snapshot(DUMP))


def test_scheduler_snapshot_has_read_what_it_can_carry() -> None:
    pods = [{key: value for key, value in raw.pod("p").items() if key not in {"kind", "apiVersion"}}]
    snapshot = _snapshot(raw.scheduler_snapshot(pods=pods, nodes=None, queues=[]))

    assert [pod.key for pod in snapshot.pods] == ["team/p"]
    assert {"Pod", "Node", "Queue", "PodGroup", "ResourceClaim", "ConfigMap"} <= snapshot.read
    assert not {"Event", "Namespace", "Deployment", "SchedulingShard"} & snapshot.read
    assert snapshot.source == "kai"
    assert {n.kind: n.reason for n in snapshot.not_read}["Event"] == "not part of a scheduler snapshot"


def test_scheduler_snapshot_names_lists_it_does_not_know() -> None:
    assert _snapshot(raw.scheduler_snapshot(pods=[], widgets=[{}])).unknown_kinds == ("widgets",)


def test_kind_without_an_item_was_not_read_unless_the_dump_says_so() -> None:
    silent = _snapshot(raw.dump(raw.node("n")))
    spoken = _snapshot(raw.dump(raw.node("n"), read=["Node", "Pod"], notRead=[{"kind": "Queue", "reason": "403"}]))

    assert silent.read == {"Node"}
    assert spoken.read == {"Node", "Pod"}
    assert spoken.was_read("Pod")
    assert spoken.pods == ()
    assert {n.kind: n.reason for n in spoken.not_read}["Queue"] == "403"
    assert {n.kind: n.reason for n in spoken.not_read}["PodGroup"] == "not in the dump"


def test_kind_read_in_part_does_not_count_as_read() -> None:
    snapshot = _snapshot(raw.dump(raw.queue("q"), raw.node("n"), notRead=[{"kind": "Queue", "reason": "cut"}]))

    assert [queue.name for queue in snapshot.queues] == ["q"]
    assert not snapshot.was_read("Queue")


def test_unknown_kinds_are_named_once() -> None:
    items = [raw.thing("example.com/v1", "Widget", name) for name in ("a", "b")]
    newer = raw.thing("scheduling.run.ai/v9", "Queue", "q")
    snapshot = _snapshot(raw.dump(*items, newer))

    assert snapshot.unknown_kinds == ("Queue (scheduling.run.ai/v9)", "Widget (example.com/v1)")
    assert not snapshot.was_read("Queue")


def test_list_of_one_kind_gives_its_items_their_kind() -> None:
    item = {key: value for key, value in raw.pod("p").items() if key not in {"kind", "apiVersion"}}
    snapshot = _snapshot({"apiVersion": "v1", "kind": "PodList", "items": [item]})

    assert [pod.key for pod in snapshot.pods] == ["team/p"]


def test_bad_object_is_left_out_and_named() -> None:
    amounts = raw.node("m")
    amounts["status"]["allocatable"]["cpu"] = "many"
    snapshot = _snapshot(raw.dump(raw.pod("good"), raw.pod("bad", priority="x"), amounts, {"metadata": {}}))

    assert [pod.key for pod in snapshot.pods] == ["team/good"]
    assert snapshot.nodes == ()
    assert {(o.object, o.field) for o in snapshot.oddities} == {
        ("Pod/team/bad", "spec.priority"), ("Node/m", "status.allocatable.cpu"), ("items[3]", "kind"),
    }  # fmt: skip


def test_object_given_twice_counts_once() -> None:
    snapshot = _snapshot(raw.dump(raw.queue("q", parentQueue="first"), raw.queue("q", parentQueue="second")))

    assert [queue.parent for queue in snapshot.queues] == ["first"]
    assert [(o.object, o.problem) for o in snapshot.oddities] == [("Queue/q", "given twice: the first one counts")]


@pytest.mark.parametrize(
    "keys,expected",
    [
        ({"asOf": "2026-11-30T10:00:00Z"}, "2026-11-30T10:00:00+00:00"),
        ({"asOf": "2026-11-30T10:00:00.25+01:00"}, "2026-11-30T09:00:00.250000+00:00"),
        ({"asOf": None}, "2026-11-30T09:30:00+00:00"),
    ],
)
def test_moment_is_the_named_one_or_the_newest_that_is_no_deletion(keys: dict[str, Any], expected: str) -> None:
    leaving = raw.pod("leaving")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    leaving["metadata"]["managedFields"] = [{"time": "2026-11-30T09:30:00Z"}]
    snapshot = _snapshot(raw.dump(leaving, **keys))

    assert datetime.fromtimestamp(snapshot.as_of, UTC).isoformat() == expected


def test_recorded_case_names_its_moment() -> None:
    case = raw.scheduler_snapshot(pods=[raw.pod("p")]) | {"case": {"now": "2026-11-30T08:00:00Z"}}

    assert _snapshot(case).as_of == datetime(2026, 11, 30, 8, tzinfo=UTC).timestamp()


def test_moment_given_by_the_caller_counts_most(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(DUMP)
    moment = datetime(2027, 1, 1, tzinfo=UTC)

    assert load_snapshot(path, as_of=moment).as_of == moment.timestamp()
    assert load_snapshot(path, as_of=moment.timestamp()).as_of == moment.timestamp()


CONFIG_FILE = "actions: allocate\ntiers: [{plugins: [{name: proportion}]}]"
RICH = raw.dump(
    *OBJECTS,
    raw.pod("bad", priority="x"),
    raw.thing("example.com/v1", "Widget", "w"),
    raw.shard("blue", partitionLabelValue="blue", kValue=0.5),
    raw.scheduler_deployment("kai-scheduler-blue", "--schedule-period=3s"),
    raw.config_map("kai-scheduler-blue", "kai-scheduler", config_yaml=CONFIG_FILE),
    raw.thing("grove.io/v1alpha1", "PodClique", "c", "team", spec={"replicas": 1}, status={"replicas": 1}),
    raw.thing("v1", "Event", "e", "team", involvedObject={"kind": "Pod", "name": "p"}, lastTimestamp=raw.NOW, count=3),
    read=["Topology"],
    notRead=[{"kind": "Namespace", "reason": "403"}],
    history={"uid-1": {"placeable_since": "2026-11-30T08:00:00.5Z", "last_verdict": "NO_FIT"}},
)  # fmt: skip


@pytest.mark.parametrize("content", [RICH, raw.scheduler_snapshot(pods=[raw.pod("p")], nodes=[raw.node("n")])])
def test_saved_reading_gives_the_same_snapshot(content: dict[str, Any]) -> None:
    first = _reading(content)
    saved = write_dump(first)
    second = _reading(saved)

    assert snapshot_digest(snapshot_of(second)) == snapshot_digest(snapshot_of(first))
    assert write_dump(second) == saved
    assert snapshot_of(second).shards == snapshot_of(first).shards
    assert snapshot_of(second).oddities == snapshot_of(first).oddities


def test_saved_reading_is_a_kubernetes_list() -> None:
    saved = json.loads(write_dump(_reading(RICH)))

    assert (saved["apiVersion"], saved["kind"]) == ("v1", "List")
    assert all(item["apiVersion"] and item["kind"] and item["metadata"]["name"] for item in saved["items"])
    assert "Topology" in saved["read"]
    assert {"kind": "Namespace", "reason": "403"} in saved["notRead"]


def test_history_goes_with_the_dump() -> None:
    moment = datetime(2026, 11, 30, 8, 0, 0, 123456, tzinfo=UTC)
    known = History(last_ran=moment, last_verdict="POLICY", evictions=[moment])
    saved = write_dump(_reading(RICH), history={"uid-2": known})

    told = GangHistory(None, moment.timestamp(), "POLICY", (moment.timestamp(),))
    assert _snapshot(saved).history == {"uid-2": told}
    assert _snapshot(RICH).history["uid-1"].placeable_since == datetime(2026, 11, 30, 8, 0, 0, 500000, UTC).timestamp()


def test_what_only_the_server_counts_makes_no_difference() -> None:
    touched = raw.node("n")
    touched["metadata"] |= {"resourceVersion": "77", "managedFields": [{"manager": "kubelet", "time": raw.NOW}]}
    touched["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": raw.NOW}]
    calm = raw.node("n")
    calm["status"]["conditions"] = [{"type": "Ready", "status": "True"}]

    assert write_dump(_reading(raw.dump(touched))) == write_dump(_reading(raw.dump(calm)))


def test_digest_tells_contents_apart() -> None:
    other = raw.dump(*OBJECTS[1:], raw.pod("p", priority=1))

    assert snapshot_digest(_snapshot(other)) != snapshot_digest(_snapshot(DUMP))


def test_order_of_items_makes_no_difference() -> None:
    assert snapshot_digest(_snapshot(raw.dump(*reversed(OBJECTS)))) == snapshot_digest(_snapshot(DUMP))


def test_reading_of_a_file_carries_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(DUMP)

    assert load_reading(path).name == "x.json"


def test_deadlines_go_with_the_dump() -> None:
    reading = _reading(RICH)
    assert _snapshot(write_dump(reading)).deadlines == Deadlines()
    reading.deadlines = {"gate": 30}
    assert _snapshot(write_dump(reading)).deadlines == Deadlines(gate=30)


def test_a_deadline_of_no_step_is_a_clear_error() -> None:
    reading = _reading(RICH)
    reading.deadlines = {"gates": 30}
    with pytest.raises(SnapshotError, match=r"deadlines\.gates: not a step of a controller; known are children, "):
        snapshot_of(reading)
