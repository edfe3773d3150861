"""Which clusters are read follows the settings and the folder; nobody is forgotten because a folder cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.clusters import sources
from apps.clusters.choices import Source
from apps.clusters.models import Cluster
from apps.clusters.services import clusters_sync
from apps.clusters.sources import configured_sources

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.GANGDASH_CLUSTERS_DIR = tmp_path
    settings.GANGDASH_KUBECONFIG = None
    return tmp_path


def names() -> list[str]:
    return [source.name for source in configured_sources().sources]


def sync() -> list[str]:
    return [cluster.name for cluster in clusters_sync(found=configured_sources(), now=NOW)]


def test_each_file_is_a_cluster_named_after_it(folder: Path) -> None:
    for name in ("west.yaml", "east", "north.kubeconfig", "south.eu.conf"):
        (folder / name).write_text("")
    assert names() == ["east", "north", "south.eu", "west"]


def test_hidden_files_and_folders_are_no_clusters(folder: Path) -> None:
    (folder / ".swap").write_text("")
    (folder / "old").mkdir()
    assert names() == []


def test_a_mounted_secret_is_followed_through_its_links(folder: Path) -> None:
    version = folder / "..2026_11_30"
    version.mkdir()
    (version / "east").write_text("")
    (folder / "..data").symlink_to(version)
    (folder / "east").symlink_to(folder / "..data" / "east")
    assert names() == ["east"]


def test_names_that_do_not_fit_into_addresses_are_made_to(folder: Path) -> None:
    (folder / "arn:aws:eks~prod east.yaml").write_text("")
    assert names() == ["arn-aws-eks-prod-east"]


def test_of_two_files_with_one_name_the_first_counts_and_the_fault_is_told(folder: Path) -> None:
    (folder / "east.yaml").write_text("")
    (folder / "east.yml").write_text("")
    found = configured_sources()
    assert [source.kubeconfig for source in found.sources] == [folder / "east.yaml"]
    assert "east" in found.faults[0]


@pytest.mark.parametrize(
    "content, context, expected",
    [
        ("current-context: staging\n", "", "staging"),
        ("current-context: staging\n", "admin@prod", "admin-prod"),
        ("current-context: [1]\n", "", "mine"),
        ("{{ not yaml", "", "mine"),
    ],
)
def test_a_single_kubeconfig_is_named_by_its_context(
    tmp_path: Path, settings: Settings, content: str, context: str, expected: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    settings.GANGDASH_CLUSTERS_DIR = None
    settings.GANGDASH_KUBECONFIG, settings.GANGDASH_KUBE_CONTEXT = file, context
    assert names() == [expected]


def test_the_demo_says_that_it_is_one(tmp_path: Path, settings: Settings) -> None:
    settings.GANGDASH_KUBECONFIG, settings.GANGDASH_DEMO = tmp_path / "x", True
    assert [(s.name, s.source) for s in configured_sources().sources] == [("demo", Source.DEMO)]


def test_the_pods_own_account_is_used_where_nothing_else_is_given(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GANGDASH_CLUSTERS_DIR = settings.GANGDASH_KUBECONFIG = None
    monkeypatch.setattr(sources, "SERVICE_ACCOUNT_TOKEN", tmp_path / "token")
    assert names() == []
    (tmp_path / "token").write_text("secret")
    assert [(s.name, s.source) for s in configured_sources().sources] == [("in-cluster", Source.IN_CLUSTER)]


@pytest.mark.django_db
def test_files_that_come_and_go_are_followed(folder: Path) -> None:
    (folder / "east").write_text("")
    assert sync() == ["east"]
    (folder / "west").write_text("")
    (folder / "east").unlink()
    assert sync() == ["west"]
    removed = Cluster.objects.get(name="east")
    assert (removed.is_read, removed.removed_at) == (False, NOW)
    (folder / "east").write_text("")
    assert sync() == ["east", "west"]
    back = Cluster.objects.get(name="east")
    assert (back.pk, back.is_read, back.removed_at) == (removed.pk, True, None)


@pytest.mark.django_db
def test_a_folder_that_cannot_be_read_removes_nobody(folder: Path, settings: Settings) -> None:
    (folder / "east").write_text("")
    sync()
    settings.GANGDASH_CLUSTERS_DIR = folder / "gone"
    found = configured_sources()
    assert not found.is_complete
    assert found.faults
    sync()
    assert Cluster.objects.get(name="east").is_read


@pytest.mark.django_db
def test_an_empty_folder_removes_everybody(folder: Path) -> None:
    (folder / "east").write_text("")
    sync()
    (folder / "east").unlink()
    assert sync() == []
    assert not Cluster.objects.get(name="east").is_read


@pytest.mark.django_db
def test_syncing_twice_writes_nothing(folder: Path) -> None:
    (folder / "east").write_text("")
    sync()
    before = list(Cluster.objects.values())
    sync()
    assert list(Cluster.objects.values()) == before
