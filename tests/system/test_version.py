"""One version, told in one place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from gangdash import __version__


def test_the_changelog_begins_with_this_version(project_root: Path) -> None:
    found = re.search(r"^## \[(.+?)\]", (project_root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    assert found.group(1) == __version__


def test_the_project_file_takes_the_version_from_the_package(project_root: Path) -> None:
    project = tomllib.loads((project_root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gangdash.__version__"}


def test_the_locks_name_no_package_index(project_root: Path) -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (project_root / name).read_text(encoding="utf-8")
        assert "index-url" not in text
        assert "://" not in text
        pins = [line for line in text.splitlines() if "==" in line]
        assert len(pins) > 50
        assert text.count("--hash=sha256:") >= len(pins)
