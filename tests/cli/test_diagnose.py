"""The diagnose command: forms, folders, exit codes, and one clear line for every file that is no snapshot."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.diagnosis.management.commands.diagnose import Command

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"},
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
QUEUE: dict[str, Any] = {
    "apiVersion": "scheduling.run.ai/v2",
    "kind": "Queue",
    "metadata": {"name": "q"},
    "spec": {"resources": {r: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for r in ("cpu", "memory", "gpu")}},
}
READ = ["Node", "Pod", "PodGroup", "Queue", "BindRequest", "PriorityClass", "Topology", "Event"]


def gang(gpus: int, name: str = "g") -> list[dict[str, Any]]:
    created = "2026-11-30T08:00:00Z"
    return [
        {
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": created},
            "spec": {"queue": "q", "minMember": 1},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-0",
                "namespace": "team",
                "creationTimestamp": created,
                "annotations": {"pod-group-name": name},
            },
            "spec": {
                "schedulerName": "kai-scheduler",
                "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}],
            },
            "status": {"phase": "Pending"},
        },
    ]


def dump(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "List",
        "asOf": "2026-11-30T08:00:05Z",
        "read": READ,
        "items": [NODE, QUEUE, *items],
    }


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


class Run:
    """One run of the command: what it printed and its exit code."""

    def __init__(self, *arguments: object) -> None:
        out, err = io.StringIO(), io.StringIO()
        self.code = 0
        try:
            call_command("diagnose", *map(str, arguments), stdout=out, stderr=err)
        except SystemExit as stop:
            self.code = int(stop.code or 0)
        except CommandError as error:
            self.code, err = error.returncode, io.StringIO(str(error))
        self.out, self.err = out.getvalue(), err.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.mark.parametrize(
    "items, code",
    [
        ([], 0),
        (gang(4), 1),
        (gang(9), 2),
    ],
)
def test_exit_code_says_what_was_found(tmp_path: Path, items: list[dict[str, Any]], code: int) -> None:
    assert Run(write(tmp_path / "a.json", dump(*items))).code == code


def test_cycle_only_never_says_never(tmp_path: Path) -> None:
    run = Run(write(tmp_path / "a.json", dump(*gang(9))), "--cycle-only", "--format", "jsonl")
    assert run.code == 1
    assert run.lines[0]["explanations"] == []
    assert run.lines[0]["cycle"]["gangs"][0]["outcome"] == "unschedulable"


def test_highest_code_of_several_files_wins_and_errors_do_not_stop_the_rest(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    run = Run(
        write(tmp_path / "a.json", dump(*gang(9))), broken, write(tmp_path / "b.json", dump()), "--format", "jsonl"
    )
    assert run.code == 255
    assert [line["snapshot"] for line in run.lines] == ["a.json", "broken.json", "b.json"]
    assert "error" in run.lines[1]
    assert len(run.err.splitlines()) == 1


def test_folder_gives_its_own_snapshot_files_in_order(tmp_path: Path) -> None:
    write(tmp_path / "b.json", dump())
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(dump()).encode()))
    (tmp_path / "notes.txt").write_text("no snapshot")
    (tmp_path / "below").mkdir()
    write(tmp_path / "below" / "c.json", dump())
    run = Run(tmp_path, "--format", "jsonl")
    assert [line["snapshot"] for line in run.lines] == ["a.json.gz", "b.json"]


def test_folder_without_snapshots_is_an_error(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.code == 255
    assert "no snapshot file" in run.err


def test_healthy_gangs_are_printed_on_request_only(tmp_path: Path) -> None:
    items = gang(4)
    items[1]["spec"]["nodeName"] = "n1"
    items[1]["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    file = write(tmp_path / "a.json", dump(*items))
    assert Run(file, "--format", "jsonl").lines[0]["explanations"] == []
    for argument in (("--all",), ("--gang", "team/g")):
        found = Run(file, "--format", "jsonl", *argument).lines[0]["explanations"]
        assert [(entry["verdict"], entry["code"]) for entry in found] == [("HEALTHY", "RUNNING")]


def test_gang_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    run = Run(write(tmp_path / "a.json", dump()), "--gang", "team/nobody")
    assert run.code == 255
    assert "team/nobody" in run.err


def test_text_is_for_people(tmp_path: Path) -> None:
    run = Run(write(tmp_path / "a.json", dump(*gang(9))))
    assert "team/g  NO_FIT NODE_TOO_SMALL" in run.out
    assert "Pod g-0 needs 9 GPUs" in run.out
    assert "node.gpu" in run.out


def test_names_from_the_cluster_cannot_move_the_cursor(tmp_path: Path) -> None:
    items = gang(9)
    items[1]["metadata"]["name"] = "g\u001b[2J-0"
    assert "\u001b" not in Run(write(tmp_path / "a.json", dump(*items))).out


def test_moment_is_read_with_its_zone(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", dump())
    run = Run(file, "--as-of", "2026-11-30T10:00:00+01:00", "--format", "jsonl")
    assert run.lines[0]["as_of"] == "2026-11-30T09:00:00Z"
    for bad in ("yesterday", "2026-11-30T10:00:00"):
        assert Run(file, "--as-of", bad).code == 255


def test_usage_errors_keep_clear_of_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--format", "csv", "x"], ["--nonsense"]):
        with pytest.raises(SystemExit) as stop:
            Command().run_from_argv(["manage.py", "diagnose", *arguments])
        assert stop.value.code == 255
    with pytest.raises(SystemExit) as stop:
        Command().run_from_argv(["manage.py", "diagnose", "--help"])
    assert not stop.value.code


def test_same_content_in_another_order_gives_the_same_bytes(tmp_path: Path) -> None:
    items = [*gang(4, "a"), *gang(6, "b"), *gang(9, "c")]
    first = Run(write(tmp_path / "x.json", dump(*items)), "--format", "jsonl").out
    (tmp_path / "other").mkdir()
    second = Run(write(tmp_path / "other" / "x.json", dump(*reversed(items))), "--format", "jsonl").out
    assert first == second


def zip_of(name: str, content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return target.getvalue()


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "blanks": b" " * 100_000,
    "truncated": json.dumps(dump())[:200].encode(),
    "not-json": b"\x00\x01\x02\x03",
    "not-utf8": b'{"kind": "\xff\xfe"}',
    "number": b"42",
    "text": b'"List"',
    "null": b"null",
    "array": b"[1, 2, 3]",
    "object": b"{}",
    "pod-alone": json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}).encode(),
    "items-no-list": b'{"apiVersion": "v1", "kind": "List", "items": 5}',
    "nesting": b"[" * 5000 + b"]" * 5000,
    "bad-gzip": b"\x1f\x8b" + b"\x00" * 40,
    "cut-gzip": gzip.compress(json.dumps(dump()).encode())[:60],
    "bad-zip": b"PK\x03\x04" + b"\x00" * 40,
    "zip-without-snapshot": zip_of("readme.txt", b"nothing"),
    "zip-outside": zip_of("../../etc/snapshot.json", b"{}"),
    "zip-of-nonsense": zip_of("snapshot.json", b"{"),
    "yaml-bomb": b"a: &a [x, x]\nb: &b [*a, *a]\nkind: List\nitems: [*b, *b]\n",
    "as-of-nonsense": json.dumps({**dump(), "asOf": "yesterday"}).encode(),
    "snapshot-nonsense": b'{"config": 5, "schedulerParams": [], "rawObjects": "no"}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_broken_file_gives_one_clear_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.json"
    file.write_bytes(content)
    run = Run(file)
    assert run.code == 255
    assert run.out == ""
    assert len(run.err.strip().splitlines()) == 1
    assert "broken.json" in run.err
    assert "Traceback" not in run.err
    assert "engine failed" not in run.err


def test_missing_file_and_unreadable_type_are_errors(tmp_path: Path) -> None:
    assert Run(tmp_path / "nowhere.json").code == 255
    fifo = tmp_path / "link.json"
    fifo.symlink_to(tmp_path / "nowhere.json")
    assert Run(fifo).code == 255
