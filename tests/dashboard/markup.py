"""Reads pages as a browser would, to say what is wrong with their markup and what a person sees on them."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "col", "img", "hr"})
SVG_LEAVES = frozenset({"use", "rect", "path", "circle"})
HIDDEN = frozenset({"script", "style", "title"})


class Page(HTMLParser):
    """Collects faults while it parses: what does not nest, what has no name, what could run."""

    def __init__(self, content: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.headings: list[str] = []
        self.labels: set[str] = set()
        self.fields: list[dict[str, str]] = []
        self.refers: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self._named: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(content.decode())
        self.close()
        self._finish()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._check(tag, values)
        if tag in {"button", "a", "summary"}:
            self._named.append((tag, values, []))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1] if self.open else 'nothing'} at {self.getpos()}")
            return
        self.open.pop()
        if self._named and self._named[-1][0] == tag:
            _, values, words = self._named.pop()
            if not "".join(words).strip() and not values.get("aria-label"):
                self.faults.append(f"a {tag} has no name at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in HIDDEN:
            self.words.append(data)
        for _, _, words in self._named:
            words.append(data)

    def _check(self, tag: str, values: dict[str, str]) -> None:
        self.faults += [f"{tag} has the handler {name}" for name in values if name.startswith("on")]
        if tag == "script" and "src" not in values and values.get("type") != "application/json":
            self.faults.append("a script is inline")
        if values.get("href", "").strip().lower().startswith("javascript:"):
            self.faults.append("a link runs a script")
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append(tag)
        if tag == "a":
            self.links.append(values.get("href", ""))
        if tag == "label":
            self.labels.add(values.get("for", ""))
        if tag in {"input", "select", "textarea"} and values.get("type") != "hidden":
            self.fields.append({**values, "in_label": str("label" in self.open)})
        for name in ("aria-labelledby", "aria-controls", "aria-describedby"):
            self.refers += values.get(name, "").split()
        if values.get("role") == "img" and not values.get("aria-label"):
            self.faults.append(f"a {tag} with role img has no label")

    def _finish(self) -> None:
        if self.open:
            self.faults.append(f"left open: {self.open}")
        self.faults += [f"id {name} is there {count} times" for name, count in self.ids.items() if count > 1]
        self.faults += [f"nothing has the id {name}" for name in self.refers if name not in self.ids]
        if self.headings.count("h1") != 1:
            self.faults.append(f"there are {self.headings.count('h1')} h1")
        for field in self.fields:
            if field["in_label"] == "False" and field.get("id", "") not in self.labels and not field.get("aria-label"):
                self.faults.append(f"a field has no label: {field}")


def visible_text(content: bytes) -> str:
    """Return the words of a page with spaces folded."""
    return " ".join(" ".join(Page(content).words).replace("\u00a0", " ").split())
