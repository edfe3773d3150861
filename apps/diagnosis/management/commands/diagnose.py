"""`manage.py diagnose PATH...`: says why gangs wait, from snapshot files alone; needs no database and no cluster."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from gangdash.documents import Diagnosis
from gangdash.documents.text import diagnosis_text
from gangdash.reasons.wording import clean
from gangdash.replay import exit_code, replay
from gangdash.snapshot.archive import SnapshotError, load_snapshot

logger = logging.getLogger(__name__)

SUFFIXES = (".json", ".json.gz", ".yaml", ".yaml.gz", ".zip")
ERROR = 255


@dataclass(frozen=True, slots=True)
class Failure:
    """A path that gave no answer, and why in one line that names it."""

    path: Path
    error: str


def expand(paths: Iterable[Path]) -> Iterator[Path | Failure]:
    """Yield files as they are and a folder's own snapshot files in the order of their names."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        try:
            files = sorted(entry for entry in path.iterdir() if entry.is_file() and entry.name.endswith(SUFFIXES))
        except OSError as error:
            yield Failure(path, f"{path}: cannot list the folder: {error.strerror}")
            continue
        if not files:
            yield Failure(path, f"{path}: no snapshot file in this folder ({', '.join(SUFFIXES)})")
        yield from files


class Command(BaseCommand):
    help = (
        "Say why gangs wait, from a KAI snapshot or a kubectl List dump. "
        "Exit: 0 nothing waits, 1 something waits, 2 something can never start as it is, 255 error."
    )
    requires_system_checks: tuple[str, ...] = ()

    answer: int | None = None
    """The exit code of a run that got as far as reading files; None before."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="snapshot file, or a folder of them")
        parser.add_argument("--format", choices=("text", "json", "jsonl"), default="text", dest="form")
        parser.add_argument("--gang", metavar="NS/NAME", help="explain this gang only, healthy or not")
        parser.add_argument("--all", action="store_true", dest="include_all", help="print healthy gangs too")
        parser.add_argument("--as-of", metavar="T", help="the moment to judge at, like 2026-11-30T08:56:01Z")
        parser.add_argument("--cycle-only", action="store_true", help="only what the scheduler does next")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as Django does, but keep exit codes 1 and 2 for answers: every usage error ends with 255."""
        try:
            super().run_from_argv(argv)
        except SystemExit as stop:
            sys.exit(ERROR if self.answer is None and stop.code else stop.code)

    def handle(self, *, paths: list[Path], as_of: str | None, **options: Any) -> None:
        moment = self._moment(as_of)
        self.answer = 0
        for path in expand(paths):
            result = path if isinstance(path, Failure) else self._diagnose(path, moment, options)
            if isinstance(result, Failure):
                self._report(result, options["form"])
                self.answer = ERROR
            else:
                self._print(result, options)
                self.answer = max(self.answer, exit_code(result))
        if self.answer:
            sys.exit(self.answer)

    @staticmethod
    def _moment(text: str | None) -> datetime | None:
        try:
            moment = datetime.fromisoformat(text) if text else None
        except ValueError as error:
            raise CommandError(f"--as-of: {error}", returncode=ERROR) from error
        if moment is not None and moment.tzinfo is None:
            raise CommandError("--as-of: no time zone; write it like 2026-11-30T08:56:01Z", returncode=ERROR)
        return moment

    def _diagnose(self, path: Path, as_of: datetime | None, options: dict[str, Any]) -> Diagnosis | Failure:
        try:
            snapshot = load_snapshot(path, as_of=as_of)
            diagnosis = replay(
                snapshot,
                cycle_only=options["cycle_only"],
                gang=options["gang"],
                include_all=options["include_all"],
            )
        except SnapshotError as error:
            return Failure(path, str(error))
        except Exception as error:  # task boundary: one file's fault must not cost the others
            logger.debug("diagnose_failed", exc_info=error)
            return Failure(path, f"{path}: the engine failed on this file: {type(error).__name__}: {error}")
        if options["gang"] and not options["cycle_only"] and not diagnosis.explanations:
            return Failure(path, f"{path}: no gang {options['gang']} in this file")
        return diagnosis

    def _report(self, failure: Failure, form: str) -> None:
        message = clean(failure.error)
        self.stderr.write(message)
        if form == "jsonl":
            self._line(msgspec.json.encode({"snapshot": failure.path.name, "error": message}))

    def _print(self, diagnosis: Diagnosis, options: dict[str, Any]) -> None:
        if options["form"] == "text":
            self.stdout.write(diagnosis_text(diagnosis, cycle_only=options["cycle_only"]))
            return
        encoded = msgspec.json.encode(diagnosis)
        self._line(encoded if options["form"] == "jsonl" else msgspec.json.format(encoded))

    def _line(self, encoded: bytes) -> None:
        self.stdout.write(encoded.decode())
        self.stdout.flush()
