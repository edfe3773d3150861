"""Tables as files: CSV that a spreadsheet cannot be made to run, and JSON. Both say as of when and of which view."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.http import HttpResponse

from apps.dashboard import numbers

T = TypeVar("T")
Cell = str | int | float | bool | datetime | None
# A spreadsheet takes a cell that begins like this as a formula; a quote in front makes it text.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    name: str
    value: Callable[[T], Cell]


def safe_cell(value: Cell) -> str | int | float | bool:
    """Return a value as a CSV cell; only text is guarded, so that numbers stay numbers."""
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, str) and plain.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{plain}"
    return plain


def csv_response(
    stem: str, columns: Sequence[Column[T]], rows: Sequence[T], *, as_of: datetime | None, view: str
) -> HttpResponse:
    """Return rows as CSV; the last two columns say as of when and which filters."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*(column.name for column in columns), "read_as_of", "view"])
    for row in rows:
        writer.writerow([*(safe_cell(column.value(row)) for column in columns), safe_cell(as_of), safe_cell(view)])
    return _attached(HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8"), stem, "csv", as_of)


def json_response(
    stem: str, columns: Sequence[Column[T]], rows: Sequence[T], *, as_of: datetime | None, view: str
) -> HttpResponse:
    """Return rows as one JSON object with its moment and its filters."""
    body = {
        "read_as_of": _plain(as_of),
        "view": view,
        "rows": [{column.name: _plain(column.value(row)) for column in columns} for row in rows],
    }
    return _attached(HttpResponse(json.dumps(body, indent=1), content_type="application/json"), stem, "json", as_of)


def _plain(value: Cell) -> str | int | float | bool | None:
    return numbers.iso(value) if isinstance(value, datetime) else value


def _attached(response: HttpResponse, stem: str, suffix: str, as_of: datetime | None) -> HttpResponse:
    moment = as_of.strftime("-%Y%m%dT%H%M%SZ") if as_of else ""
    response["Content-Disposition"] = f'attachment; filename="gangdash-{stem}{moment}.{suffix}"'
    response["Cache-Control"] = "private, no-store"
    return response
