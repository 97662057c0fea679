"""Spans: the cost of the lowest common category, tabulated or rung by rung."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.hierarchy import Hierarchy
from equipoise.masks._local_recoding import merge_cost
from equipoise.masks._local_recoding.merge_cost import Span, Worth, cost, joint, ranked

VALUES = list(range(12))
TREE = Hierarchy.intervals([2, 6], root=True)


def span(worth: Worth = "granularity") -> tuple[Span, "np.ndarray[tuple[int], np.dtype[np.int32]]"]:
    ladder, place = CodedLevels.of("x", pl.Series("x", VALUES), np.arange(1, 13), TREE)
    made, line = Span.of(ladder, worth)
    return made, line[place]


@pytest.mark.parametrize("worth", ["granularity", "entropy"])
def test_the_cost_is_that_of_the_lowest_common_category(worth: Worth, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against bands by hand: widths 1, 2, 6 and all; v + 1 records have value v."""
    for table in (merge_cost.TABLE, 0):
        monkeypatch.setattr(merge_cost, "TABLE", table)
        made, place = span(worth)
        for a, b in combinations(VALUES, 2):
            width = next(w for w in (1, 2, 6, 12) if a // w == b // w)
            held = [v for v in VALUES if v // width == a // width]
            expected = (len(held) - 1) / 11 if worth == "granularity" else np.log2(sum(v + 1 for v in held))
            low, high = sorted((place[a], place[b]))
            assert made.cost(np.array([low]), np.array([high]))[0] == pytest.approx(expected)
            assert made.names[made.rung(np.array([low]), np.array([high]))[0]] == {2: "2", 6: "6", 12: "all"}[width]


def test_reach_is_the_mean_over_pairs() -> None:
    made, _ = span()
    pairs = np.array(list(combinations(range(12), 2)))
    assert made.reach == pytest.approx(made.cost(pairs[:, 0], pairs[:, 1]).mean())


def test_boxes_add_up_over_keys() -> None:
    made, place = span()
    codes = np.array([place[[0, 1, 7]], place[[3, 3, 4]]])
    both = joint((made, made), (codes, codes), np.array([0, 0]), (codes, codes), np.array([1, 2]))
    assert both == pytest.approx([1 / 11 + 0, 1 + 5 / 11])
    assert cost((made, made), (codes, codes)) == pytest.approx([0, 0, 0])


def test_ranks_sort_by_the_first_column_first() -> None:
    first, second = np.array([1, 0, 1, 0]), np.array([0, 5, 3, 5])
    assert ranked([first, second], [2, 6]).tolist() == [1, 3, 0, 2]
    assert ranked([first, second], [2, 1 << 62]).tolist() == [1, 3, 0, 2], "what does not fit is left out"
