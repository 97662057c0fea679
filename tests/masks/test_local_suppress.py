"""Local suppression, blanks as wildcards or as values: large enough classes, few values, and whose is a secret draw."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.ground.randomness import Draws
from equipoise.masks import LocalSuppress
from equipoise.recipe import catalogue
from equipoise.rules import AnySubset, MinCount

wildcard = partial(LocalSuppress, guard="wildcard")
DATA = os.environ.get("EQUIPOISE_DATA")
KEYS = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
ROWS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b", "c"])] * 3), min_size=4, max_size=25)


def read(rows: Any, missing: Any = "category", **more: Any) -> eq.Records:
    frame = pl.DataFrame(rows, schema=dict.fromkeys("pqr", pl.String), orient="row")
    return eq.read(frame, eq.Roles([*"pqr"], missing=missing, **more))


def survey(records: int = 600, seed: int = 2) -> eq.Records:
    """Skewed keys and a value that nobody may touch."""
    draw = np.random.default_rng(seed)
    keys = {f"k{size}": np.minimum(draw.geometric(0.4, records), size) for size in (2, 3, 5, 9)}
    frame = pl.DataFrame(keys | {"id": np.arange(records), "pay": draw.normal(size=records)})
    return eq.read(frame, eq.Roles([*keys], id="id"))


def blanks(released: eq.Records) -> dict[str, int]:
    table = released.collect(*released.roles.keys)
    return {key: table[key].null_count() for key in table.columns}


def classes(rows: list[Any]) -> list[int]:
    """The records that match each, pair by pair."""
    return [sum(all(a == b or None in (a, b) for a, b in zip(r, s, strict=True)) for s in rows) for r in rows]


def fitting(rows: list[Any], after: list[Any]) -> list[int]:
    """For what is left of each record, the records that fit it as they were: missing values fit only each other."""
    return [
        sum(all(new in (None, b) or (a is None and b is None) for a, new, b in zip(r, n, s, strict=True)) for s in rows)
        for r, n in zip(rows, after, strict=True)
    ]


@given(rows=ROWS, k=st.integers(1, 4), shared=st.booleans())
def test_no_class_is_too_small_and_none_gets_smaller(rows: list[Any], k: int, shared: bool) -> None:
    """The law: suppression never lowers a class in which blanks match; and what the rule asked for holds."""
    records = read(rows)
    done = wildcard(MinCount(k), shared=shared).apply(records, Draws(1))
    after = done.collect().rows()
    assert min(classes(after)) >= k
    assert all(new >= old for new, old in zip(classes(after), classes(rows), strict=True))
    assert all(b in (a, None) for r, s in zip(rows, after, strict=True) for a, b in zip(r, s, strict=True))
    assert done.roles == records.roles
    assert shared or min(fitting(rows, after)) >= k
    small = sum(after.count(row) < k for row in after)
    assert eq.risk.KAnonymity(k).measure(done, records).number == small


@given(rows=ROWS, blanked=st.sets(st.tuples(st.integers(0, 24), st.integers(0, 2))))
def test_blanking_anything_never_lowers_a_class(rows: list[Any], blanked: set[tuple[int, int]]) -> None:
    after = [tuple(None if (i, j) in blanked else v for j, v in enumerate(row)) for i, row in enumerate(rows)]
    old, new = (eq.count(read(found, "any")) for found in (rows, after))
    sizes = [dict(zip(cells.table.select("p", "q", "r").rows(), cells.alike[0], strict=True)) for cells in (old, new)]
    assert all(sizes[1][s] >= sizes[0][r] for r, s in zip(rows, after, strict=True))


@given(rows=ROWS, m=st.integers(1, 2), k=st.integers(1, 4))
def test_every_few_keys(rows: list[Any], m: int, k: int) -> None:
    done = wildcard(AnySubset(m, k) | MinCount(2)).apply(read(rows, "any"), Draws(1))
    cells = eq.count(done)
    assert eq.risk.KAnonymity(k, m).measure(cells, cells).number == 0
    assert eq.risk.KAnonymity(2).measure(cells, cells).number == 0


def test_only_keys_change() -> None:
    records = survey()
    done = wildcard(MinCount(3)).apply(records, Draws(1))
    assert_frame_equal(done.collect("id", "pay"), records.collect("id", "pay"))
    small = (eq.risk.KAnonymity(3).measure(records, records).by_record()["risk"] == 1).to_numpy()
    lost = np.any([done.collect(key)[key].is_null() for key in records.roles.keys], axis=0)
    assert (lost == small).all()  # everybody in a small class, and nobody else
    assert sum(blanks(done).values()) == done.history[0].detail.cost


def test_a_dear_key_is_left_alone() -> None:
    records = survey()
    plain = blanks(wildcard(MinCount(3)).apply(records, Draws(1)))
    dearest = max(plain, key=lambda key: plain[key])
    dear = blanks(wildcard(MinCount(3), {dearest: 1000}).apply(records, Draws(1)))
    assert plain[dearest] > 0
    assert dear[dearest] == 0
    assert sum(dear.values()) >= sum(plain.values())


def test_caps_hold_or_what_is_lacking_is_told() -> None:
    records = survey()
    plain = blanks(wildcard(MinCount(3)).apply(records, Draws(1)))
    most = max(plain.values()) - 5
    capped = blanks(wildcard(MinCount(3), max_per_key=most).apply(records, Draws(1)))
    assert max(capped.values()) <= most
    free = blanks(wildcard(MinCount(3), max_per_key={"k9": 0}).apply(records, Draws(1)))
    assert free["k9"] == 0
    with pytest.raises(eq.InfeasibleError, match=r"[1-9]\d* more values must be blanked at least, \d+ of them of 'k"):
        wildcard(MinCount(3), max_per_key=1).apply(records, Draws(1))
    with pytest.raises(eq.InfeasibleError, match="No way was found within max_per_key"):
        wildcard(MinCount(3), max_per_key=0, shared=True).apply(records, Draws(1))


def test_too_few_records() -> None:
    with pytest.raises(eq.InfeasibleError, match="The file has 2 records: no class can have 3"):
        wildcard(MinCount(3)).apply(read([("a", "a", "a"), ("b", "b", "b")]), Draws(1))


def test_row_order_is_immaterial_and_the_record_a_secret() -> None:
    """Same seed, same records blanked in any order; another seed, others of several equal ones."""
    rows = [("a", "a", "a")] * 30 + [("a", "a", "b")] * 4
    frame = pl.DataFrame(rows, schema=[*"pqr"], orient="row").with_row_index("id")
    roles = eq.Roles([*"pqr"], id="id")
    mask = wildcard(MinCount(5), max_per_key=4)
    helped = wildcard(MinCount(5), shared=True)
    found = [helped.apply(eq.read(frame, roles), Draws(seed)).collect() for seed in (1, 1, 2, 3, 4)]
    assert_frame_equal(found[0], found[1])
    assert len({tuple(table.filter(pl.col("r").is_null())["id"]) for table in found}) > 1
    for one in (mask, helped):
        moved = one.apply(eq.read(frame.sample(fraction=1, shuffle=True, seed=3), roles), Draws(1))
        assert_frame_equal(moved.collect().sort("id"), one.apply(eq.read(frame, roles), Draws(1)).collect())


def test_shared_blanks_say_who_leans_on_them() -> None:
    rows = [(f"{i}", f"{i % 7}", f"{i % 3}") for i in range(40)]
    done = wildcard(MinCount(3), shared=True).apply(read(rows), Draws(1))
    assert sum(blanks(done).values()) <= 6
    assert "38 of 40 records in small classes rely on blanks in other records" in done.history[0].words
    alone = wildcard(MinCount(3)).apply(read(rows), Draws(1))
    assert "rely" not in alone.history[0].words
    assert "as if nobody could tell why it is missing" in alone.history[0].words


def test_labels_stay_and_codes_of_missing_values_go() -> None:
    """A code beside a null would show which nulls were there before."""
    frame = pl.DataFrame({"sex": [1, 1, 1, 2], "age": [30, 30, None, 30]})
    told = Labels(
        {"sex": Column("Sex", ((1, "man"), (2, "woman"))), "age": Column("Age", missing=((99, 99),))},
        gaps=pl.DataFrame({"age": [None, None, 99, None]}),
    )
    records = eq.Records.of(frame, eq.Roles(["sex", "age"]), labels=told)
    done = wildcard(MinCount(2)).apply(records, Draws(1))
    assert done.labels.columns == told.columns
    assert done.labels.gaps is not None
    assert "age" not in done.labels.gaps.columns


def test_bits_and_a_map() -> None:
    """In a sweep like other masks: blanks cost bits, more of them for larger classes."""
    records = survey()
    recipes = [eq.Recipe([LocalSuppress(MinCount(k))]) for k in (1, 2, 5)]
    trials = eq.sweep(records, recipes, [eq.risk.KAnonymity(2), eq.utility.Entropy()])
    risk, kept = ([trial.scores[name].value for trial in trials] for name in ("k_anonymity(k=2)", "entropy"))
    assert risk[0] > 0
    assert risk[1:] == [0, 0]
    assert kept[0] > kept[1] > kept[2] > 0
    assert kept[0] == pytest.approx(eq.utility.Entropy().measure(records, records).value)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("local-suppress:min-count:3", LocalSuppress(MinCount(3), guard="identical")),
        ("local-suppress:min-count:3,guard=wildcard", wildcard(MinCount(3))),
        ("local-suppress:any-subset(2,5)", LocalSuppress(AnySubset(2, 5))),
        ("local-suppress:min-count:3,max_per_key=5", LocalSuppress(MinCount(3), max_per_key=5)),
        (
            "local-suppress:min-count:3,importance=age=2.5+sex=1,max_per_key=age=5,shared=true,guard=wildcard",
            LocalSuppress(MinCount(3), {"age": 2.5, "sex": 1}, {"age": 5}, shared=True, guard="wildcard"),
        ),
        ("local-suppress:min-count:3,importance=age=2", LocalSuppress(MinCount(3), [("age", 2.0)])),  # type: ignore[arg-type]
    ],
)
def test_text_forms(text: str, mask: LocalSuppress) -> None:
    assert catalogue.parse(text, "mask") == mask


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": eq.rules.Zero()},
        {"rule": MinCount},
        {"rule": MinCount(3) & AnySubset(1, 2)},
        {"importance": {"age": 0}},
        {"importance": {"age": float("nan")}},
        {"importance": ["age"]},
        {"importance": 3},
        {"importance": [("age", 1), ("age", 2)]},
        {"shared": True},
        {"guard": "blank"},
        {"max_per_key": -1},
        {"max_per_key": 2.5},
        {"max_per_key": {"age": True}},
    ],
)
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        LocalSuppress(**({"rule": MinCount(3)} | wrong))


def test_keys_that_are_not_there() -> None:
    with pytest.raises(eq.RolesError, match=r"'k99' is no key\. Did you mean 'k9'"):
        wildcard(MinCount(3), {"k99": 2}).apply(survey(), Draws(1))
    with pytest.raises(eq.RolesError, match="no keys to blank"):
        wildcard(MinCount(3)).apply(eq.read(pl.DataFrame({"p": [1, 2]}), eq.Roles()), Draws(1))


@pytest.mark.skipif(not DATA, reason="testdata was not suppressed: set EQUIPOISE_DATA.")
@pytest.mark.parametrize(("k", "small", "peer", "fewest"), [(2, 157, 157, 157), (3, 281, 293, 283), (5, 458, 500, 461)])
def test_testdata(k: int, small: int, peer: int, fewest: int) -> None:
    """sdcMicro's localSuppression blanks 157, 293 and 500 values; the fewest are a sum over records."""
    frame = pl.read_csv(Path(str(DATA)) / "sdcmicro" / "testdata.csv")
    records = eq.read(frame, eq.Roles(KEYS, weight="sampling_weight"))
    assert eq.risk.KAnonymity(k).measure(records, records).number == small
    done = wildcard(MinCount(k)).apply(records, Draws(1))
    assert sum(blanks(done).values()) == fewest <= peer
    shared = wildcard(MinCount(k), shared=True).apply(records, Draws(1))
    assert sum(blanks(shared).values()) == 7 * (k - 1)
    for released in (done, shared):
        table = released.collect(*KEYS)
        alone = table.filter(pl.len().over(KEYS) < k).height
        assert eq.risk.KAnonymity(k).measure(released, records).number == alone > 0


# --- rows that are identical ---------------------------------------------------------------------------------------


def smallest(released: eq.Records, keys: Any = None) -> int:
    table = released.collect(*(keys or released.roles.keys))
    return int(table.group_by(table.columns).len()["len"].min())  # type: ignore[arg-type]


@given(rows=ROWS, k=st.integers(1, 4))
def test_every_released_row_is_identical_to_others(rows: list[Any], k: int) -> None:
    """A blank is a value, so is one that came with the data: only the rows themselves are compared."""
    records = read(rows)
    done = LocalSuppress(MinCount(k)).apply(records, Draws(1))
    after = done.collect().rows()
    assert min(after.count(row) for row in after) >= k
    assert all(b in (a, None) for r, s in zip(rows, after, strict=True) for a, b in zip(r, s, strict=True))
    assert done.roles == records.roles
    lost = sum(b is None for row in after for b in row) - sum(a is None for row in rows for a in row)
    assert lost == done.history[0].detail.cost == done.history[0].detail.bound


def test_the_guard_in_law_and_words() -> None:
    law = LocalSuppress(MinCount(3)).apply(survey(), Draws(1)).history[0]
    assert law.parameters["guard"] == "identical"
    assert law.words.endswith("every released row is identical to at least 2 others; a blank counts as a value")
    assert 0 < law.detail.bound <= law.detail.cost
    assert wildcard(MinCount(3)).suppression_law(("p",)).parameters == {"rule": "min_count", "guard": "wildcard"}
    assert "4 others on any 2 keys" in LocalSuppress(AnySubset(2, 5)).words()
    with pytest.raises(eq.ParameterError, match="only guard='wildcard' does"):
        LocalSuppress(MinCount(3), shared=True)


def test_on_any_keys_with_importance() -> None:
    records = survey(300)
    done = LocalSuppress(AnySubset(2, 4), {"k9": 50}).apply(records, Draws(1))
    pairs = [(a, b) for a in records.roles.keys for b in records.roles.keys if a < b]
    assert min(smallest(done, pair) for pair in pairs) >= 4
    assert LocalSuppress(MinCount(3), {"k9": 1000}).apply(records, Draws(1)).collect("k9")["k9"].null_count() == 0


def test_identical_rows_within_caps() -> None:
    records = survey(200)
    most = max(blanks(LocalSuppress(MinCount(3)).apply(records, Draws(1))).values()) - 2
    assert max(blanks(LocalSuppress(MinCount(3), max_per_key=most).apply(records, Draws(1))).values()) <= most
    with pytest.raises(eq.InfeasibleError, match=r"max_per_key is too small: [1-9]\d* more values must be blanked"):
        LocalSuppress(MinCount(3), max_per_key=0).apply(records, Draws(1))
    toy = read([("a", "a", "a")] * 2 + [("b", "b", "b")] * 2 + [("a", "b", "b")])
    with pytest.raises(eq.InfeasibleError, match="No way was found within max_per_key to make every released row"):
        LocalSuppress(MinCount(2), max_per_key=1).apply(toy, Draws(1))
    with pytest.raises(eq.InfeasibleError, match="The file has 2 records: no class can have 3"):
        LocalSuppress(MinCount(3)).apply(read([("a", "a", "a"), ("b", "b", "b")]), Draws(1))


def test_who_is_lent_is_a_secret_and_row_order_is_immaterial() -> None:
    """One of thirty equal records is lent to the one that is alone: by the seed, in any order of rows the same."""
    rows = [("a", "a", "a")] * 30 + [("a", "a", "b")]
    frame = pl.DataFrame(rows, schema=[*"pqr"], orient="row").with_row_index("id")
    for roles in (eq.Roles([*"pqr"], id="id"), eq.Roles([*"pqr"])):
        tables = [
            LocalSuppress(MinCount(2)).apply(eq.read(frame, roles), Draws(seed)).collect() for seed in (1, 1, 2, 3)
        ]
        lent = [tuple(table.filter(pl.col("r").is_null())["id"]) for table in tables]
        assert lent[0] == lent[1]
        assert len(set(lent)) > 1
        assert all(len(ids) == 2 and 30 in ids for ids in lent)
        moved = eq.read(frame.sample(fraction=1, shuffle=True, seed=3), roles)
        assert_frame_equal(LocalSuppress(MinCount(2)).apply(moved, Draws(1)).collect().sort("id"), tables[0])


def test_one_null_and_one_zero() -> None:
    """NaN beside a blank, or -0.0 beside 0.0, would tell identical rows apart."""
    frame = pl.DataFrame({"x": [float("nan"), 1.5, 0.0, -0.0, 2.0, 2.0]})
    done = LocalSuppress(MinCount(2)).apply(eq.read(frame, eq.Roles(["x"])), Draws(1)).collect()["x"]
    assert str(done.to_list()) == "[None, None, 0.0, 0.0, 2.0, 2.0]"


def test_a_dwelling_is_blank_for_all_members_or_for_none() -> None:
    draw = np.random.default_rng(4)
    home = np.sort(draw.integers(0, 120, 400))
    roof, area = np.minimum(draw.geometric(0.5, 120), 5), draw.integers(0, 4, 120)
    frame = pl.DataFrame({"home": home, "roof": roof[home], "area": area[home], "age": draw.integers(0, 6, 400)})
    for known in (frame, frame.with_columns(pl.when(pl.int_range(400) % 50 > 0).then("roof").alias("roof"))):
        done = LocalSuppress(MinCount(3)).apply(
            eq.read(known, eq.Roles(["roof", "area", "age"], household="home")), Draws(1)
        )
        assert smallest(done) >= 3
        nulls = done.collect().group_by("home").agg(pl.col("roof", "area").is_null().n_unique())
        assert nulls.select(pl.max_horizontal("roof", "area").max()).item() == 1


@pytest.mark.skipif(not DATA, reason="testdata and adult were not suppressed: set EQUIPOISE_DATA.")
@pytest.mark.parametrize(("path", "keys", "k", "recoded", "wild"), [
    ("sdcmicro/testdata.csv", KEYS, 3, 471, 283), ("arx/adult.csv", 7, 12, 32_302, 23_164),
])  # fmt: skip
def test_fewer_blanks_than_local_recoding(path: str, keys: Any, k: int, recoded: int, wild: int) -> None:
    """LocalRecode with one step to "*" took 471 and 32,302 values; wildcards, which protect less, 283 and 23,164."""
    sign = ";" if "adult" in path else ","
    frame = pl.read_csv(Path(str(DATA)) / path, separator=sign)
    columns = tuple(frame.columns[:keys]) if isinstance(keys, int) else keys
    done = LocalSuppress(MinCount(k)).apply(eq.read(frame, eq.Roles(columns)), Draws(1))
    assert smallest(done) >= k
    assert wild < done.history[0].detail.bound < sum(blanks(done).values()) < 0.85 * recoded


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_many_small_cells(missing: float) -> None:
    """So many that sets of keys are tried on a part of them first; classes are counted by another engine."""
    draw, records = np.random.default_rng(5), 140_000
    table = pl.DataFrame({f"k{place}": draw.integers(0, 12, records) for place in range(6)})
    table = table.with_columns(pl.when(pl.Series(draw.random(records) >= missing)).then(pl.all()).name.keep())
    done = LocalSuppress(MinCount(3)).apply(eq.read(table, eq.Roles(table.columns)), Draws(1)).collect()
    assert done.group_by(table.columns).len()["len"].min() >= 3  # type: ignore[operator]
    assert all((done[key].is_null() | (done[key] == table[key])).all() for key in table.columns)


def test_more_cells_than_a_small_counter_holds() -> None:
    """A class of 2^16 + 1 records is found, although its count ends in 1."""
    table = pl.DataFrame({"k": np.arange((1 << 16) + 1)})
    done = LocalSuppress(MinCount(3)).apply(eq.read(table, eq.Roles(["k"])), Draws(1)).collect()
    assert done["k"].null_count() == table.height
