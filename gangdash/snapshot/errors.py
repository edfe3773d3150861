"""The one error of reading a file: what is wrong, where, in one line."""

from __future__ import annotations


class SnapshotError(Exception):
    """A file that is no snapshot, or one of which a part would have to be guessed."""

    def __init__(self, file: str, problem: str, *, object_: str = "", field: str = "") -> None:
        self.file = file
        self.problem = problem
        self.object = object_
        self.field = field
        super().__init__(": ".join(p for p in (file, object_, field, problem) if p))
