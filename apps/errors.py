"""What services raise for faults that a user can cause. Views and tasks translate it; nobody parses its text."""

from __future__ import annotations


class ApplicationError(Exception):
    """A refusal with a stable code, one sentence for people, and fields for programs."""

    def __init__(self, code: str, detail: str, **fields: object) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.fields = fields
