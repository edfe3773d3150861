"""What one health report says, as plain data: sections of sentences, figures, tables and charts of one range.

Everything that renders, keeps, sends or compares a report works on these types alone; ``apps.reports.build`` fills
them. A value is one of three: known, unset (``None``, there is none), or not read (the text says so and the notes say
why). Texts carry names from clusters and are not escaped; links are paths inside the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

CONTENT_VERSION = 1
"""Changes when a kept report can no longer be read as these types."""

NOT_READ_TEXT = "not read"
UNSET_TEXT = "\u2014"


class Known(StrEnum):
    """Whether a value is there: known, known to be absent, or not to be told from what was read."""

    VALUE = "value"
    UNSET = "unset"
    NOT_READ = "not_read"


class ChartKind(StrEnum):
    BARS = "bars"
    STACKED = "stacked"
    LINES = "lines"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its words. ``text`` is the value as it is written, with its unit; ``before`` the value of the
    same figure in the previous report, None where there is none."""

    key: str
    label: str
    value: float | None
    unit: str = ""
    text: str = UNSET_TEXT
    link: str = ""
    before: float | None = None
    known: Known = Known.VALUE


@dataclass(frozen=True, slots=True)
class Column:
    """``is_number`` columns are set to the right; the unit is written in the header."""

    key: str
    label: str
    unit: str = ""
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` is what is written, ``value`` the bare number for exports where the cell is one."""

    text: str
    value: float | None = None
    link: str = ""
    known: Known = Known.VALUE


@dataclass(frozen=True, slots=True)
class Table:
    """``total`` counts all rows that there are; ``rows`` may be only the first of them."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    empty: str = ""
    """What is written where there are no rows: that there are none, never a blank."""


@dataclass(frozen=True, slots=True)
class Series:
    """One value per label of its chart; None where it was not read. ``key`` is a verdict where the series is one."""

    key: str
    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """``description`` says in words what the picture shows, for who does not see it. ``labels`` may be ISO moments."""

    key: str
    title: str
    kind: ChartKind
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    unit: str
    description: str


@dataclass(frozen=True, slots=True)
class Section:
    """``notes`` say what the numbers rest on and what they leave out."""

    key: str
    number: int
    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()

    def figure(self, key: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.key == key), None)


@dataclass(frozen=True, slots=True)
class NotRead:
    """Something that the report would show and could not be read; ``remedy`` says what would connect it."""

    what: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Content:
    """One report. ``as_of`` is the newest analysed moment at or before ``end``, None where there is none.

    ``zone`` is the IANA name in which moments are written.
    """

    cluster: str
    start: datetime
    end: datetime
    made_at: datetime
    zone: str
    sections: tuple[Section, ...]
    not_read: tuple[NotRead, ...] = ()
    as_of: datetime | None = None
    engine: str = ""
    version: int = CONTENT_VERSION

    def section(self, key: str) -> Section | None:
        return next((section for section in self.sections if section.key == key), None)

    def figure(self, section: str, key: str) -> Figure | None:
        found = self.section(section)
        return found.figure(key) if found else None

    @property
    def headline(self) -> tuple[str, ...]:
        """Return the sentences of the first section, for messages and lists."""
        found = self.section("headline")
        return found.sentences if found else ()


def content_encode(content: Content) -> bytes:
    """Return the content as JSON, the same bytes for the same content."""
    return msgspec.json.encode(content)


def content_decode(packed: bytes | str) -> Content:
    """Return the content of a kept report; ``msgspec.ValidationError`` where it is none."""
    return msgspec.json.decode(packed, type=Content)
