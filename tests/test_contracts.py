"""The plan of the house is the path of the data: imports go one way only."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter import cli


def test_import_contracts_hold(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)
    assert cli.lint_imports(no_cache=True) == 0
