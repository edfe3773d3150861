"""`manage.py fit SNAPSHOT`: which gangs fit where, now; with --shape, whether one that does not exist yet would start.

The table counts whole free GPUs by topology domain. With a shape the gang is submitted to the replay, so that
queue limits, fair share and the gangs ahead of it count as they would for a real one.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from gangdash.comparison import compare, difference_of, free_capacity
from gangdash.documents.whatif import DomainEntry, WhatIf
from gangdash.engine.capacity import SHAPES
from gangdash.engine.changes import Change, ChangeError
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.verdict import FixKind
from gangdash.engine.whatif import run_all
from gangdash.reasons.wording import clean
from gangdash.replay import replay
from gangdash.snapshot.archive import SnapshotError, load_snapshot

NAMESPACE, NAME = "gangdash", "what-fits"
_SHAPE = re.compile(r"^(\d+)gpu$")


class Command(BaseCommand):
    help = "Which gangs fit where. With --shape 8gpu --size 16, whether a new gang of 16 pods of 8 GPUs would start."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("snapshot", type=Path, metavar="SNAPSHOT")
        parser.add_argument("--shape", metavar="Ngpu", help="GPUs of each pod, like 8gpu")
        parser.add_argument("--size", type=int, default=1, metavar="PODS", help="pods of the gang (default 1)")
        parser.add_argument(
            "--level", default="", help="node label, alias or last part of the label of a topology level"
        )
        parser.add_argument("--queue", default="", help="leaf queue; default: each leaf queue in turn")
        parser.add_argument("--format", choices=("text", "json"), default="text", dest="form")

    def handle(self, *, snapshot: Path, **options: Any) -> None:
        try:
            loaded = load_snapshot(snapshot)
            if options["shape"]:
                self._ask(loaded, options)
            else:
                self._table(loaded, options)
        except (ChangeError, SnapshotError) as error:
            raise CommandError(str(error), returncode=255) from error

    def _table(self, snapshot: ClusterSnapshot, options: dict[str, Any]) -> None:
        found = free_capacity(snapshot)
        if options["level"]:
            label = level_label(snapshot, options["level"])[1]
            found = msgspec.structs.replace(found, domains=[d for d in found.domains if d.level in ("cluster", label)])
        if options["form"] == "json":
            self.stdout.write(_json(found))
        else:
            self.stdout.write("\n".join(_lines(found.domains)))

    def _ask(self, snapshot: ClusterSnapshot, options: dict[str, Any]) -> None:
        queues = [options["queue"]] if options["queue"] else leaf_queues(snapshot)
        gang, before = f"{NAMESPACE}/{NAME}", run_all(snapshot)
        for queue in queues:
            change = Change(FixKind.SUBMIT, gang, submit_values(snapshot, queue, options))
            found = compare(snapshot, [change], before=before)
            effect = difference_of(found)
            entry = replay(found.changed, gang=gang, cycles=found.after).explanation(gang)
            if options["form"] == "json":
                self.stdout.write(_json({"queue": queue, "explanation": entry, "effect": effect}))
            else:
                self.stdout.write(f"{clean(queue):24} {entry.sentence if entry else 'No answer.'}{_others(effect)}")


def _others(effect: WhatIf) -> str:
    """Say whom the new gang would cost something."""
    parts = [("delays", effect.delays), ("sets back", effect.sets_back), ("evicts", effect.evicts)]
    return "".join(f" It {verb} {', '.join(map(clean, gangs))}." for verb, gangs in parts if gangs)


def leaf_queues(snapshot: ClusterSnapshot) -> list[str]:
    """Return the queues that gangs may be submitted to, by name."""
    parents = {queue.parent for queue in snapshot.queues}
    return sorted(queue.name for queue in snapshot.queues if queue.name not in parents)


def level_label(snapshot: ClusterSnapshot, text: str) -> tuple[str, str]:
    """Return topology and node label of a level named by label, alias or the label's last part."""
    levels = [(topology.name, level) for topology in snapshot.topologies for level in topology.levels]
    for name, level in levels:
        if text in {level.node_label, level.alias, level.node_label.rpartition("/")[2]}:
            return name, level.node_label
    known = ", ".join(sorted({level.node_label for _, level in levels})) or "no topology was read"
    raise ChangeError(f"no topology level {text!r}; levels: {known}")


def submit_values(snapshot: ClusterSnapshot, queue: str, options: dict[str, Any]) -> dict[str, str]:
    """Return the values of the ``submit`` change for the options of the command line."""
    match = _SHAPE.match(options["shape"])
    if match is None or options["size"] < 1:
        raise ChangeError("say --shape as GPUs a pod, like 8gpu, and --size as 1 or more pods")
    if all(known.name != queue for known in snapshot.queues):
        raise ChangeError(f"no queue {queue!r} in the snapshot; leaf queues: {', '.join(leaf_queues(snapshot))}")
    values = {"queue": queue, "pods": str(options["size"]), "gpu": match.group(1)}
    if options["level"]:
        values["topology"], values["required"] = level_label(snapshot, options["level"])
    return values


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _lines(domains: Iterable[DomainEntry]) -> list[str]:
    shapes = "".join(f"{f'{shape} GPU':>9}" for shape in SHAPES)
    lines = [f"{'domain':38}{'nodes':>7}{'GPUs':>8}{'free':>8}{shapes}{'frag.':>8}  out of reach"]
    for row in domains:
        name = clean("/".join(row.path) or f"whole cluster, shard {row.shard}")
        largest = "".join(f"{row.largest.get(shape, 0):>9,}" for shape in SHAPES)
        fragmentation = "-" if row.fragmentation is None else f"{row.fragmentation:.0%}"
        blocked = ", ".join(f"{count} {cause}" for cause, count in row.blocked.items())
        numbers = f"{row.nodes:>7,}{row.gpus:>8,}{row.free:>8,}{largest}{fragmentation:>8}"
        lines.append(f"{name[-37:]:38}{numbers}  {blocked}".rstrip())
    lines += ["", "Columns 1 to 8 GPU: the most pods of that shape that fit now. frag.: share of the free GPUs that"]
    lines += ["whole-node pods cannot use."]
    return lines
