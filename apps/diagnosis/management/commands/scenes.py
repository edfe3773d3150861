"""`manage.py scenes DIR`: does diagnose say of each recorded scene what it should? Prints a table.

DIR holds snapshots X.json (or .json.gz, .yaml, .zip); DIR/expected/X.json says of one gang what its explanation must
be, X@part.json of further gangs of the same scene. Leaves out judging fixes: those are checked where they are made.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from apps.diagnosis.management.commands.diagnose import SUFFIXES
from gangdash.documents import Diagnosis, ExplanationDocument
from gangdash.replay import replay
from gangdash.snapshot.archive import SnapshotError, load_snapshot

SAID = ("sentence", "binding", "slack", "nodes", "holders", "fixes", "waiting", "also")
"""Parts of an explanation in which a mention counts."""


class Expected(msgspec.Struct, frozen=True):
    """What the explanation of one gang must be. ``mention`` are texts that it must contain, without regard to case."""

    id: str
    gang: str
    verdict: str
    code: tuple[str, ...]
    mention: tuple[str, ...] = ()
    stage: str | None = None
    not_: tuple[str, ...] = msgspec.field(default=(), name="not")
    fix_kinds: tuple[str, ...] = ()
    title: str = ""
    why: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One expectation beside what was said; ``checks`` says of each question whether the answer is right."""

    expected: Expected
    got: ExplanationDocument | None
    checks: Mapping[str, bool]
    missing: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return all(self.checks.values())

    @property
    def line(self) -> str:
        mark = "ok  " if self.is_right else "MISS"
        want = f"{self.expected.verdict} {'|'.join(self.expected.code)}"
        said = f"{self.got.verdict} {self.got.code}: {self.got.sentence}" if self.got is not None else "no explanation"
        lacks = f" (without {', '.join(self.missing)})" if self.missing and self.got is not None else ""
        return f"{mark} {self.expected.id} {self.expected.gang}: wants {want}, got {said}{lacks}"


def judge(expected: Expected, got: ExplanationDocument | None) -> Outcome:
    """Compare one explanation with what it must be."""
    if got is None:
        return Outcome(expected, None, dict.fromkeys(("verdict", "code", "stage", "mention", "harmless"), False), ())
    data: dict[str, Any] = msgspec.to_builtins(got)
    text = msgspec.json.encode({part: data[part] for part in SAID}).decode().lower()
    missing = tuple(mention for mention in expected.mention if mention.lower() not in text)
    checks = {
        "verdict": str(got.verdict) in expected.verdict.split("|"),
        "code": str(got.code) in expected.code,
        "stage": expected.stage is None or got.stage == expected.stage,
        "mention": not missing,
        "harmless": str(got.verdict) not in expected.not_,
    }
    return Outcome(expected, got, checks, missing)


def outcomes(folder: Path) -> Iterator[Outcome]:
    """Yield the outcome of every expectation in a folder, in the order of their names."""
    answers: dict[str, Diagnosis] = {}
    for file in sorted((folder / "expected").glob("*.json")):
        scene = file.stem.split("@", 1)[0]
        if scene not in answers:
            answers[scene] = replay(load_snapshot(_snapshot_file(folder, scene)))
        expected = msgspec.json.decode(file.read_bytes(), type=Expected)
        yield judge(expected, answers[scene].explanation(expected.gang))


def _snapshot_file(folder: Path, scene: str) -> Path:
    for suffix in SUFFIXES:
        file = folder / f"{scene}{suffix}"
        if file.is_file():
            return file
    raise CommandError(f"{folder}: no snapshot file for scene {scene}")


class Command(BaseCommand):
    help = "Check recorded scenes against what their explanations must say, and print a table."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--all", action="store_true", dest="show_all", help="print the right ones too")

    def handle(self, *, folder: Path, show_all: bool, **options: Any) -> None:
        try:
            found = list(outcomes(folder))
        except (SnapshotError, msgspec.DecodeError) as error:
            raise CommandError(str(error)) from error
        if not found:
            raise CommandError(f"{folder}: no expectations in {folder / 'expected'}")
        for outcome in found:
            if show_all or not outcome.is_right:
                self.stdout.write(outcome.line)
        self.stdout.write(_summary(found))
        if not all(outcome.is_right for outcome in found):
            sys.exit(1)


def _summary(found: Sequence[Outcome]) -> str:
    totals: Counter[str] = Counter()
    for outcome in found:
        totals.update(name for name, is_right in outcome.checks.items() if is_right)
    right = sum(outcome.is_right for outcome in found)
    columns = ", ".join(f"{name} {totals[name]}/{len(found)}" for name in found[0].checks)
    return f"{columns}\nscenes right {right}/{len(found)}"
