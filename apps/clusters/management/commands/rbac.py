"""`manage.py rbac`: the read-only ClusterRole that a cluster has to grant, as YAML for ``kubectl apply -f -``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gangdash.kube.rbac import cluster_role_yaml


class Command(BaseCommand):
    help = "Print the read-only ClusterRole (get and list, no secrets) that gangdash needs in a cluster."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", default="gangdash-reader", help="name of the ClusterRole")
        parser.add_argument(
            "--no-configmaps",
            action="store_true",
            help="leave ConfigMaps out, as Kubernetes cannot grant their names without their contents; "
            "then a pod's missing ConfigMap cannot be told",
        )

    def handle(self, *, name: str, no_configmaps: bool, **_: Any) -> None:
        self.stdout.write(cluster_role_yaml(name, config_maps=not no_configmaps), ending="")
