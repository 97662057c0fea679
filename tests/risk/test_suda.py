"""Minimal sample uniques against their definition, tried set by set and record by record."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise.risk._suda as search
from equipoise.ground.errors import ParameterError
from equipoise.ground.packed_keys import Cube, code, tally
from equipoise.risk._suda import dis, dis_scores, elliot, ihsn, minimal_uniques

Row = tuple[int | None, ...]
Sets = set[tuple[tuple[int, ...], Row]]


@st.composite
def files(draw: st.DrawFn) -> list[Row]:
    keys = draw(st.integers(1, 5))
    value = st.one_of(st.none(), st.integers(0, draw(st.integers(0, 5))))
    return draw(st.lists(st.tuples(*[value] * keys), min_size=1, max_size=25))


def cube_of(rows: Sequence[Row]) -> Cube:
    columns = [pl.Series(f"k{i}", values, dtype=pl.Int64) for i, values in enumerate(zip(*rows, strict=True))]
    return tally([code(column) for column in columns])


def enumerated(rows: Sequence[Row], most: int, wild: bool) -> Sets:
    """By the definition: unique on the set, and on no part of it."""

    def matches(one: Row, two: Row, keys: tuple[int, ...]) -> bool:
        return all(one[k] == two[k] or (wild and None in (one[k], two[k])) for k in keys)

    found: Sets = set()
    for row in rows:
        alone: list[tuple[int, ...]] = []
        for size in range(1, most + 1):
            for keys in combinations(range(len(row)), size):
                if any(set(less) <= set(keys) for less in alone):
                    continue
                if sum(matches(row, other, keys) for other in rows) == 1:
                    alone.append(keys)
        found |= {(keys, row) for keys in alone}
    return found


def searched(cube: Cube, most: int, wild: Sequence[int] = ()) -> Sets:
    cells = list(
        zip(*(axis.gather(codes).to_list() for axis, codes in zip(cube.axes, cube.codes, strict=True)), strict=True)
    )
    return {(places, cells[cell]) for places, found in minimal_uniques(cube, most, wild) for cell in found}


@given(files(), st.integers(1, 5), st.booleans())
def test_the_search_is_the_definition(rows: list[Row], most: int, wild: bool) -> None:
    keys = len(rows[0])
    assert searched(cube_of(rows), most, range(keys) if wild else ()) == enumerated(rows, min(most, keys), wild)


@given(files(), st.integers(0, 40), st.integers(0, 4))
def test_room_changes_only_the_way(rows: list[Row], kept: int, room: int) -> None:
    """Margins that are not kept, and margins that are never dense, give the same sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MAX_MARGIN_CELLS", kept)
        patch.setattr(search, "MAX_PLACES_PER_RECORD", room)
        narrow = searched(cube_of(rows), len(rows[0]))
    assert narrow == searched(cube_of(rows), len(rows[0]))


def test_more_keys_than_fit_an_integer() -> None:
    """Eleven keys of about sixty values are more combinations than 62 bits hold."""
    draw = np.random.default_rng(1)
    rows: list[Row] = [tuple(row) for row in draw.integers(0, 200, (65, 11)).tolist()]
    assert searched(cube_of(rows), 2) == enumerated(rows, 2, wild=False)
    assert searched(cube_of(rows), 11) == searched(cube_of(rows), 3)  # all pairs of keys tell them apart here


def test_cells_without_records_are_nobody() -> None:
    whole = cube_of([(1, 1), (1, 2), (2, 1), (2, 2)])
    emptied = Cube(whole.axes, whole.codes, np.array([1, 0, 1, 3]), np.ones(4))
    assert searched(emptied, 2) == {((0,), (1, 1)), ((0, 1), (2, 1))}


def test_too_many_sets_are_refused() -> None:
    cube = cube_of([tuple(range(40))])
    with pytest.raises(ParameterError, match=r"of up to 40 of 40 keys are 1,099,511,627,775, each over 1 cells"):
        list(minimal_uniques(cube, 40))
    assert len(list(minimal_uniques(cube, 1))) == 40


@pytest.mark.parametrize("keys", [1, 2, 5, 9])
def test_weights_in_closed_form(keys: int) -> None:
    assert elliot(keys, keys).tolist() == [math.factorial(keys - k) for k in range(1, keys + 1)]
    known = [(2 ** (keys - k) - 1) / math.comb(keys, k) for k in range(1, keys + 1)]
    assert ihsn(keys, keys) == pytest.approx(known)


def test_dis_is_a_number_whatever_the_counts() -> None:
    assert dis(0, 0, 0.5) == 0
    assert dis(0, 10, 0.5) == 0
    assert dis(5, 0, 0.01) == 1
    assert dis(5, 10, 1.0) == 1
    scores = np.array([0.0, 1e-30, 1.0, 1e60])
    for keys in (1, 8, 28, 60):
        for rate in (1e-12, 0.5, 1.0):
            found = dis_scores(scores, 3, rate, keys)
            assert np.isfinite(found).all()
            assert ((found >= 0) & (found <= 1)).all()
            assert (np.diff(found) >= 0).all()
    assert dis_scores(np.zeros(3), 0, 0.0, 4).tolist() == [0, 0, 0]
