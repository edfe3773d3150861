"""Which clusters the settings name now: kubeconfig files of a folder, one kubeconfig, or the pod's own account.

Reads names and contexts only; credentials stay in their files and are read by ``gangdash.kube`` for each poll.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from django.conf import settings

from apps.clusters.choices import Source

FILE_ENDINGS = (".yaml", ".yml", ".kubeconfig", ".conf")
SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
NAME_MAX = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """One cluster to read: ``kubeconfig`` is None for the pod's own account."""

    name: str
    source: Source
    kubeconfig: Path | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class SourceList:
    """What the settings name. ``is_complete`` is False when the folder could not be read: nobody was removed then."""

    sources: tuple[ClusterSource, ...]
    is_complete: bool = True
    faults: tuple[str, ...] = ()

    def get(self, name: str) -> ClusterSource | None:
        return next((source for source in self.sources if source.name == name), None)


def configured_sources() -> SourceList:
    """Return every cluster that is to be read now; the first of two with the same name counts."""
    found: dict[str, ClusterSource] = {}
    faults: list[str] = []
    is_complete = True
    try:
        candidates = [*_single(), *_folder()]
    except OSError as error:
        candidates, is_complete = list(_single()), False
        faults.append(f"The folder of kubeconfig files cannot be read: {error.strerror or type(error).__name__}")
    for source in candidates:
        if source.name in found:
            faults.append(f"Two kubeconfigs are named {source.name}; {found[source.name].source.label} counts")
        else:
            found[source.name] = source
    return SourceList(tuple(found.values()), is_complete, tuple(faults))


def cluster_name(text: str) -> str:
    """Return a name that fits into addresses: what does not belong there becomes a dash."""
    return _NOT_IN_NAMES.sub("-", text).strip("-.")[:NAME_MAX] or "cluster"


def _single() -> Iterator[ClusterSource]:
    """Yield the kubeconfig given at the start; the pod's own account only where nothing else is given."""
    path, context = settings.GANGDASH_KUBECONFIG, settings.GANGDASH_KUBE_CONTEXT
    if path is not None and settings.GANGDASH_DEMO:
        yield ClusterSource("demo", Source.DEMO, path, context)
    elif path is not None:
        yield ClusterSource(
            cluster_name(context or _current_context(path) or path.stem), Source.KUBECONFIG, path, context
        )
    elif settings.GANGDASH_CLUSTERS_DIR is None and SERVICE_ACCOUNT_TOKEN.exists():
        yield ClusterSource("in-cluster", Source.IN_CLUSTER)


def _folder() -> list[ClusterSource]:
    """Return the files of the folder by name. Names with a leading dot are how mounted Secrets swap versions."""
    folder = settings.GANGDASH_CLUSTERS_DIR
    if folder is None:
        return []
    files = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
    return [ClusterSource(cluster_name(_bare(path.name)), Source.FOLDER, path) for path in files]


def _bare(file_name: str) -> str:
    ending = next((ending for ending in FILE_ENDINGS if file_name.endswith(ending)), "")
    return file_name.removesuffix(ending)


def _current_context(path: Path) -> str:
    """Return the context that the file names as current, empty where the file cannot tell: the poll says why."""
    try:
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return ""
    name = content.get("current-context") if isinstance(content, dict) else None
    return name if isinstance(name, str) else ""
