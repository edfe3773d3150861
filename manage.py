#!/usr/bin/env python3
"""Django's entry point, started with any Python 3.11 or newer and nothing installed.

The environment is built first (gangdash.bootstrap). Two commands do not go through Django: `up` runs the whole
product as one process tree, `test` runs the suite with pytest.
"""

from __future__ import annotations

import os
import sys

from gangdash import bootstrap

OWN_COMMANDS = {
    "up": "start everything on this machine: web, workers, and a demo cluster when no cluster is given",
    "test": "run the whole test suite; arguments go to pytest",
}


def failure_code(command: str) -> int:
    """Return the exit code of a start-up error: `diagnose` keeps 1 and 2 for its answers."""
    return 255 if command == "diagnose" else 1


def run_tests(arguments: list[str]) -> int:
    """Run pytest in this process; its closing line is the last thing printed."""
    try:
        import pytest
    except ModuleNotFoundError:
        print("pytest is not installed here; install requirements-dev.lock", file=sys.stderr)
        return 1
    return int(pytest.main(arguments))


def run_django(argv: list[str]) -> int:
    """Hand the command to Django; a configuration error is printed without a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gangdash.settings.embedded")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(argv)
    except ImproperlyConfigured as error:
        print(error, file=sys.stderr)
        return failure_code(argv[1] if len(argv) > 1 else "")
    if argv[1:] in ([], ["help"], ["--help"]):
        print("\n[gangdash]")
        for name, text in OWN_COMMANDS.items():
            print(f"    {name}: {text}")
    return 0


def main(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    command = argv[1] if len(argv) > 1 else ""
    bootstrap.ensure(command)
    if command == "up":
        from gangdash import supervisor

        return supervisor.main(argv[2:])
    if command == "test":
        return run_tests(argv[2:])
    return run_django(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
