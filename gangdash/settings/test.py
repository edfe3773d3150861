"""The test run: no variable of the user's is read, tasks run in place, hashing is fast, nothing leaves the machine.

The database is SQLite in memory; GANGDASH_TEST_DATABASE_URL names a PostgreSQL server to run the same suite on.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.utils import get_random_secret_key

from gangdash.settings.env import env

test_database_url = os.environ.get("GANGDASH_TEST_DATABASE_URL", "")
env.use({"GANGDASH_STATE_DIR": str(Path(tempfile.gettempdir()) / "gangdash-test-state")})

from gangdash.settings.base import *  # noqa: E402 - base reads the environment when it is imported

DEBUG = False
SECRET_KEY = get_random_secret_key()
ALLOWED_HOSTS += ["testserver", "localhost", "127.0.0.1"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_USE_FINDERS = True

env.use({"GANGDASH_TEST_DATABASE_URL": test_database_url})
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database("GANGDASH_TEST_DATABASE_URL")
    or {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "OPTIONS": {"transaction_mode": "IMMEDIATE"}},
}

CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_BROKER_URL = "memory://"

env.check()
