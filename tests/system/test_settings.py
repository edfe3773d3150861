"""Settings are read once, typed, and every fault is told at once; what deployments set exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured

from gangdash.settings.env import Env

PRODUCTION = {
    "GANGDASH_SECRET_KEY": "k" * 20 + "0123456789abcdefghijklmnopqrstuv",
    "GANGDASH_BASE_URL": "https://gangdash.example",
    "GANGDASH_DATABASE_URL": "postgres://gangdash:p%40ss@db:5432/gangdash",
    "GANGDASH_BROKER_URL": "redis://valkey:6379/0",
}
# Read outside the settings: before Django, by the tests, or by the database's image.
READ_ELSEWHERE = {"GANGDASH_NO_BOOTSTRAP", "GANGDASH_ORACLE_DIR", "GANGDASH_LIVE_KUBECONFIG", "POSTGRES_PASSWORD"}
PRINT_SETTINGS = """
import json, sys
from django.conf import settings
from gangdash.settings.env import env
values = {name: repr(getattr(settings, name)) for name in ["INSTALLED_APPS", *sys.argv[1:]]}
print(json.dumps({"names": sorted(env.names), "values": values}))
"""


def load(project_root: Path, mode: str, variables: dict[str, str], *names: str) -> subprocess.CompletedProcess[str]:
    """Load one mode's settings in a fresh process that has no other variables of ours."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GANGDASH_")}
    return subprocess.run(
        [sys.executable, "-c", PRINT_SETTINGS, *names],
        cwd=project_root,
        env={**clean, "DJANGO_SETTINGS_MODULE": f"gangdash.settings.{mode}", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def known_names(project_root: Path) -> set[str]:
    """Return every variable that the settings of any mode read."""
    names: set[str] = set()
    for mode, variables in (("production", PRODUCTION), ("embedded", {}), ("test", {})):
        names.update(json.loads(load(project_root, mode, variables).stdout)["names"])
    return names


def test_every_fault_is_reported_with_its_remedy() -> None:
    env = Env({"A": "maybe", "B": "ten", "C": "0", "D": "blue", "E": "mysql://h/d", "F": "http://h"})
    assert env.flag("A", default=True) is True
    assert env.integer("B", 7, least=1) == 7
    assert env.number("C", 1.5, least=0.5, most=9) == 1.5
    assert env.choice("D", "red", ("red", "green")) == "red"
    assert env.database("E") is None
    assert env.broker("F") == ""
    with pytest.raises(ImproperlyConfigured) as raised:
        env.check()
    text = str(raised.value)
    assert "6 setting(s)" in text
    assert "C: is out of range. Use a number from 0.5 to 9." in text
    assert "D: is not one of the allowed words. Use one of red, green." in text


def test_values_are_typed_and_empty_means_default() -> None:
    env = Env({"FLAG": "Yes", "COUNT": " 12 ", "LIST": "a, b,,c", "EMPTY": "  "})
    assert env.flag("FLAG", default=False) is True
    assert env.integer("COUNT", 1, least=0) == 12
    assert env.words("LIST") == ["a", "b", "c"]
    assert env.integer("EMPTY", 3, least=0) == 3
    assert env.path("EMPTY") is None
    env.check()


def test_addresses_are_named_or_bare_and_anything_else_is_a_fault() -> None:
    env = Env(
        {"ONE": "https://prom:9090/", "MANY": "east=http://e, west=https://w/p?a=b", "WRONG": "east=prom,http://"}
    )
    assert env.addresses("ONE") == {"": "https://prom:9090"}
    assert env.addresses("MANY") == {"east": "http://e", "west": "https://w/p?a=b"}
    assert env.addresses("NONE") == {}
    env.check()
    env.addresses("WRONG")
    with pytest.raises(ImproperlyConfigured) as raised:
        env.check()
    assert str(raised.value).count("WRONG: holds something that is no web address") == 2


def test_secret_comes_from_a_file_and_never_shows_in_a_fault(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mysql://user:hunter2@h/d\n")
    env = Env({"URL_FILE": str(secret), "URL": "postgres://ignored", "KEY_FILE": str(tmp_path / "absent")})
    assert env.secret("URL") == "mysql://user:hunter2@h/d"
    assert env.database("URL") is None
    assert env.secret("KEY", "fallback") == "fallback"
    with pytest.raises(ImproperlyConfigured) as raised:
        env.check()
    assert "hunter2" not in str(raised.value)
    assert "KEY_FILE: the file cannot be read" in str(raised.value)


def test_production_without_variables_names_all_it_needs(project_root: Path) -> None:
    outcome = load(project_root, "production", {})
    assert outcome.returncode != 0
    for name in PRODUCTION:
        assert f"- {name}: is not set." in outcome.stderr


def test_production_is_strict_over_https(project_root: Path) -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_HSTS_SECONDS", "DEBUG", "DATABASES")
    values = json.loads(load(project_root, "production", PRODUCTION, *names).stdout)["values"]
    assert values["SESSION_COOKIE_SECURE"] == values["CSRF_COOKIE_SECURE"] == "True"
    assert values["SECURE_HSTS_SECONDS"] != "0"
    assert values["DEBUG"] == "False"
    assert "'PASSWORD': 'p@ss'" in values["DATABASES"]


def test_every_variable_is_in_the_example_file(project_root: Path, known_names: set[str]) -> None:
    lines = (project_root / ".env.example").read_text(encoding="utf-8").splitlines()
    listed = {line.partition("=")[0] for line in lines if re.match(r"[A-Z_]+=", line)}
    assert listed - READ_ELSEWHERE == known_names
    assert listed >= READ_ELSEWHERE


def test_no_setting_is_without_a_reader(project_root: Path) -> None:
    declared = re.findall(
        r"^(GANGDASH_[A-Z_]+) = ", (project_root / "gangdash/settings/base.py").read_text(), re.MULTILINE
    )
    sources = [path for folder in ("gangdash", "apps") for path in (project_root / folder).rglob("*.py")]
    read = "".join(path.read_text(encoding="utf-8") for path in sources if path.parent.name != "settings")
    assert declared
    assert [name for name in declared if f"settings.{name}" not in read] == []


def test_compose_file_sets_only_variables_that_exist(project_root: Path, known_names: set[str]) -> None:
    services = yaml.safe_load((project_root / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"web", "worker-collect", "worker-analyse", "beat", "postgres", "valkey"}
    for name in ("web", "worker-collect", "worker-analyse", "beat"):
        variables = dict(services[name]["environment"])
        assert variables.pop("DJANGO_SETTINGS_MODULE") == "gangdash.settings.production"
        assert set(variables) <= known_names
        assert set(variables) >= set(PRODUCTION)


def test_compose_file_asks_only_for_variables_of_the_example_file(project_root: Path) -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+)", (project_root / "docker-compose.yml").read_text(encoding="utf-8")))
    example = (project_root / ".env.example").read_text(encoding="utf-8")
    assert asked
    assert {name for name in asked if f"\n{name}=" not in example} == set()


def test_both_queues_have_a_worker_in_compose(project_root: Path) -> None:
    services = yaml.safe_load((project_root / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    assert "-Q collect " in services["worker-collect"]["command"]
    assert "-Q analyse " in services["worker-analyse"]["command"]


def test_analysis_runs_on_its_own_queue(settings: object) -> None:
    from gangdash.celery import app

    assert app.conf.task_default_queue == "collect"
    route = app.amqp.router.route({}, "diagnosis.diagnose_due", (), {})
    assert route["queue"].name == "analyse"


def test_every_scheduled_task_exists_and_expires_with_its_interval() -> None:
    from gangdash.celery import app

    app.loader.import_default_modules()
    for entry in app.conf.beat_schedule.values():
        assert entry["task"] in app.tasks
        assert entry["options"]["expires"] == entry["schedule"]
