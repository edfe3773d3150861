"""The WSGI entry that gunicorn loads in both modes."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gangdash.settings.embedded")

application = get_wsgi_application()
