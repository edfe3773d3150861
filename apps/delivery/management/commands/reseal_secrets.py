"""Seals the secrets of all channels with the first key, after which the others may be taken away."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from apps.delivery.models import Channel
from apps.delivery.vault import VaultError, reseal


class Command(BaseCommand):
    help = "Seal the secrets of all channels with the first of GANGDASH_SECRETS_KEY."

    def handle(self, *args: Any, **options: Any) -> None:
        locked = []
        with transaction.atomic():
            for channel in Channel.objects.select_for_update().exclude(sealed=""):
                try:
                    Channel.objects.filter(pk=channel.pk).update(sealed=reseal(channel.sealed))
                except VaultError:
                    locked.append(channel.name)
        if locked:
            raise CommandError(f"No key opens the secrets of: {', '.join(locked)}. Enter them again on the page.")
        self.stdout.write("The secrets of all channels are sealed with the first key.")
