"""YAML means what the JSON beside it means, and what no dump has is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from gangdash.kube.yaml import YamlError, load

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\ufeff")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc-/.", min_size=1), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(_JSON)
def test_json_is_yaml_of_the_same_value(value: Any) -> None:
    assert load(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize("text", ["yes", "on", "12:30", "2026-11-30T08:56:01Z", "0o17", "1_000", "=", "1.2.3", "0x1f"])
def test_plain_words_stay_text(text: str) -> None:
    assert load(f"a: {text}") == {"a": text}


def test_dump_written_by_a_yaml_library_comes_back() -> None:
    value = {"a": ["1", 1, 1.5, True, None, "true", "null", "", "~", "x: y", "two\nlines"], "b": {}, "c": []}

    assert load(pyyaml.safe_dump(value)) == value


@pytest.mark.parametrize(
    "text,problem",
    [
        (b"a: &x 1\nb: *x", "an alias"),
        (b"a: 1\na: 2", "given twice"),
        (b"a: !!python/object:os.system x", "a tag"),
        (b"a: 1\n---\nb: 2", "more than one"),
        (b"? [a]\n: 1", "not text"),
        (b"a: [1, 2", "line"),
        (b"a: \xff\xfe", "invalid"),
        (b"[" * 5000, "nest"),
        (b"[" * 300 + b"]" * 300, "nested too deep"),
        (b"a: 1e999", "beyond 64 bits"),
    ],
)
def test_what_no_dump_has_is_refused_in_one_line(text: bytes, problem: str) -> None:
    with pytest.raises(YamlError, match=problem) as caught:
        load(text)
    assert "\n" not in str(caught.value)


def test_alias_bomb_costs_nothing() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]

    with pytest.raises(YamlError, match="alias"):
        load("\n".join(lines))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(content: bytes) -> None:
    with contextlib.suppress(YamlError):
        json.dumps(load(content))
