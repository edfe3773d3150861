"""What the registry says about one code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.verdict import VERDICT_OF, ReasonCode, Verdict, Who


@dataclass(frozen=True, slots=True)
class Reason:
    """One code: ``sentence`` is its main wording, ``forms`` are the wordings of further situations.

    ``upstream`` holds regular expressions over the scheduler's own texts that mean the same; ``hints`` those that
    are true beside it but say less. ``never`` marks codes under which a gang cannot start until someone acts.
    """

    code: ReasonCode
    title: str
    meaning: str
    who: Who
    sentence: str
    evidence: tuple[str, ...]
    forms: Mapping[str, str] = field(default_factory=dict)
    upstream: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    never: bool = False

    @property
    def verdict(self) -> Verdict:
        return VERDICT_OF[self.code]

    @property
    def slug(self) -> str:
        """The last part of the address of this code's page."""
        return self.code.lower().replace("_", "-")

    def template(self, form: str) -> str:
        return self.forms[form] if form else self.sentence
