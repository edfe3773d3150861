"""What is true in every mode. The mode's own module imports this one and adds database, broker and secrets.

Each GANGDASH_ variable is read here or in the mode's module, never elsewhere; .env.example lists them all.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gangdash import __version__
from gangdash.settings.env import env
from gangdash.settings.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent.parent

# --- what gangdash reads -----------------------------------------------------------------------------------------
# Everything that one installation keeps on disk: database, broker folder, secret key (embedded mode only).
GANGDASH_STATE_DIR = env.path("GANGDASH_STATE_DIR") or BASE_DIR / ".state"
# A folder of kubeconfig files, one cluster each, named after the file; re-read while running.
GANGDASH_CLUSTERS_DIR = env.path("GANGDASH_CLUSTERS_DIR")
# One kubeconfig; the context is its current one unless named.
GANGDASH_KUBECONFIG = env.path("GANGDASH_KUBECONFIG")
GANGDASH_KUBE_CONTEXT = env.text("GANGDASH_KUBE_CONTEXT")
# True where the kubeconfig belongs to the demo cluster, so that the pages can say so.
GANGDASH_DEMO = env.flag("GANGDASH_DEMO", default=False)
# The address that users type, for links in reports and messages; also the host that requests may name.
GANGDASH_BASE_URL = env.text("GANGDASH_BASE_URL").rstrip("/")

# --- how often and how much --------------------------------------------------------------------------------------
GANGDASH_POLL_SECONDS = env.integer("GANGDASH_POLL_SECONDS", 15, least=2, most=3600)
# One analysis may take this long on its own queue before it is stopped.
GANGDASH_ANALYSIS_SECONDS = env.integer("GANGDASH_ANALYSIS_SECONDS", 900, least=30, most=86_400)
# Seconds that a controller may take for a step before "slow" becomes "stuck"; gangdash/engine/model/deadlines.py says
# what each default comes from.
GANGDASH_DEADLINES = {
    "first_status": env.integer("GANGDASH_DEADLINE_FIRST_STATUS_SECONDS", 60, least=1, most=86_400),
    "first_child": env.integer("GANGDASH_DEADLINE_FIRST_CHILD_SECONDS", 60, least=1, most=86_400),
    "children": env.integer("GANGDASH_DEADLINE_CHILDREN_SECONDS", 60, least=1, most=86_400),
    "pods": env.integer("GANGDASH_DEADLINE_PODS_SECONDS", 60, least=1, most=86_400),
    "gate": env.integer("GANGDASH_DEADLINE_GATE_SECONDS", 200, least=1, most=86_400),
    "podgroup": env.integer("GANGDASH_DEADLINE_PODGROUP_SECONDS", 60, least=1, most=86_400),
    "migration": env.integer("GANGDASH_DEADLINE_MIGRATION_SECONDS", 300, least=1, most=86_400),
    "rollout": env.integer("GANGDASH_DEADLINE_ROLLOUT_SECONDS", 1800, least=1, most=86_400),
    "status": env.integer("GANGDASH_DEADLINE_STATUS_SECONDS", 300, least=1, most=86_400),
    "discovery": env.integer("GANGDASH_DEADLINE_DISCOVERY_SECONDS", 300, least=1, most=86_400),
}
GANGDASH_UPLOAD_MAX_BYTES = env.integer("GANGDASH_UPLOAD_MAX_BYTES", 256 * 1024**2, least=1024)
GANGDASH_UNPACKED_MAX_BYTES = env.integer("GANGDASH_UNPACKED_MAX_BYTES", 2 * 1024**3, least=1024)
GANGDASH_NESTING_MAX = env.integer("GANGDASH_NESTING_MAX", 200, least=20, most=1000)

# --- how long things are kept ------------------------------------------------------------------------------------
# The objects as they were: each moment at which some reason changed, one of each minute for a day, one of each hour
# after that. They are what replays and downloads are made of, and the bulk of the disk: hence a size per cluster.
GANGDASH_KEEP_SNAPSHOT_HOURS = env.integer("GANGDASH_KEEP_SNAPSHOT_HOURS", 168, least=1)
GANGDASH_KEEP_SNAPSHOT_MEGABYTES = env.integer("GANGDASH_KEEP_SNAPSHOT_MEGABYTES", 2048, least=1)
# Timelines and gangs that are gone.
GANGDASH_KEEP_HISTORY_DAYS = env.integer("GANGDASH_KEEP_HISTORY_DAYS", 30, least=1)
# The records of polls and analyses on the health page.
GANGDASH_KEEP_POLL_DAYS = env.integer("GANGDASH_KEEP_POLL_DAYS", 3, least=1)
# Answers to uploaded snapshot files.
GANGDASH_KEEP_UPLOAD_HOURS = env.integer("GANGDASH_KEEP_UPLOAD_HOURS", 24, least=1)
# Health reports, by age and by number per cluster; the newest of each schedule stays in any case.
GANGDASH_KEEP_REPORT_DAYS = env.integer("GANGDASH_KEEP_REPORT_DAYS", 400, least=1)
GANGDASH_KEEP_REPORTS = env.integer("GANGDASH_KEEP_REPORTS", 1000, least=1)

# --- messages ----------------------------------------------------------------------------------------------------
# Seals addresses and tokens of channels; several, separated by commas or spaces: the first seals, all of them open.
GANGDASH_SECRETS_KEYS = env.secret("GANGDASH_SECRETS_KEY").replace(",", " ").split()
# Webhooks go to public addresses over https, unless all private ones or some networks are opened here.
GANGDASH_WEBHOOK_PRIVATE_TARGETS = env.flag("GANGDASH_WEBHOOK_PRIVATE_TARGETS", default=False)
GANGDASH_WEBHOOK_ALLOWED_NETWORKS = env.networks("GANGDASH_WEBHOOK_ALLOWED_NETWORKS")
# The usual proxy variables are not followed: a proxy resolves names itself, so it is named here on purpose.
GANGDASH_WEBHOOK_PROXY = env.secret("GANGDASH_WEBHOOK_PROXY")
# A bundle of authorities in place of the usual ones, for receivers inside.
GANGDASH_WEBHOOK_CA_FILE = env.text("GANGDASH_WEBHOOK_CA_FILE")
EMAIL_HOST = env.text("GANGDASH_SMTP_HOST")
EMAIL_PORT = env.integer("GANGDASH_SMTP_PORT", 587, least=1, most=65_535)
EMAIL_HOST_USER = env.text("GANGDASH_SMTP_USER")
EMAIL_HOST_PASSWORD = env.secret("GANGDASH_SMTP_PASSWORD")
smtp_security = env.choice("GANGDASH_SMTP_SECURITY", "starttls", ("starttls", "tls", "none"))
EMAIL_USE_TLS, EMAIL_USE_SSL = smtp_security == "starttls", smtp_security == "tls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("GANGDASH_MAIL_FROM", "gangdash@localhost")

# --- what only Prometheus knows ----------------------------------------------------------------------------------
# The server that scrapes a cluster's devices and its scheduler, for reports: one address, or NAME=URL per cluster.
GANGDASH_PROMETHEUS_URLS = env.addresses("GANGDASH_PROMETHEUS_URL")
# Sent to these servers as a bearer token.
GANGDASH_PROMETHEUS_TOKEN = env.secret("GANGDASH_PROMETHEUS_TOKEN")

# --- Django ------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "gangdash",
    "apps.accounts",
    "apps.clusters",
    "apps.inventory",
    "apps.workloads",
    "apps.collector",
    "apps.diagnosis",
    "apps.checks",
    "apps.chains",
    "apps.delivery",
    "apps.alerts",
    "apps.reports",
    "apps.api",
    "apps.dashboard",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "gangdash.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "gangdash.urls"
WSGI_APPLICATION = "gangdash.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "gangdash.staticfinders.PlotlyFinder",
]

# Static files are for these pages only.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Uploads above the cap are refused by the view that takes them; everything else is small.
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024**2
FILE_UPLOAD_PERMISSIONS = 0o600

# --- who may look ------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["apps.accounts.backends.PatientBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

ALLOWED_HOSTS = env.words("GANGDASH_ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS: list[str] = []
if GANGDASH_BASE_URL:
    base_address = urlsplit(GANGDASH_BASE_URL)
    env.require("GANGDASH_BASE_URL", base_address.hostname, "Write it with its scheme, like https://gangdash.example")
    if base_address.hostname:
        ALLOWED_HOSTS.append(base_address.hostname)
        CSRF_TRUSTED_ORIGINS.append(f"{base_address.scheme}://{base_address.netloc}")

SESSION_COOKIE_NAME = "gangdash_session"
CSRF_COOKIE_NAME = "gangdash_csrf"
SESSION_COOKIE_AGE = int(timedelta(days=7).total_seconds())
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- REST --------------------------------------------------------------------------------------------------------
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.api.auth.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.api.auth.IsAllowed"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "apps.api.problems.problem_response",
    "URL_FORMAT_OVERRIDE": None,
    # Counted per process. A scope slows down one kind of request, "user" what one person asks for in all.
    "DEFAULT_THROTTLE_CLASSES": [
        "rest_framework.throttling.AnonRateThrottle",
        "rest_framework.throttling.UserRateThrottle",
        "rest_framework.throttling.ScopedRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"anon": "60/min", "user": "600/min", "diagnose": "20/min", "whatif": "20/min"},
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "gangdash",
    "DESCRIPTION": "Why gangs of GPU pods wait, and what would start them.",
    "VERSION": __version__,
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "OAS_VERSION": "3.1.0",  # the version that knows null, which the documents are full of
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "GangState": "apps.workloads.choices.GangState",
        "UploadState": "apps.diagnosis.choices.UploadState",
        "AlertState": "apps.alerts.choices.AlertState",
        "AlertSeverity": "apps.alerts.choices.AlertSeverity",
        "MuteKind": "apps.alerts.choices.MuteKind",
        "ChannelKind": "apps.delivery.choices.ChannelKind",
        "VerdictEnum": "gangdash.engine.verdict.Verdict",
        "CheckState": "apps.checks.choices.CheckState",
        "CheckSeverity": "apps.checks.choices.CheckSeverity",
        "ReportState": "apps.reports.choices.ReportState",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "apps.api.schema.describe_documents_and_errors",
    ],
}

# --- Celery ------------------------------------------------------------------------------------------------------
# The queue carries hints, the database carries duties: any task may be lost or run twice.
CELERY_TASK_DEFAULT_QUEUE = "collect"
CELERY_TASK_ROUTES = {"diagnosis.*": {"queue": "analyse"}, "reports.make_report": {"queue": "analyse"}}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_SOFT_TIME_LIMIT = 50
CELERY_TASK_TIME_LIMIT = 60
# Asked to stop (with REMAP_SIGTERM=SIGQUIT in its environment), a worker gives its tasks this many seconds.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3.0
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
CELERY_TIMEZONE = "UTC"
# Each entry expires with its interval, so that ticks cannot pile up behind a slow worker.
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "every-poll-tick-read-clusters": {
        "task": "collector.poll_clusters",
        "schedule": GANGDASH_POLL_SECONDS,
        "options": {"expires": GANGDASH_POLL_SECONDS},
    },
    "every-poll-tick-diagnose-what-is-due": {
        "task": "diagnosis.diagnose_due",
        "schedule": GANGDASH_POLL_SECONDS,
        "options": {"expires": GANGDASH_POLL_SECONDS},
    },
    "every-five-seconds-send-what-is-due": {
        "task": "delivery.send_due",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "every-ten-minutes-prune-the-delivery-log": {
        "task": "delivery.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "twice-a-minute-look-for-alerts": {
        "task": "alerts.evaluate_all",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "every-hour-prune-old-alerts": {
        "task": "alerts.prune",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "every-ten-minutes-prune-poll-records": {
        "task": "collector.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "every-ten-minutes-prune-past-workloads": {
        "task": "chains.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "every-ten-minutes-prune-old-answers": {
        "task": "diagnosis.prune",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "twice-a-minute-take-on-reports": {
        "task": "reports.run_due",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "every-hour-prune-old-reports": {
        "task": "reports.prune",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
}

# --- logs --------------------------------------------------------------------------------------------------------
LOGGING = logging_config(
    style=env.choice("GANGDASH_LOG_FORMAT", "text", ("text", "json")),
    level=env.choice("GANGDASH_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
)
