"""`manage.py whatif SNAPSHOT --change ...`: what would a change do to every gang of the cycle?

Runs the whole cycle with and without the changes and prints the difference. Nothing is changed in any
cluster, and the answer holds for the snapshot whose digest it prints.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from gangdash.comparison import what_if
from gangdash.documents.whatif import WhatIf
from gangdash.engine.changes import Change, ChangeError, change_from_mapping, change_from_text
from gangdash.snapshot.archive import SnapshotError, load_snapshot

_TITLES = {
    "starts": "Start",
    "delays": "Delayed",
    "sets_back": "Set back",
    "moves": "Moved",
    "evicts": "Evicted",
}


class Command(BaseCommand):
    help = (
        "Run one cycle with and without changes and print the difference. A change is KIND:OBJECT[:KEY=VALUE,...], "
        "for example uncordon:node-7 or raise_limit:team-a:gpu=32."
    )
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("snapshot", type=Path, metavar="SNAPSHOT", help="KAI snapshot or kubectl List dump")
        parser.add_argument("--change", action="append", default=[], metavar="KIND:OBJECT[:KEY=VALUE,...]")
        parser.add_argument("--changes", type=Path, metavar="FILE", help="JSON list of changes")
        parser.add_argument("--format", choices=("text", "json"), default="text", dest="form")

    def handle(self, *, snapshot: Path, change: list[str], changes: Path | None, form: str, **_: Any) -> None:
        if not change and changes is None:
            raise CommandError("say at least one --change, or --changes FILE", returncode=255)
        try:
            wanted = [change_from_text(text) for text in change] + (read_changes(changes) if changes else [])
            answer = what_if(load_snapshot(snapshot), wanted)
        except (ChangeError, SnapshotError) as error:
            raise CommandError(str(error), returncode=255) from error
        if form == "json":
            self.stdout.write(msgspec.json.format(msgspec.json.encode(answer)).decode())
        else:
            self.stdout.write(what_if_text(answer))


def read_changes(file: Path) -> list[Change]:
    """Read a JSON list of ``{"kind": ..., "object": ..., key: value}``."""
    try:
        data = msgspec.json.decode(file.read_bytes(), type=list[dict[str, Any]])
    except OSError as error:
        raise ChangeError(f"{file}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise ChangeError(f"{file}: not a JSON list of changes: {error}") from error
    return [change_from_mapping(item) for item in data]


def what_if_text(answer: WhatIf) -> str:
    """Lay the difference out for a terminal: an empty list is written out as ``none``."""
    lines = [answer.sentence, ""]
    lines += [f"  {title:10}{', '.join(getattr(answer, name)) or 'none'}" for name, title in _TITLES.items()]
    lines += ["", *_totals(answer)]
    lines += ["", f"Re-run of one cycle on {answer.digest[:15]} as of {answer.as_of}; nothing was changed."]
    return "\n".join(lines)


def _totals(answer: WhatIf) -> list[str]:
    rows = (
        ("gangs waiting", answer.before.gangs_waiting, answer.after.gangs_waiting),
        ("GPUs waiting", answer.before.gpus_waiting, answer.after.gpus_waiting),
        ("GPUs placed", answer.before.gpus_placed, answer.after.gpus_placed),
    )
    return [f"  {name:15}{before:>10,} -> {after:>10,}" for name, before, after in rows]
