"""Distance-based linkage: against all pairs by enumeration, by hand, and at the two ends of protection."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler, Levenshtein

import equipoise as eq
from equipoise.attacks import Nearest
from equipoise.data.records import Law, Records

TIE = 1e-9
SIMILARITIES: dict[str, Any] = {
    "jaro-winkler": JaroWinkler.normalized_distance,
    "levenshtein": Levenshtein.normalized_distance,
}


def read(table: pl.DataFrame, keys: list[str], id_: str | None = None) -> Records:
    return Records.of(table, eq.Roles(keys, id=id_))


# --- enumeration --------------------------------------------------------------------------------------------------


def squares(released: pl.Series, original: pl.Series, kind: str) -> Any:
    """Squared distances of all pairs in one variable, originals down, from the definition."""
    if kind in SIMILARITIES:
        one, two = (s.to_list() for s in (original, released))
        apart = process.cdist(
            [x or "" for x in one], [x or "" for x in two], scorer=SIMILARITIES[kind], dtype=np.float64, workers=-1
        )
        gaps = np.array([x is None for x in one])[:, None] | np.array([x is None for x in two])[None, :]
        same = np.array(one, dtype=object)[:, None] == np.array(two, dtype=object)[None, :]
        return np.where(same, 0.0, np.where(gaps, 1.0, apart)) ** 2
    if kind == "nominal":
        one, two = (s.cast(pl.String).fill_null("?missing").to_numpy() for s in (original, released))
        return (one[:, None] != two[None, :]).astype(float)
    one, two = (s.to_physical().cast(pl.Float64).to_numpy() for s in (original, released))
    if kind == "ordinal":
        values = np.unique(np.concatenate([one[~np.isnan(one)], two[~np.isnan(two)]]))
        one, two = (np.where(np.isnan(s), np.nan, np.searchsorted(values, s) / len(values)) for s in (one, two))
    mean, spread = np.nanmean(one), np.nanstd(one)
    unit = spread if kind == "number" else 1.0
    gap = ((np.nan_to_num(one, nan=mean)[:, None] - np.nan_to_num(two, nan=mean)[None, :]) / unit) ** 2
    return gap + (np.isnan(one)[:, None] != np.isnan(two)[None, :]) * (spread / unit) ** 2


def brute(distance: Any) -> tuple[Any, Any, Any]:
    """Risk, rank and margin of every record from the matrix of distances; its own is on the diagonal."""
    own = np.diag(distance)[:, None]
    slack = TIE * own + 1e-13
    closer = (distance < own - slack).sum(axis=1)
    tied = (np.abs(distance - own) <= slack).sum(axis=1)
    others = distance.copy()
    np.fill_diagonal(others, np.inf)
    return np.where(closer == 0, 1 / tied, 0.0), np.minimum(closer + 1, 11), others.min(axis=1) - own[:, 0]


def files(size: int, seed: int, gaps: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Columns of every kind, on coarse grids so that many distances tie, masked by noise and by random changes."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "grid": rng.integers(0, 40, size),
            "fine": rng.normal(size=size) * 1e6 + 5e7,
            "step": rng.choice([1, 2, 5, 10, 20], size),
            "town": rng.choice(list("abcdef"), size),
            "sex": rng.choice(["f", "m"], size, p=[0.7, 0.3]),
            "own": rng.choice([True, False], size),
            "name": _names(size, rng),
            "day": [date(2000, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 90, size)],
        }
    )
    shuffled = table.select(pl.all().gather(pl.Series(rng.permutation(size))))
    masked = table.with_columns(
        grid=table["grid"] + pl.Series(rng.integers(-2, 3, size)),
        fine=table["fine"] + pl.Series(rng.normal(size=size) * 2e5),
        name=_misspelt(table["name"], rng),
        day=table["day"] + pl.Series([timedelta(days=int(d)) for d in rng.integers(-3, 4, size)]),
        **{
            c: pl.when(pl.Series(rng.random(size) < 0.15)).then(shuffled[c]).otherwise(table[c])
            for c in ("step", "town", "sex", "own")
        },
    )
    return (_holes(table, rng), _holes(masked, rng)) if gaps else (table, masked)


def _names(size: int, rng: np.random.Generator) -> list[str]:
    """Names that repeat, of a few syllables, so that many are alike."""
    pool = [
        "".join(rng.choice(["ma", "ri", "jo", "an", "el", "na", "b"], rng.integers(1, 5))) for _ in range(size // 4)
    ]
    return [str(x) for x in rng.choice(pool, size)]


def _misspelt(names: pl.Series, rng: np.random.Generator) -> pl.Series:
    """A letter is left out or put in, in one name of five."""
    dice = rng.random(len(names))
    return pl.Series(
        [n[:-1] if d < 0.1 else n[:1] + "h" + n[1:] if d < 0.2 else n for n, d in zip(names, dice, strict=True)]
    )


def _holes(table: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    return table.with_columns(
        pl.when(pl.Series(rng.random(table.height) < 0.05)).then(None).otherwise(pl.col(c)).alias(c)
        for c in table.columns
    )


KINDS = {"grid": "number", "fine": "number", "step": "ordinal", "day": "number"}
MIXTURES = [
    ("grid",),
    ("grid", "fine"),
    ("town",),
    ("town", "sex", "own"),
    ("step",),
    ("grid", "step"),
    ("grid", "town"),
    ("fine", "town", "sex"),
    ("day", "sex", "own", "step"),
    ("grid", "fine", "step", "town", "sex", "own", "day"),
    ("name",),
    ("name", "grid"),
    ("name", "town", "sex"),
    ("name", "step", "own", "day"),
]


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("columns", MIXTURES, ids="+".join)
def test_all_pairs(columns: tuple[str, ...], gaps: bool) -> None:
    """Every mixture of types, 2,000 records, random ties: the same risk, rank and margin for everybody."""
    original, released = files(2000, len(columns), gaps)
    weights = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.25, 1.0])[: len(columns)]
    kinds = KINDS | {"name": "levenshtein" if gaps else "jaro-winkler"}
    terms = [
        w * squares(released[c], original[c], kinds.get(c, "nominal")) for c, w in zip(columns, weights, strict=True)
    ]
    risk, rank, margin = brute(np.sqrt(sum(terms)))
    given: Any = {"weights": tuple(weights.tolist()), "ordinal": ("step",), "similarity": kinds["name"]}
    attack = Nearest(columns, strings=("name",), **given)
    score = attack.measure(read(released, ["grid"]), read(original, ["grid"]))
    assert score.detail["risk"].to_list() == risk.tolist()
    assert score.detail["rank"].to_list() == rank.tolist()
    np.testing.assert_allclose(score.detail["margin"].to_numpy(), margin, rtol=1e-9, atol=1e-9)
    assert score.value == pytest.approx(float(risk.mean()), rel=1e-12)


def test_all_pairs_by_mahalanobis() -> None:
    original, released = files(2000, 3, False)
    columns = ("grid", "fine", "day", "town")
    one, two = (
        np.stack([t[c].to_physical().cast(pl.Float64).to_numpy() for c in columns[:3]]) for t in (original, released)
    )
    inverse = np.linalg.inv(np.cov(one, bias=True))
    gaps = one.T[:, None, :] - two.T[None, :, :]
    square = np.einsum("abi,ij,abj->ab", gaps, inverse, gaps) + squares(released["town"], original["town"], "nominal")
    risk, rank, _ = brute(np.sqrt(square))
    score = Nearest(columns, metric="mahalanobis").measure(read(released, ["grid"]), read(original, ["grid"]))
    assert score.detail["risk"].to_list() == risk.tolist()
    assert score.detail["rank"].to_list() == rank.tolist()


def test_all_pairs_within_blocks() -> None:
    """Only records of the block are compared; nobody whose own record is in another block can be found."""
    original, released = files(2000, 5, False)
    outside = squares(released["town"], original["town"], "nominal") > 0
    distance = np.sqrt(squares(released["grid"], original["grid"], "number"))
    risk, rank, _ = brute(np.where(outside, 1e9, distance))
    lost = np.diag(outside)
    score = Nearest(("grid",), blocks=("town",)).measure(read(released, ["grid"]), read(original, ["grid"]))
    assert score.detail["risk"].to_list() == np.where(lost, 0.0, risk).tolist()
    assert score.detail["rank"].to_list() == np.where(lost, 11, rank).tolist()
    assert score.baseline == pytest.approx(np.where(lost, 0.0, 1 / (~outside).sum(axis=1)).mean())


@pytest.mark.parametrize("known", [("grid",), ("town", "sex"), ("grid", "town")], ids="+".join)
def test_the_truth_of_the_paper(known: tuple[str, ...]) -> None:
    """The right record is the nearest by all variables: one of those that tie, at random."""
    original, released = files(1000, 8, False)
    every = ("grid", "town", "sex")
    terms = {c: squares(released[c], original[c], KINDS.get(c, "nominal")) for c in every}
    far, seen = np.sqrt(sum(terms.values())), np.sqrt(sum(terms[c] for c in known))

    def best(distance: Any) -> Any:
        least = distance.min(axis=1, keepdims=True)
        return distance <= least * (1 + TIE) + 1e-13

    truth, linked = best(far), best(seen)
    risk = (truth & linked).sum(axis=1) / truth.sum(axis=1) / linked.sum(axis=1)
    score = Nearest(every, known, truth="nearest").measure(read(released, ["grid"]), read(original, ["grid"]))
    np.testing.assert_allclose(score.detail["risk"].to_numpy(), risk, rtol=1e-12)
    part = Nearest(every, known, truth="nearest").measure(read(released.head(700), ["grid"]), read(original, ["grid"]))
    assert part.detail.height == 1000


def test_many_cells_and_a_shuffled_file() -> None:
    """A thousand combinations of categories, and released rows of other people: much has to be searched."""
    rng = np.random.default_rng(2)
    original = pl.DataFrame({c: rng.integers(0, 6, 2000).astype(str) for c in "abcde"} | {"x": rng.normal(size=2000)})
    released = original.sample(fraction=1, shuffle=True, seed=9)
    kinds = dict.fromkeys("abcde", "nominal") | {"x": "number"}
    risk, rank, margin = brute(np.sqrt(sum(squares(released[c], original[c], k) for c, k in kinds.items())))
    score = Nearest(tuple(kinds)).measure(read(released, ["a"]), read(original, ["a"]))
    assert score.detail["risk"].to_list() == risk.tolist()
    assert score.detail["rank"].to_list() == rank.tolist()
    np.testing.assert_allclose(score.detail["margin"].to_numpy(), margin, atol=1e-9)


# --- by hand ------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    """Ages 10, 20, 30, 40 (sd 11.18) released as 10, 26, 24, 40; 30 lies 4 from 26 and 6 from its own 24."""
    original = pl.DataFrame({"age": [10, 20, 30, 40], "sex": ["f", "f", "m", "m"]})
    released = original.with_columns(age=pl.Series([10, 26, 24, 40]))
    alone = Nearest(("age",)).measure(read(released, ["age"]), read(original, ["age"]))
    assert alone.detail["rank"].to_list() == [1, 2, 2, 1]
    assert alone.value == 0.5
    assert alone.baseline == 0.25
    assert alone.number == 2
    assert alone.notes[0] == "Among the two nearest: 1; among the three nearest: 1."
    sd = np.sqrt(125)
    np.testing.assert_allclose(alone.detail["margin"].to_numpy() * sd, [14, -2, -2, 14])
    both = Nearest(("age", "sex")).measure(read(released, ["age"]), read(original, ["age"]))
    assert both.value == 1.0


def test_a_tie_counts_one_over_t() -> None:
    original = pl.DataFrame({"k": ["a", "a", "a", "b"]})
    score = Nearest(("k",)).measure(read(original, ["k"]), read(original, ["k"]))
    assert score.value == pytest.approx(0.5)
    assert score.detail["risk"].to_list() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert score.notes == (
        "Among the two nearest: 0.75; among the three nearest: 1.",
        "3 records share the first place with others: a tie of t counts 1/t.",
    )


def test_ordinal_categories_keep_their_order() -> None:
    """low < mid < high, not as the alphabet has it; text without an order is refused."""
    kind = pl.Enum(["low", "mid", "high"])
    original = pl.DataFrame({"k": pl.Series(["low", "mid", "high"], dtype=kind), "t": ["x", "y", "z"]})
    released = original.with_columns(k=pl.Series(["mid", "mid", "high"], dtype=kind))
    score = Nearest(("k",), ordinal=("k",)).measure(read(released, ["t"]), read(original, ["t"]))
    assert score.detail["risk"].to_list() == [0.5, 0.5, 1.0]
    with pytest.raises(eq.DataError, match="no order"):
        Nearest(("t",), ordinal=("t",)).measure(read(released, ["t"]), read(original, ["t"]))


# --- the two ends, order, and what an intruder knows ---------------------------------------------------------------


def test_an_unmasked_file_gives_away_everybody_who_is_unique(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    records = eq.read(people, people_roles)
    sizes = people.select(pl.len().over("sex", "area", "age", "salary").alias("n"))["n"]
    score = Nearest().measure(records, records)
    assert score.detail["risk"].to_list() == (1 / sizes).to_list()
    assert score.by_record().columns == ["person", "risk"]


def test_independent_files_give_the_baseline() -> None:
    rng = np.random.default_rng(11)
    size, found = 4000, []
    for _ in range(8):
        one, two = (
            pl.DataFrame({"x": rng.normal(size=size), "y": rng.normal(size=size), "k": rng.choice(list("abc"), size)})
            for _ in range(2)
        )
        score = Nearest(("x", "y", "k")).measure(read(two, ["k"]), read(one, ["k"]))
        assert score.interval is not None
        assert score.interval[0] <= 1 / size <= score.interval[1]
        found.append(score.number)
    assert score.baseline == pytest.approx(1 / size, rel=1e-12)
    assert abs(sum(found) - 8) < 4 * np.sqrt(8)


def test_the_order_of_rows_changes_nothing() -> None:
    """Either file moved by itself, linked by id: the same risk, rank and margin for the same person."""
    original, released = (t.with_row_index("id") for t in files(600, 4, True))
    attack = Nearest(("grid", "fine", "town", "sex"), ("grid", "town"))
    plain = attack.measure(read(released, ["sex"], "id"), read(original, ["sex"], "id"))
    moved = attack.measure(
        read(released.sample(fraction=1, shuffle=True, seed=1), ["sex"], "id"),
        read(original.sample(fraction=1, shuffle=True, seed=2), ["sex"], "id"),
    )
    assert moved.value == pytest.approx(plain.value, rel=1e-12)
    assert moved.detail.sort("id").equals(plain.detail)


def test_recoded_categories_are_known_by_their_labels() -> None:
    """Who knows the town knows the region: by the law, or because every town has one region."""
    rng = np.random.default_rng(0)
    town = rng.choice(["a1", "a2", "b1", "b2"], 40)
    original = pl.DataFrame({"town": town, "x": np.arange(40.0)})
    released = original.with_columns(town=original["town"].str.slice(0, 1))
    score = Nearest(("town",)).measure(read(released, ["town"]), read(original, ["town"]))
    sizes = released.select(pl.len().over("town").alias("n"))["n"]
    assert score.detail["risk"].to_list() == (1 / sizes).to_list()
    records = read(released, ["town"])
    perturbed = records.with_frame(records.frame, Law("pram", ("town",), "moved at random"))
    assert Nearest(("town",)).measure(perturbed, read(original, ["town"])).value == pytest.approx(1 / 40)


def test_a_sweep_over_what_is_known(people_records: eq.Records) -> None:
    table = Nearest().sweep(people_records, people_records, 2)
    assert table.height == 4 + 6
    assert table["value"].is_sorted(descending=True)
    again = Nearest(known=("age", "salary")).measure(people_records, people_records)
    assert table.filter(known="age, salary")["value"].item() == again.value


def test_synthetic_files_are_nobody() -> None:
    records = read(pl.DataFrame({"k": ["a", "b"]}), ["k"])
    made = records.with_frame(records.frame, Law("synthesize", ("k",), "drawn", {"synthetic": "full"}))
    score = Nearest().measure(made, records)
    assert np.isnan(score.value)
    assert "Not applicable" in score.notes[0]


@pytest.mark.parametrize(
    "bad",
    [
        {"metric": "cosine"},
        {"truth": "any"},
        {"weights": (1.0,)},
        {"variables": ("a", "b"), "weights": (1.0,)},
        {"variables": ("a",), "weights": (0.0,)},
        {"variables": ()},
        {"known": ()},
        {"variables": ("a",), "known": ("b",)},
        {"ordinal": ("a",), "nominal": ("a",)},
        {"strings": ("a",), "nominal": ("a",)},
        {"similarity": "soundex"},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Nearest(**bad)


def test_files_that_do_not_fit_are_refused() -> None:
    one, two = read(pl.DataFrame({"k": [1, 2]}), ["k"]), read(pl.DataFrame({"k": [1, 2, 3]}), ["k"])
    assert Nearest().measure(one, two).notes[0].startswith("Estimated")
    with pytest.raises(eq.RolesError, match="agee"):
        Nearest(("agee",)).measure(one, one)


# --- strings, dates, and files of other people ------------------------------------------------------------------------


def test_all_pairs_by_two_strings_and_the_paper_s_truth() -> None:
    original, released = files(700, 6, True)
    original, released = (t.with_columns(other=t["name"].str.reverse()) for t in (original, released))
    terms = {c: squares(released[c], original[c], "jaro-winkler") for c in ("name", "other")}
    terms["grid"] = squares(released["grid"], original["grid"], "number")
    risk, rank, margin = brute(np.sqrt(sum(terms.values())))
    attack = Nearest(tuple(terms), strings=("name", "other"))
    score = attack.measure(read(released, ["grid"]), read(original, ["grid"]))
    assert score.detail["risk"].to_list() == risk.tolist()
    assert score.detail["rank"].to_list() == rank.tolist()
    np.testing.assert_allclose(score.detail["margin"].to_numpy(), margin, atol=1e-9)
    far, seen = np.sqrt(sum(terms.values())), np.sqrt(terms["name"])
    truth, linked = (d <= d.min(axis=1, keepdims=True) * (1 + TIE) + 1e-13 for d in (far, seen))
    expected = (truth & linked).sum(axis=1) / truth.sum(axis=1) / linked.sum(axis=1)
    known = Nearest(tuple(terms), ("name",), strings=("name", "other"), truth="nearest")
    found = known.measure(read(released, ["grid"]), read(original, ["grid"]))
    np.testing.assert_allclose(found.detail["risk"].to_numpy(), expected, rtol=1e-12)


def test_a_misspelt_name_is_found_by_its_similarity() -> None:
    original = pl.DataFrame({"name": ["Ricardo", "Manel", "Joana"]})
    released = pl.DataFrame({"name": ["Ricard", "Manuel", "Joanna"]})
    assert Nearest(("name",)).measure(read(released, ["name"]), read(original, ["name"])).value == pytest.approx(1 / 3)
    alike = Nearest(("name",), strings=("name",)).measure(read(released, ["name"]), read(original, ["name"]))
    assert alike.value == 1.0
    with pytest.raises(eq.DataError, match="does not hold text"):
        Nearest(("age",), strings=("age",)).measure(*[read(pl.DataFrame({"age": [1, 2]}), ["age"])] * 2)


def test_a_date_is_its_midnight() -> None:
    """A Date in one file, a Datetime in the other, in other units; spans and points do not mix."""
    days = pl.DataFrame({"day": [date(2000, 1, d) for d in (1, 5, 9)], "k": ["a", "b", "c"]})
    for unit in ("ms", "us", "ns"):
        later = days.with_columns(pl.col("day").cast(pl.Datetime(unit)) + pl.duration(hours=30))  # type: ignore[arg-type]
        score = Nearest(("day",)).measure(read(later, ["k"]), read(days, ["k"]))
        assert score.value == 1.0
        equal = days.with_columns(pl.col("day").cast(pl.Datetime(unit)))  # type: ignore[arg-type]
        assert Nearest(("day",), nominal=("day",)).measure(read(equal, ["k"]), read(days, ["k"])).value == 1.0
    spans = days.with_columns(day=pl.Series([timedelta(days=d) for d in (1, 2, 3)]))
    with pytest.raises(eq.DataError, match="different kinds"):
        Nearest(("day",)).measure(read(spans, ["k"]), read(days, ["k"]))


def test_people_in_one_file_only() -> None:
    """Ids in part the same: people in both are asked about, all released records are in the way."""
    original, released = (t.with_row_index("id") for t in files(900, 9, True))
    original, released = original.head(600), released.tail(700).sample(fraction=1, shuffle=True, seed=3)
    score = Nearest(("grid", "town", "name"), strings=("name",)).measure(
        read(released, ["sex"], "id"), read(original.reverse(), ["sex"], "id")
    )
    released = released.sort("id")
    terms = [
        squares(released[c], original[c], kind)
        for c, kind in {"grid": "number", "town": "nominal", "name": "jaro-winkler"}.items()
    ]
    distance = np.sqrt(sum(terms))[200:]
    own = np.diag(distance)[:, None]
    slack = TIE * own + 1e-13
    closer, tied = (distance < own - slack).sum(axis=1), (np.abs(distance - own) <= slack).sum(axis=1)
    assert score.detail["id"].to_list() == list(range(599, 199, -1))
    assert score.detail.sort("id")["risk"].to_list() == np.where(closer == 0, 1 / tied, 0.0).tolist()
    assert score.baseline == pytest.approx(1 / 700, rel=1e-12)
    with pytest.raises(eq.EngineError, match="nothing in common"):
        Nearest(("grid",)).measure(read(released.tail(5), ["sex"], "id"), read(original.head(5), ["sex"], "id"))


def test_nobody_can_tell_whose_record_is_whose() -> None:
    """Files of other heights without ids: by the nearest of all variables, or 1/t as an upper bound; said first."""
    original, released = files(400, 7, False)
    released = released.head(300)
    both = read(released, ["grid"]), read(original, ["grid"])
    every = ("grid", "town", "sex")
    guess = Nearest(every, ("grid", "town")).measure(*both)
    paper = Nearest(every, ("grid", "town"), truth="nearest").measure(*both)
    assert guess.notes[0].startswith("Estimated: nobody can tell")
    assert guess.value == pytest.approx(paper.value, rel=1e-12)
    bound = Nearest(every).measure(*both)
    terms = [squares(released[c], original[c], KINDS.get(c, "nominal")) for c in every]
    distance = np.sqrt(sum(terms))
    tied = (distance <= distance.min(axis=1, keepdims=True) * (1 + TIE) + 1e-13).sum(axis=1)
    assert bound.detail["risk"].to_list() == pytest.approx((1 / tied).tolist())
    assert "upper bound" in bound.notes[0]
    assert bound.detail["rank"].null_count() == 400
