"""Addresses of what-if questions: of changes somebody names, and of a fix that somebody wants to try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from apps.workloads.veil import HIDDEN
from gangdash.engine.changes import ChangeError, change_from_text, change_text, changes_from_mapping, is_modelled


def whatif_url(cluster: str, texts: Iterable[str], *, base: str = "") -> str:
    """Return the address of a question; with ``base`` it stays on that moment."""
    query = [("change", text) for text in texts] + ([("base", base)] if base else [])
    path = reverse("dashboard:whatif", args=[cluster])
    return f"{path}?{urlencode(query)}" if query else path


def try_url(cluster: str, change: Mapping[str, Any]) -> str:
    """Return the address that tries the change of a fix; empty where a replay cannot show it or it names others."""
    try:
        changes = changes_from_mapping(change)
        texts = [change_text(item) for item in changes]
        is_same = [change_from_text(text) for text in texts] == changes
    except ChangeError:
        return ""
    if not is_same or not all(is_modelled(item.kind) for item in changes) or any(HIDDEN in text for text in texts):
        return ""
    return whatif_url(cluster, texts)
