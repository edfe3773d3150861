"""Containers: PostgreSQL, a Redis-protocol broker, secrets from variables or files, strict transport security.

Nothing here has a default that would be unsafe on a network; what is missing stops the start.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gangdash.settings.base import *
from gangdash.settings.env import env

DEBUG = False
SECRET_KEY = env.secret("GANGDASH_SECRET_KEY")
env.require("GANGDASH_SECRET_KEY", SECRET_KEY, "Set it to 50 or more random characters")
env.require("GANGDASH_BASE_URL", GANGDASH_BASE_URL, "Set it to the address that users type")

# Probes of the container itself come by this name.
ALLOWED_HOSTS += ["localhost"]

database = env.database("GANGDASH_DATABASE_URL")
env.require("GANGDASH_DATABASE_URL", database, "Set it to postgres://user:password@host:5432/name")
DATABASES: dict[str, dict[str, Any]] = {"default": database or {}}
if database:
    database.setdefault("OPTIONS", {})["pool"] = {"min_size": 1, "max_size": 5}

CELERY_BROKER_URL = env.broker("GANGDASH_BROKER_URL")
env.require("GANGDASH_BROKER_URL", CELERY_BROKER_URL, "Set it to redis://host:6379/0")

# The image is built with everything collected, hashed and compressed.
STATIC_ROOT = BASE_DIR / "staticfiles"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# TLS ends at the proxy in front; switch the proxy header on only where that proxy sets it on every request.
secure = GANGDASH_BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = secure
CSRF_COOKIE_SECURE = secure
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if secure else 0
if env.flag("GANGDASH_TRUST_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

env.check()
