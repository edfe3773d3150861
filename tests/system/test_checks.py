"""System checks refuse what is well-formed and cannot work, and never quote a credential."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from gangdash.checks import file_system, kubeconfig_problem

KUBECONFIG = """
current-context: one
contexts:
- {name: one, context: {cluster: k, user: u}}
- {name: lost, context: {cluster: gone, user: u}}
clusters:
- {name: k, cluster: {server: "https://k.example:6443"}}
users:
- {name: u, user: {token: hunter2}}
"""


def ids() -> set[str]:
    return {str(message.id) for message in run_checks(tags=["gangdash"])}


@pytest.fixture
def embedded(settings: Settings, tmp_path: Path) -> Settings:
    settings.GANGDASH_STATE_DIR = tmp_path
    tmp_path.chmod(0o700)
    return settings


def test_a_private_local_folder_is_fine(embedded: Settings) -> None:
    assert ids() == set()


def test_state_directory_that_is_a_file(embedded: Settings, tmp_path: Path) -> None:
    embedded.GANGDASH_STATE_DIR = tmp_path / "file"
    embedded.GANGDASH_STATE_DIR.touch()
    assert ids() == {"gangdash.E001"}


def test_state_directory_on_a_network_file_system(
    embedded: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr("gangdash.checks.MOUNTS", mounts)
    assert ids() == {"gangdash.E002"}


def test_state_directory_that_others_may_write(embedded: Settings, tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    assert ids() == {"gangdash.E003"}


def test_the_longest_mount_point_decides() -> None:
    mounts = "/dev/a / ext4 rw 0 0\ns:/x /srv nfs rw 0 0\n/dev/b /srv/my\\040disk xfs rw 0 0\n"
    assert file_system(Path("/srv/data"), mounts) == "nfs"
    assert file_system(Path("/srv/my disk/data"), mounts) == "xfs"
    assert file_system(Path("/srvdata"), mounts) == "ext4"


@pytest.mark.parametrize(
    "content, context, problem",
    [
        (KUBECONFIG, "", ""),
        (KUBECONFIG, "two", "it has no context 'two'"),
        (KUBECONFIG, "lost", "context 'lost' names no cluster with a server"),
        ("contexts: []", "", "it names no current context; choose one with --context"),
        ("- token: hunter2", "", "it is not a kubeconfig"),
        ("token: {hunter2", "", "it is not YAML"),
        pytest.param("a: " + "[" * 1000, "", "it is not YAML", id="deep"),
        pytest.param("a: &a [b]\n" * 200_000, "", "it is too large for a kubeconfig", id="large"),
        ("clusters: 7\ncontexts: x\ncurrent-context: y", "", "it has no context 'y'"),
    ],
)
def test_kubeconfig_problems_are_named(tmp_path: Path, content: str, context: str, problem: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    found = kubeconfig_problem(path, context)
    assert found == problem
    assert "hunter2" not in found


def test_a_kubeconfig_that_is_missing_and_a_folder_that_is_none(embedded: Settings, tmp_path: Path) -> None:
    embedded.GANGDASH_KUBECONFIG = tmp_path / "absent"
    embedded.GANGDASH_CLUSTERS_DIR = tmp_path / "absent"
    assert ids() == {"gangdash.E004", "gangdash.E005"}


def test_a_context_without_a_kubeconfig_is_pointed_out(embedded: Settings) -> None:
    embedded.GANGDASH_KUBE_CONTEXT = "one"
    assert ids() == {"gangdash.W001"}


def test_unsafe_production_values(embedded: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangdash.checks.is_embedded", lambda: False)
    embedded.SECRET_KEY = "a" * 60
    embedded.DEBUG = True
    embedded.GANGDASH_BASE_URL = "http://gangdash.example"
    assert ids() == {"gangdash.E006", "gangdash.E007", "gangdash.W002"}
