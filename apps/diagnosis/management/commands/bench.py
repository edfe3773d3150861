"""`manage.py bench FOLDER`: how long loading, a cycle and its phases take, beside the scheduler's own time.
`manage.py bench --poll`: what reading and storing a large generated cluster over HTTP costs.

Each file is measured in a process of its own, so that peak memory is that file's. Where ``X.kai.json`` lies
beside ``X.json``, its recorded session time is printed and the ratio taken; ratios travel between machines
better than seconds do.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.collector.benchmark import PollCost, poll_costs
from gangdash.engine.cycle import run_cycle
from gangdash.engine.model.cycle import CycleResult, GangOutcome
from gangdash.replay import replay
from gangdash.simulator.bulk import Size
from gangdash.snapshot.archive import SnapshotError, load_snapshot

PHASES = ("open", "allocate", "consolidation", "reclaim", "preempt", "stalegangeviction", "close")
_WAITING = (GangOutcome.UNSCHEDULABLE, GangOutcome.NOT_READY, GangOutcome.BOUND, GangOutcome.PIPELINED)


@dataclass(slots=True)
class Stopwatch:
    """Seconds by phase; a phase ends where the next one begins."""

    seconds: dict[str, float] = field(default_factory=dict)
    phase: str = ""
    since: float = 0.0

    def enter(self, phase: str) -> None:
        now = time.perf_counter()
        if self.phase:
            self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self.since
        self.phase, self.since = phase, now


@dataclass(frozen=True, slots=True)
class Measurement:
    """``explain_seconds`` is ``None`` unless explanations were asked for; memory in MiB."""

    file: str
    nodes: int
    waiting: int
    load_seconds: float
    phases: dict[str, float]
    memory: float
    explain_seconds: float | None = None

    @property
    def cycle_seconds(self) -> float:
        return sum(self.phases.values())


def measure(path: Path, *, explain: bool) -> Measurement:
    """Load one file, run its cycles, and the explanations on top if asked."""
    started = time.perf_counter()
    snapshot = load_snapshot(path)
    load_seconds = time.perf_counter() - started
    watch, results = Stopwatch(), []
    for shard in snapshot.shards:
        results.append(run_cycle(snapshot, shard, on_phase=watch.enter))
        watch.enter("")
    explain_seconds = None
    if explain:
        started = time.perf_counter()
        replay(snapshot)
        explain_seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measurement(
        path.name, len(snapshot.nodes), _waiting(results), load_seconds, watch.seconds, memory, explain_seconds
    )


def _waiting(results: Sequence[CycleResult]) -> int:
    return sum(gang.outcome in _WAITING for result in results for gang in result.gangs)


def scheduler_seconds(path: Path) -> dict[str, float] | None:
    """Return the scheduler's recorded seconds by phase, or ``None`` where nothing was recorded."""
    recorded = path.with_suffix(".kai.json")
    if not recorded.exists():
        return None
    micros = json.loads(recorded.read_text())["micros"]
    return {phase: value / 1e6 for phase, value in micros.items() if phase != "load"}


class Command(BaseCommand):
    help = "Measure loading, cycle and explanation of snapshot files beside the scheduler's own recorded time."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER", help="snapshot files, or one file")
        parser.add_argument("--explain", action="store_true", help="time the explanations with their fixes too")
        parser.add_argument("--poll", action="store_true", help="measure polls of a generated cluster instead")
        parser.add_argument("--nodes", type=int, default=1_000, help="with --poll: nodes of the cluster")
        parser.add_argument("--pods", type=int, default=10_000, help="with --poll: pods of the cluster")
        parser.add_argument("--gangs", type=int, default=2_000, help="with --poll: gangs that share the pods")

    def handle(self, *, folder: Path | None, explain: bool, poll: bool, **options: Any) -> None:
        if poll:
            self._poll(Size(options["nodes"], options["pods"], options["gangs"]))
        elif folder is not None:
            self._files(folder, explain=explain)
        else:
            raise CommandError("name a folder, or ask for --poll")

    def _poll(self, size: Size) -> None:
        if min(size.nodes, size.gangs) < 1 or size.pods < size.gangs:
            raise CommandError("--nodes and --gangs begin at 1, and each gang has at least one pod")
        self.stdout.write(_POLL_HEADER)
        for cost in poll_costs(size):
            self.stdout.write(_format_poll(cost))
            self.stdout.flush()

    def _files(self, folder: Path, *, explain: bool) -> None:
        files = [folder] if folder.is_file() else sorted(folder.glob("*.json"))
        files = [file for file in files if not file.name.endswith(".kai.json")]
        if not files:
            raise CommandError(f"no snapshot file in {folder}")
        self.stdout.write(_header(explain))
        for file in files:
            self.stdout.write(self._row(file, explain=explain))
            self.stdout.flush()

    def _row(self, file: Path, *, explain: bool) -> str:
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            try:
                done = pool.apply(_measure_in_child, (file, explain))
            except SnapshotError as error:
                raise CommandError(f"{file}: {error}") from error
        return _format(done, scheduler_seconds(file), explain=explain)


def _measure_in_child(file: Path, explain: bool) -> Measurement:
    return measure(file, explain=explain)


def _header(explain: bool) -> str:
    names = ["nodes", "waiting", "load s", *PHASES, "cycle s", "KAI s", "ratio", "MiB"]
    if explain:
        names.append("explain s")
    return f"{'file':26}" + "".join(f"{name[:13]:>14}" for name in names)


def _format(done: Measurement, theirs: dict[str, float] | None, *, explain: bool) -> str:
    total = sum(theirs.values()) if theirs else None
    cells = [f"{done.nodes:,}", f"{done.waiting:,}", f"{done.load_seconds:.2f}"]
    cells += [f"{done.phases.get(phase, 0.0):.3f}" for phase in PHASES]
    cells += [f"{done.cycle_seconds:.2f}", f"{total:.2f}" if total else "-"]
    cells += [f"{done.cycle_seconds / total:.2f}" if total else "-", f"{done.memory:.0f}"]
    if explain:
        cells.append(f"{done.explain_seconds:.2f}" if done.explain_seconds is not None else "-")
    return f"{done.file[:25]:26}" + "".join(f"{cell:>14}" for cell in cells)


_POLL_HEADER = f"{'poll':16}" + "".join(f"{name:>12}" for name in ("CPU s", "s", "peak MiB", "requests", "MB", "rows"))


def _format_poll(cost: PollCost) -> str:
    cells = [f"{cost.cpu_seconds:.2f}", f"{cost.seconds:.2f}", f"{cost.peak:.0f}", f"{cost.requests:,}"]
    cells += [f"{cost.received_bytes / 1e6:.1f}", f"{cost.rows_written:,}"]
    failed = "" if cost.outcome == "read" else f"  {cost.outcome}"
    return f"{cost.what:16}" + "".join(f"{cell:>12}" for cell in cells) + failed
