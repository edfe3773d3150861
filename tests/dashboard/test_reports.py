"""Report pages: the list, one report in its states, files, comparing, sending, schedules; and who may do what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.choices import Role
from apps.accounts.models import AuditEntry, User
from apps.clusters.models import Cluster
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel, Delivery
from apps.reports.choices import ReportState
from apps.reports.content import Content, content_encode
from apps.reports.models import Report, ReportSchedule
from tests.apps.reports import samples
from tests.dashboard.markup import Page, visible_text
from tests.dashboard.world import World

PLAN = {
    "name": "Daily",
    "frequency": "daily",
    "weekday": "0",
    "at": "08:00",
    "zone": "Europe/Berlin",
    "coverage_hours": "0",
    "attached": ["md", "csv"],
    "is_enabled": "on",
}


def kept(cluster: Cluster, said: Content | None = None, **values: Any) -> Report:
    """Store a report as one that was made."""
    said = said or samples.content()
    given = {
        "title": "On demand",
        "start": said.start,
        "end": said.end,
        "state": ReportState.DONE,
        "content": content_encode(said).decode(),
        "headline": said.headline[0] if said.headline else "",
        **values,
    }
    return Report.objects.create(cluster=cluster, **given)


@pytest.fixture
def as_viewer(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("viewer", role=Role.VIEWER))
    return client


@pytest.fixture
def channel(db: None) -> Channel:
    return Channel.objects.create(name="gpu-admins", kind=ChannelKind.EMAIL, recipients=["gpu@example.org"])


# --- reading -----------------------------------------------------------------------------------------------------


def test_the_list_says_what_each_report_says(world: World, as_alice: Client) -> None:
    kept(world.cluster)
    kept(world.cluster, state=ReportState.FAILED, content="", detail="It broke.")
    kept(world.cluster, state=ReportState.WAITING, content="")
    answer = as_alice.get("/reports/")
    text = visible_text(answer.content)
    assert not Page(answer.content).faults
    for words in ("3 reports", "8 gangs wait for 102 GPUs", "Not made It broke.", "Being made"):
        assert words in text


@pytest.mark.parametrize(
    "query, shown", [("", 2), ("?cluster=fjord-1", 2), ("?cluster=no", 0), ("?state=done", 1), ("?schedule=-", 2),
                     ("?schedule=Daily", 0), ("?page=99", 2), ("?cluster=%00", 2)]
)  # fmt: skip
def test_the_list_is_filtered(world: World, as_alice: Client, query: str, shown: int) -> None:
    kept(world.cluster)
    kept(world.cluster, state=ReportState.FAILED)
    assert visible_text(as_alice.get(f"/reports/{query}").content).count("On demand fjord-1") == shown


def test_filters_are_chips_that_can_be_added_and_dropped(world: World, as_alice: Client) -> None:
    Cluster.objects.create(name="west", source="folder")
    schedule = ReportSchedule.objects.create(name="Daily & more", due_after=samples.END)
    kept(world.cluster, schedule=schedule, due_at=samples.END, title="Daily & more")
    kept(world.cluster)
    page = Page(as_alice.get("/reports/?cluster=fjord-1").content)
    assert "?" in page.links
    assert "?cluster=fjord-1&schedule=Daily+%26+more" in page.links
    assert "?cluster=fjord-1&schedule=-" in page.links
    assert "?cluster=fjord-1&state=failed" in page.links
    assert "?cluster=west" not in page.links
    content = as_alice.get("/reports/?schedule=Daily+%26+more&state=done").content
    assert not Page(content).faults
    assert "Schedule Daily & more" in visible_text(content)
    assert "State Made" in visible_text(content)
    assert visible_text(content).count("On demand fjord-1") == 0


def test_long_lists_are_paged_within_their_filter(world: World, as_alice: Client) -> None:
    for _ in range(52):
        kept(world.cluster)
    first = Page(as_alice.get("/reports/?state=done").content)
    assert "?state=done&page=2" in first.links
    second = as_alice.get("/reports/?state=done&page=2")
    assert "Page 2 of 2" in visible_text(second.content)
    assert visible_text(second.content).count("On demand fjord-1") == 2


def test_a_report_is_one_page_with_everything_it_says(world: World, as_alice: Client) -> None:
    report = kept(world.cluster)
    answer = as_alice.get(f"/reports/{report.pk}/")
    text = visible_text(answer.content)
    assert not Page(answer.content).faults
    for section in samples.content().sections:
        for words in (*section.sentences, *(figure.text for figure in section.figures), *section.notes):
            assert " ".join(words.split()) in text
    assert "/clusters/fjord-1/gangs/team/whisper-large-ft-1/?at=" in answer.content.decode()
    assert b"<script>" not in answer.content


@pytest.mark.parametrize("name", samples.HOSTILE)
def test_names_in_a_report_stay_text_on_the_page(world: World, as_alice: Client, name: str) -> None:
    report = kept(world.cluster, samples.hostile(name), headline=name)
    for path in (f"/reports/{report.pk}/", "/reports/"):
        content = as_alice.get(path).content
        assert not Page(content).faults
        assert b"<script>alert" not in content
        assert b"evil.example" not in content


def test_a_waiting_report_shows_how_far_it_is_and_then_itself(world: World, as_alice: Client) -> None:
    report = kept(world.cluster, state=ReportState.WAITING, content="")
    answer = as_alice.get(f"/reports/{report.pk}/")
    assert not Page(answer.content).faults
    assert "Waiting for a worker" in visible_text(answer.content)
    path = f"/reports/{report.pk}/fragment"
    first = as_alice.get(path)
    assert "HX-Refresh" not in first
    assert as_alice.get(path, headers={"if-none-match": first["ETag"]}).status_code == 304
    Report.objects.update(started_at=datetime.now(UTC), attempts=2, detail="OSError: locked")
    text = visible_text(as_alice.get(path).content)
    assert "Being made since" in text
    assert "Attempt 2. The one before ended with: OSError: locked" in text
    Report.objects.update(state=ReportState.DONE)
    assert as_alice.get(path, headers={"if-none-match": first["ETag"]})["HX-Refresh"] == "true"


def test_a_failed_report_and_one_of_another_version_say_so(world: World, as_alice: Client) -> None:
    failed = kept(world.cluster, state=ReportState.FAILED, content="", detail="It broke.")
    assert "This report was not made. It broke." in visible_text(as_alice.get(f"/reports/{failed.pk}/").content)
    strange = kept(world.cluster)
    Report.objects.filter(pk=strange.pk).update(content="{}")
    assert "written by another version" in visible_text(as_alice.get(f"/reports/{strange.pk}/").content)
    assert as_alice.get(f"/reports/{strange.pk}/report.csv").status_code == 404


@pytest.mark.parametrize(
    "form, kind, begins",
    [
        ("html", "text/html", b"<!doctype html>"),
        ("md", "text/markdown", b"# fjord-1"),
        ("json", "application/json", b"{"),
        ("csv", "text/csv", b"cluster,start"),
    ],
)
def test_each_form_comes_as_a_file_with_whole_links(
    world: World, as_alice: Client, form: str, kind: str, begins: bytes
) -> None:
    report = kept(world.cluster)
    answer = as_alice.get(f"/reports/{report.pk}/report.{form}")
    assert answer["Content-Type"].startswith(kind)
    assert answer["Content-Disposition"].startswith('attachment; filename="gangdash-report-fjord-1-')
    assert answer["Cache-Control"] == "private, no-store"
    assert answer.content.startswith(begins)
    assert b"http://testserver/clusters/fjord-1/gangs/team/" in answer.content


def test_two_reports_stand_side_by_side(world: World, as_alice: Client) -> None:
    report = kept(world.cluster)
    before = kept(world.cluster, samples.empty(), start=samples.START - timedelta(days=1), end=samples.START)
    answer = as_alice.get(f"/reports/{report.pk}/?with={before.pk}")
    assert not Page(answer.content).faults
    assert "Beside On demand" in visible_text(answer.content)
    other = Cluster.objects.create(name="other", source="folder")
    assert as_alice.get(f"/reports/{report.pk}/?with={kept(other).pk}").status_code == 404
    for odd in ("x", "-1", "9" * 40, "%00"):
        assert as_alice.get(f"/reports/{report.pk}/?with={odd}").status_code == 200


# --- making one --------------------------------------------------------------------------------------------------


def test_a_viewer_makes_one_now_and_sees_its_progress(world: World, as_viewer: Client) -> None:
    wish = {"make-cluster": "fjord-1", "make-range": "7d", "make-zone": "UTC"}
    answer = as_viewer.post("/reports/", wish, follow=True)
    report = Report.objects.get()
    assert answer.redirect_chain == [(f"/reports/{report.pk}/", 302)]
    assert report.end - report.start == timedelta(days=7)
    assert report.requested_by is not None
    assert AuditEntry.objects.get(action="report.create").actor == report.requested_by


@pytest.mark.parametrize(
    "wish, words",
    [
        ({"make-range": "yesterday"}, "is no range"),
        ({"make-zone": "Mars"}, "Write a time zone by its name"),
        ({"make-cluster": "elsewhere"}, "Select a valid choice"),
        ({"make-cluster": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_with_a_wish_is_said_beside_it(
    world: World, as_alice: Client, wish: dict[str, str], words: str
) -> None:
    base = {"make-cluster": "fjord-1", "make-range": "24h", "make-zone": "UTC"}
    answer = as_alice.post("/reports/", {**base, **wish})
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    assert words in visible_text(answer.content)
    assert not Report.objects.exists()


def test_a_person_cannot_ask_without_end(world: World, as_alice: Client) -> None:
    base = {"make-cluster": "fjord-1", "make-range": "24h", "make-zone": "UTC"}
    codes = [as_alice.post("/reports/", base).status_code for _ in range(4)]
    assert codes == [302, 302, 302, 422]


# --- who may -----------------------------------------------------------------------------------------------------


def test_bob_reads_no_report_and_makes_none(world: World, as_bob: Client) -> None:
    report = kept(world.cluster)
    answer = as_bob.get("/reports/")
    assert not Page(answer.content).faults
    assert "whole clusters" in visible_text(answer.content)
    assert b"102 GPUs" not in answer.content
    for path in ("", "fragment", "report.csv"):
        assert as_bob.get(f"/reports/{report.pk}/{path}").status_code == 404
    wish = {"make-cluster": "fjord-1", "make-range": "24h", "make-zone": "UTC"}
    assert as_bob.post("/reports/", wish).status_code == 403
    assert Report.objects.count() == 1


def test_only_admins_plan_and_send(world: World, as_viewer: Client, as_bob: Client, channel: Channel) -> None:
    report = kept(world.cluster)
    schedule = ReportSchedule.objects.create(name="Daily", due_after=samples.END)
    for client in (as_viewer, as_bob):
        assert client.get("/reports/schedules/new").status_code == 403
        assert client.post("/reports/schedules/new", PLAN).status_code == 403
        assert client.get(f"/reports/schedules/{schedule.pk}/").status_code == 403
        assert client.post(f"/reports/schedules/{schedule.pk}/remove").status_code == 403
        assert client.post(f"/reports/{report.pk}/send", {"channel": channel.pk}).status_code == 403
    assert ReportSchedule.objects.count() == 1
    assert not Delivery.objects.exists()
    assert b"Send the report" not in as_viewer.get(f"/reports/{report.pk}/").content


# --- schedules and sending ---------------------------------------------------------------------------------------


def test_a_schedule_is_made_changed_and_removed(world: World, as_alice: Client, channel: Channel) -> None:
    assert not Page(as_alice.get("/reports/schedules/new").content).faults
    answer = as_alice.post("/reports/schedules/new", {**PLAN, "channels": [channel.pk], "clusters": [world.cluster.pk]})
    assert answer.status_code == 302
    schedule = ReportSchedule.objects.get()
    assert (schedule.zone, schedule.attached, list(schedule.channels.all())) == (
        "Europe/Berlin",
        ["csv", "md"],
        [channel],
    )
    listed = visible_text(as_alice.get("/reports/").content)
    assert "Every day at 08:00 Europe/Berlin" in listed
    assert "gpu-admins" in listed
    page = as_alice.get(f"/reports/schedules/{schedule.pk}/")
    assert not Page(page.content).faults
    change = {**PLAN, "frequency": "weekly", "weekday": "4"}
    assert as_alice.post(f"/reports/schedules/{schedule.pk}/", change).status_code == 302
    assert "Fridays at 08:00" in visible_text(as_alice.get("/reports/").content)
    assert as_alice.post(f"/reports/schedules/{schedule.pk}/remove").status_code == 302
    assert not ReportSchedule.objects.exists()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"zone": "Mars"}, "Write a time zone by its name"),
        ({"at": "25:00"}, "Enter a valid time"),
        ({"name": " "}, "This field is required"),
        ({"attached": ["pdf"]}, "pdf is not one of the available choices"),
        ({"channels": ["777"]}, "777 is not one of the available choices"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(world: World, as_alice: Client, change: dict[str, Any], words: str) -> None:
    answer = as_alice.post("/reports/schedules/new", {**PLAN, **change})
    assert answer.status_code == 422
    assert not Page(answer.content).faults
    assert words in visible_text(answer.content)


def test_a_plan_that_would_tell_too_much_or_takes_a_name_is_refused(
    world: World, as_alice: Client, channel: Channel
) -> None:
    Channel.objects.update(namespaces=["team-a"])
    answer = as_alice.post("/reports/schedules/new", {**PLAN, "channels": [channel.pk]})
    assert "gpu-admins may not hear of everything" in visible_text(answer.content)
    assert as_alice.post("/reports/schedules/new", PLAN).status_code == 302
    assert "a schedule named 'Daily' already" in visible_text(as_alice.post("/reports/schedules/new", PLAN).content)


def test_a_report_is_sent_from_its_page(world: World, as_alice: Client, channel: Channel) -> None:
    report = kept(world.cluster)
    assert "Send the report" in visible_text(as_alice.get(f"/reports/{report.pk}/").content)
    answer = as_alice.post(f"/reports/{report.pk}/send", {"channel": channel.pk}, follow=True)
    assert "gpu-admins gets this report" in visible_text(answer.content)
    assert Delivery.objects.get().key == f"report:{report.pk}"
    for wrong in ("", "x", "999", "9" * 40):
        assert as_alice.post(f"/reports/{report.pk}/send", {"channel": wrong}).status_code == 404
    Report.objects.update(state=ReportState.WAITING)
    answer = as_alice.post(f"/reports/{report.pk}/send", {"channel": channel.pk}, follow=True)
    assert "This report is not made" in visible_text(answer.content)


@pytest.mark.parametrize("path, queries", [("/reports/", 10), ("/reports/{}/", 6)])
def test_queries_do_not_grow_with_reports(
    world: World, as_viewer: Client, django_assert_num_queries: DjangoAssertNumQueries, path: str, queries: int
) -> None:
    report = kept(world.cluster)
    for at in range(12):
        row = ReportSchedule.objects.create(name=f"Plan {at}", due_after=samples.END)
        row.clusters.add(world.cluster)
        kept(world.cluster, schedule=row, due_at=samples.END + timedelta(days=at))
    as_viewer.get(path.format(report.pk))
    with django_assert_num_queries(queries):
        assert as_viewer.get(path.format(report.pk)).status_code == 200
