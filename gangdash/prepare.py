"""Makes an installation ready to serve: system checks, migrations, the first admin user.

Run as `python -m gangdash.prepare` before the first process of a start. Prints what is wrong, one line each, or as
its last line the JSON answer of `ensure_admin`: the user's name and, once, a one-time password.
"""

from __future__ import annotations

import io
import sys

import django
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError


def describe(message: CheckMessage) -> str:
    """Return one line for one finding of the system checks."""
    hint = f" {message.hint}" if message.hint else ""
    return f"{message.msg}{hint} [{message.id}]".replace("\n", " ")


def prepare() -> str:
    """Check and migrate; return the answer of `ensure_admin`."""
    call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    answer = io.StringIO()
    call_command("ensure_admin", stdout=answer)
    return answer.getvalue().strip()


def main() -> int:
    """Prepare and print the outcome."""
    try:
        django.setup()
        faults = [message for message in run_checks() if message.is_serious()]
        if not faults:
            print(prepare())
    except (ImproperlyConfigured, DatabaseError) as error:
        print(error)
        return 1
    for fault in faults:
        print(describe(fault))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
