"""Lines of a policy file: every key and element where a person would look for it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from equipoise.policies.toml_lines import line_at, lines_of, place_text

TRICKY = '''# [comment] = 1
"quoted key" = "a # no comment, [no] header"
a.b."c.d" = 1   # dotted
text = """
[not.a.header]
key = 1"""
raw = \'\'\'
x = "\'\'\'
[table]       # a header
list = [
    1,        # [2]
    { x = 1, "y z" = [ "]", 2 ] },
    [3, 4],
]
[[rows]]
n = 1
[[rows]]
n = 2
[rows.inner]
m = 3
[[rows.deep]]
k = 4
'''


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("quoted key",), 2),
        (("a", "b", "c.d"), 3),
        (("text",), 4),
        (("raw",), 7),
        (("table",), 9),
        (("table", "list", 0), 11),
        (("table", "list", 1, "y z", 1), 12),
        (("table", "list", 2, 1), 13),
        (("rows",), 15),
        (("rows", 0, "n"), 16),
        (("rows", 1), 17),
        (("rows", 1, "n"), 18),
        (("rows", 1, "inner", "m"), 20),
        (("rows", 1, "deep", 0, "k"), 22),
    ],
)
def test_lines_by_hand(place: tuple[Any, ...], line: int) -> None:
    assert lines_of(TRICKY)[place] == line


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    assert lines_of("\ufeff" + TRICKY.replace("\n", "\r\n")) == lines_of(TRICKY)


@pytest.mark.parametrize("name", ["survey", "business", "business-table", "hospital", "methods"])
def test_every_place_of_the_demo_policies_has_its_line(name: str) -> None:
    """Checked against the text: the line of a key holds the key."""
    text = (Path(__file__).parents[2] / f"src/equipoise/demo/{name}.toml").read_text(encoding="utf-8")
    found, lines = lines_of(text), text.split("\n")
    assert set(found) == set(places(tomllib.loads(text)))
    for place, line in found.items():
        if isinstance(place[-1], str):
            assert place[-1] in lines[line - 1]


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=5)
LEAVES = st.one_of(st.integers(), st.booleans(), st.text(max_size=6), st.floats(allow_nan=False))
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_whatever_can_be_written_is_found(plain: dict[str, Any]) -> None:
    text = tomli_w.dumps(plain)
    found = lines_of(text)
    assert set(places(tomllib.loads(text))) <= set(found)
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


def test_a_place_without_a_line_has_that_of_what_is_around_it() -> None:
    assert line_at({("data",): 3}, ("data", "path")) == 3
    assert line_at({}, ("data",)) is None
    assert place_text(("limits", "uniques", 0, "limit")) == "limits.uniques[1].limit"
