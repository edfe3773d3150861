"""`manage.py bench FOLDER`: how long loading, a cycle and its phases take, beside the scheduler's own time.
`manage.py bench --explain FOLDER`: what the causes and the fixes of all waiting gangs cost on top, by gang too.
`manage.py bench --poll`: what reading and storing a large generated cluster over HTTP costs.

Each file is measured in a process of its own, so that peak memory is that file's. Where ``X.kai.json`` lies
beside ``X.json``, its recorded session time is printed and the ratio taken; ratios travel between machines
better than seconds do.
"""

from __future__ import annotations

import json
import math
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
from gangdash.engine.explain import explain_in
from gangdash.engine.explain.context import Context
from gangdash.engine.fixes import with_fixes
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult, GangOutcome
from gangdash.engine.verdict import FixKind
from gangdash.engine.whatif import Cycles
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
class Explained:
    """What explaining the waiting gangs of one file cost; ``by_gang`` are CPU seconds, a shared re-run with the gang
    that asked for it first."""

    causes: float
    fixes: float
    by_gang: tuple[float, ...]
    reruns: int
    answered: int
    """Gangs with a verified fix, or with something to wait for."""

    def seconds_of(self, part: float) -> float:
        """Return what the given part of the gangs stays below."""
        ranked = sorted(self.by_gang)
        return ranked[min(math.ceil(len(ranked) * part), len(ranked)) - 1] if ranked else 0.0

    @property
    def share(self) -> float:
        return self.answered / len(self.by_gang) if self.by_gang else 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """``explained`` is ``None`` unless explanations were asked for; memory in MiB."""

    file: str
    nodes: int
    waiting: int
    load_seconds: float
    phases: dict[str, float]
    memory: float
    explained: Explained | None = None

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
    explained = _explain(snapshot, tuple(results)) if explain else None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measurement(
        path.name, len(snapshot.nodes), _waiting(results), load_seconds, watch.seconds, memory, explained
    )


def _explain(snapshot: ClusterSnapshot, results: Cycles) -> Explained:
    context = Context(snapshot, results)
    keys = [f"{gang.namespace}/{gang.name}" for result in results for gang in result.gangs if gang.outcome in _WAITING]
    by_gang, answers = dict.fromkeys(keys, 0.0), []
    for key in keys:
        started = time.process_time()
        answers += explain_in(context, only=key)
        by_gang[key] += time.process_time() - started
    causes = sum(by_gang.values())
    reruns, current, since = 0, "", time.process_time()

    def enter(what: str, key: str) -> None:
        nonlocal reruns, current, since
        now = time.process_time()
        if current:
            by_gang[current] += now - since
        reruns, current, since = reruns + (what == "rerun"), key, now

    started = time.process_time()
    fixed = with_fixes(context, results, answers, enter)
    enter("", "")
    answered = sum(any(fix.verified or fix.kind is FixKind.WAIT_FOR for fix in item.fixes) for item in fixed)
    return Explained(causes, time.process_time() - started, tuple(by_gang.values()), reruns, answered)


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
        parser.add_argument("--explain", action="store_true", help="measure causes and fixes of waiting gangs too")
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
        names += ["causes s", "fixes s", "gang p50 s", "gang p95 s", "gang max s", "re-runs", "answered"]
    return f"{'file':26}" + "".join(f"{name[:13]:>14}" for name in names)


def _format(done: Measurement, theirs: dict[str, float] | None, *, explain: bool) -> str:
    total = sum(theirs.values()) if theirs else None
    cells = [f"{done.nodes:,}", f"{done.waiting:,}", f"{done.load_seconds:.2f}"]
    cells += [f"{done.phases.get(phase, 0.0):.3f}" for phase in PHASES]
    cells += [f"{done.cycle_seconds:.2f}", f"{total:.2f}" if total else "-"]
    cells += [f"{done.cycle_seconds / total:.2f}" if total else "-", f"{done.memory:.0f}"]
    if explain and done.explained is not None:
        cost = done.explained
        cells += [f"{cost.causes:.2f}", f"{cost.fixes:.2f}"]
        cells += [f"{cost.seconds_of(part):.2f}" for part in (0.5, 0.95, 1.0)]
        cells += [f"{cost.reruns:,}", f"{cost.share:.0%}"]
    return f"{done.file[:25]:26}" + "".join(f"{cell:>14}" for cell in cells)


_POLL_HEADER = f"{'poll':16}" + "".join(f"{name:>12}" for name in ("CPU s", "s", "peak MiB", "requests", "MB", "rows"))


def _format_poll(cost: PollCost) -> str:
    cells = [f"{cost.cpu_seconds:.2f}", f"{cost.seconds:.2f}", f"{cost.peak:.0f}", f"{cost.requests:,}"]
    cells += [f"{cost.received_bytes / 1e6:.1f}", f"{cost.rows_written:,}"]
    failed = "" if cost.outcome == "read" else f"  {cost.outcome}"
    return f"{cost.what:16}" + "".join(f"{cell:>12}" for cell in cells) + failed
