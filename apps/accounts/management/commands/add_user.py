"""`manage.py add_user NAME`: gives someone a login, as wide as their work asks for."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.choices import Role
from apps.accounts.services import user_create
from apps.errors import ApplicationError


class Command(BaseCommand):
    help = "Create a user and print the one-time password, which must be changed at the first login."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--role", choices=Role.values, default=Role.NAMESPACES.value)
        parser.add_argument(
            "--namespace",
            action="append",
            default=[],
            metavar="CLUSTER/NAMESPACE",
            help="a namespace that the user may see; repeat for more",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        grants = [_pair(text) for text in options["namespace"]]
        try:
            created = user_create(username=options["username"], role=Role(options["role"]), grants=grants)
        except ApplicationError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"{created.user.username} {created.password}")


def _pair(text: str) -> tuple[str, str]:
    cluster, _, namespace = text.partition("/")
    if not cluster or not namespace:
        raise CommandError(f"{text!r} is not CLUSTER/NAMESPACE")
    return cluster, namespace
