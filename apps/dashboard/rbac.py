"""The read-only rules that would let gangdash read what was refused, as text to paste into a ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable

from gangdash.kube.kinds import by_name


def missing_rules(kinds: Iterable[str]) -> str:
    """Return one rule per API group of the named kinds; empty where there is nothing to allow."""
    known = by_name()
    groups: dict[str, list[str]] = {}
    for name in kinds:
        if name in known:
            groups.setdefault(known[name].group, []).append(known[name].plural)
    lines = ["rules:"]
    for group, plurals in sorted(groups.items()):
        resources = ", ".join(f'"{plural}"' for plural in sorted(plurals))
        lines.append(f'- apiGroups: ["{group}"]\n  resources: [{resources}]\n  verbs: ["get", "list"]')
    return "\n".join(lines) if groups else ""
