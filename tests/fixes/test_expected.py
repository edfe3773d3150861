"""Every scene that says which kinds of fix would help has a fix of one of them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fixes.helpers import all_fixed

_EXPECTED = Path(__file__).parent.parent / "scenes" / "expected"
_UNREACHED = {
    "FC-029": "a missing runtime class shows in the reservation pod alone; the binder's restart is named",
    "FC-037": "the label that a claim lacks is named and re-run; the claim is not made again",
    "FC-072": "the default scheduler places these pods, which no replay knows",
}


def test_scenes_have_a_fix_of_an_expected_kind() -> None:
    answers = {snapshot.name.split(".")[0]: items for snapshot, items in all_fixed()}
    missing, count = set(), 0
    for file in sorted(_EXPECTED.glob("*.json")):
        wanted = json.loads(file.read_text())
        scene = file.stem.split("@")[0]
        if not wanted.get("fix_kinds") or scene not in answers:
            continue
        count += 1
        gang = wanted["gang"].rpartition("/")[2]
        found = {fix.kind.value for item in answers[scene] if item.gang.name == gang for fix in item.fixes}
        if found.isdisjoint(wanted["fix_kinds"]):
            missing.add(scene)
    assert missing <= set(_UNREACHED)
    assert count >= 50
