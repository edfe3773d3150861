"""A report as JSON for programs: the content itself with whole addresses, under a schema made from its types."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from apps.reports.content import Content, content_encode


def render(content: Content) -> str:
    """Return the document, indented so that it can be read and compared line by line."""
    return msgspec.json.format(content_encode(content)).decode() + "\n"


@cache
def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document; its parts stand under ``$defs``."""
    return msgspec.json.schema(Content)
