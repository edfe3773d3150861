"""Finds plotly.js inside the installed plotly package, so that page and plotly.py are always the same version.

Only the one file is served: its folder also holds a 5 MB widget bundle and sample data that no page needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

PREFIX = "vendor/plotly"
FILE_NAME = "plotly.min.js"


def package_folder() -> Path:
    """Return the folder of plotly.js without importing plotly."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the plotly package is not installed")
    return Path(spec.origin).parent / "package_data"


class PlotlyFinder(BaseFinder):
    """Serve `vendor/plotly/plotly.min.js` and nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.storage = FileSystemStorage(location=package_folder())
        # Django's finder protocol: `list` yields names relative to a storage that carries their prefix.
        self.storage.prefix = PREFIX  # type: ignore[attr-defined]

    def find(self, path: str, find_all: bool = False, **_kwargs: Any) -> Any:
        """Return the absolute path of the file, or nothing for any other name."""
        if path != f"{PREFIX}/{FILE_NAME}":
            return []
        found = self.storage.path(FILE_NAME)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
        """Yield the one file for collectstatic."""
        yield FILE_NAME, self.storage
