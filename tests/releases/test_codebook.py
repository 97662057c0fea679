"""The codebook: what it says per variable, what it must not say, and that its formulas put estimates right."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.data.records import Law, Records
from equipoise.recipe.catalogue import methods
from equipoise.releases.codebook import Codebook, CodebookVariable, codebook
from equipoise.releases.valid_uses import Comparison, effect_of, entries

N = 20_000
SEED = 8


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    x = rng.normal(50, 10, N)
    return pl.DataFrame(
        {
            "x": x,
            "y": 2 * x + rng.normal(0, 15, N),
            "kind": rng.choice(["a", "b", "c", "d"], N, p=[0.5, 0.3, 0.15, 0.05]),
            "age": rng.integers(0, 100, N),
            "who": [f"name {i}" for i in range(N)],
        }
    )


def told(table: pl.DataFrame, *masks: Any, **roles: Any) -> tuple[Codebook, pl.DataFrame]:
    given = {"keys": ["kind"], "numeric": ["x"]} | roles
    records = eq.read(table, eq.Roles(**given))
    released = eq.Recipe(masks, SEED).run(records)
    return codebook(released, records, title="t", file="data.csv"), released.collect()


def of(book: Codebook, name: str) -> CodebookVariable:
    return next(v for v in book.variables if v.name == name)


def number_after(texts: tuple[str, ...], start: str) -> float:
    """The number that a formula has after these words."""
    found = next(text for text in texts if text.startswith(start))
    return float(re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", found[len(start) :])[0])


# --- the formulas put it right ------------------------------------------------------------------------------------


def test_noise_can_be_corrected_for(table: pl.DataFrame) -> None:
    """Variance, correlation and slope from the noisy column, corrected as the codebook says, are the original ones."""
    book, released = told(table, eq.masks.Noise("x", 0.5))
    adjust = of(book, "x").changes[0].adjust
    added = number_after(adjust, "variance = s^2 - ")
    assert of(book, "x").added_variance == pytest.approx(added, rel=1e-6)
    x, y, noisy = (frame[c].to_numpy() for frame, c in ((table, "x"), (table, "y"), (released, "x")))
    s2 = noisy.var()
    assert s2 - added == pytest.approx(x.var(), rel=0.03)
    assert noisy.var() > 1.2 * x.var()
    r = np.corrcoef(noisy, y)[0, 1] * np.sqrt(s2 / (s2 - added))
    assert r == pytest.approx(np.corrcoef(x, y)[0, 1], abs=0.01)
    slope = np.cov(noisy, y)[0, 1] / s2 * s2 / (s2 - added)
    assert slope == pytest.approx(2, rel=0.03)
    assert noisy.mean() == pytest.approx(x.mean(), abs=0.2)


def test_counts_after_a_matrix(table: pl.DataFrame) -> None:
    """(S - n q) / (p - q) is what `utility.pram_adjust` gives with the whole matrix."""
    book, released = told(table, eq.masks.PramMatrix("kind", diagonal=0.8, invariant=False, alpha=0.5))
    rule = of(book, "kind").changes[0].adjust[0]
    found = re.search(r"p = ([\d.]+), q = ([\d.]+) / \(K - 1\)", rule)
    assert found is not None
    p, moved = map(float, found.groups())
    assert (p, moved) == (0.9, 0.1)
    counts = released["kind"].value_counts().sort("kind")["count"].to_numpy()
    q = moved / 3
    mine = (counts - N * q) / (p - q)
    whole = np.full((4, 4), q) + (p - q) * np.eye(4)
    assert mine == pytest.approx(eq.utility.pram_adjust(counts, whole)["estimate"].to_numpy())
    truth = table["kind"].value_counts().sort("kind")["count"].to_numpy()
    assert np.abs(mine - truth).max() < 250 < np.abs(counts - truth).max()


def test_variance_within_groups(table: pl.DataFrame) -> None:
    """The share that microaggregation leaves, to two decimals."""
    rare = table.head(400)
    book, released = told(rare, eq.masks.Microaggregate(["x", "y"], 20))
    kept = number_after(of(book, "x").changes[0].adjust, "variance = s^2 / ")
    assert kept == pytest.approx(released["x"].to_numpy().var() / rare["x"].to_numpy().var(), abs=0.005)
    assert "is lost" in of(book, "x").changes[0].spoiled[0]


def test_swapped_ranks(table: pl.DataFrame) -> None:
    """The correlation with a column that stayed, divided by what the codebook tells, is the original one."""
    book, released = told(table, eq.masks.RankSwap(["x"], 0.3))
    alike = number_after(of(book, "x").changes[0].adjust, "correlation with a column that was not swapped = r / ")
    r, truth = (np.corrcoef(frame["x"], table["y"])[0, 1] for frame in (released, table))
    assert r / alike == pytest.approx(truth, abs=0.02)
    assert r < truth - 0.05


def test_codes_that_were_cut_have_no_midpoints() -> None:
    """A postcode has a level called 2 as well, and it is no width."""
    records = eq.read(
        pl.DataFrame({"post": ["1011", "1012", "2011"]}),
        eq.Roles("post", hierarchies={"post": eq.Hierarchy.prefix(2)}),
    )
    law = eq.Recipe([eq.masks.Recode("post", "2")], 1).run(records).history[0]
    assert effect_of(law, "post").adjust == ()


def test_banded_numbers(table: pl.DataFrame) -> None:
    """Sheppard: the variance of the midpoints less h^2 / 12."""
    book, released = told(
        table, eq.masks.Recode("age", "20"), keys=["age"], hierarchies={"age": eq.Hierarchy.intervals([5, 20])}
    )
    rule = of(book, "age").changes[0].adjust[0]
    assert rule.endswith("variance = s^2 of the midpoints - 20^2 / 12")
    low = released["age"].str.extract(r"^(\d+)").cast(pl.Float64).to_numpy()
    whole = table.with_columns(z=pl.Series(np.random.default_rng(1).normal(50, 12, N)).clip(0, 99))["z"].to_numpy()
    bands = np.floor(whole / 20) * 20 + 10
    assert bands.var() - 20**2 / 12 == pytest.approx(whole.var(), rel=0.02)
    assert set(low) == {0, 20, 40, 60, 80}


@pytest.mark.parametrize(("kind", "rule"), [("partial", "T = b / m + u"), ("full", "T = (1 + 1 / m) b - u")])
def test_synthetic_samples(kind: str, rule: str) -> None:
    """The variance in words is that of `utility.combine`."""
    law = Law("synthesize", ("x",), "drawn", {"partial": kind == "partial", "samples": 3})
    assert rule in effect_of(law, "x").adjust[0]
    q, u = np.array([10.0, 11.0, 12.5]), np.array([0.5, 0.6, 0.4])
    b, m = q.var(ddof=1), 3
    mine = b / m + u.mean() if kind == "partial" else (1 + 1 / m) * b - u.mean()
    assert eq.utility.combine(q, u, kind=kind).variance == pytest.approx(mine)  # type: ignore[arg-type]


def test_a_sample() -> None:
    law = Law("sample", (), "a sample", {"fraction": 0.25, "kept": 0.25})
    assert "sample totals / 0.25" in effect_of(law, "").adjust[0]


def test_tails() -> None:
    """The mean keeps the sum; the threshold makes the mean too small above, too large below."""

    def effect(mask: str, by: str) -> Any:
        return effect_of(Law(mask, ("x",), "coded", {"at": 1000.0, "replace_by": by}), "x")

    assert "the mean and the total of the whole column" in effect("top_code", "mean").valid
    assert "the mean (too small)" in effect("top_code", "threshold").spoiled
    assert "the mean (too large)" in effect("bottom_code", "threshold").spoiled
    assert "1,000" in effect("top_code", "median").adjust[0]


def test_blanks_are_not_missing_at_random() -> None:
    for mask in ("local_suppress", "suppress_records"):
        assert "not missing at random" in effect_of(Law(mask, ("x",), "blanked", {}), "x").adjust[0]


def test_a_mask_without_an_entry_is_told_by_its_law() -> None:
    """Every entry is that of a mask there is; a new mask needs none, its own words are in the codebook."""
    known = {name for name, kind in methods("mask").items() if kind.__module__.startswith("equipoise.masks")}
    assert set(entries()) <= known
    assert effect_of(Law("a_new_one", ("x",), "done", {}), "x", Comparison()) == effect_of(Law("other", (), "", {}), "")


# --- what it says, and what not -----------------------------------------------------------------------------------


def test_categories_that_are_rare_are_not_named(table: pl.DataFrame) -> None:
    """The data has them; nothing of a column with many categories is listed, and no count at all."""
    kinds = table["kind"].to_list()
    marked = table.with_columns(pl.Series("kind", ["Quetzalcoatlus", *kinds[1:]]))
    book, _ = told(marked)
    assert [code for code, _ in of(book, "kind").categories] == ["a", "b", "c", "d"]
    assert of(book, "kind").more_categories
    assert of(book, "who").categories == ()
    assert of(book, "kind").unchanged
    for text in (book.to_json(), book.to_markdown()):
        assert "Quetzalcoatlus" not in text
        assert "name 1" not in text
        assert not re.search(r"\b9,?9\d\d\b", text)


def test_labels_of_the_file(table: pl.DataFrame) -> None:
    """Labels of variables and values, and missing codes, as the file has them."""
    records = eq.read(table.select("age", "kind"), eq.Roles(["kind"]))
    columns = {
        "age": Column("Age at interview", ((0, "newborn"), (998, "refused")), missing=((998, 999),)),
        "kind": Column("Kind of place", (("a", "city"), ("z", "abroad"))),
    }
    labelled = Records(records.frame, records.roles, labels=Labels(columns))
    book = codebook(labelled, labelled, title="t", file="data.sav")
    assert of(book, "age").label == "Age at interview"
    assert of(book, "age").categories == (("0", "newborn"),)
    assert of(book, "age").missing == ("998 to 999",)
    assert dict(of(book, "kind").categories) == {"a": "city", "z": "abroad", "b": "", "c": "", "d": ""}
    assert "`a` city; `z` abroad" in book.to_markdown()


def test_one_structure_two_files(table: pl.DataFrame) -> None:
    """The page has every variable and every sentence of the JSON."""
    book, _ = told(table, eq.masks.Noise("x", 0.1), eq.masks.Sample(0.5), eq.masks.TopCode("y", 120))
    plain, page = json.loads(book.to_json()), book.to_markdown()
    assert plain["format"] == 1
    assert [v["name"] for v in plain["variables"]] == ["x", "y", "kind", "age", "who"]
    assert plain["records"] == N // 2
    for variable in plain["variables"]:
        assert f"## {variable['name']}" in page
        for change in variable["changes"]:
            for text in (change["words"], *change["valid"], *change["spoiled"], *change["adjust"]):
                assert text.rstrip(".") in page
    assert "a random sample of 0.5 of the records" in page
    assert str(SEED) not in {plain.get("seed"), *map(str, plain)}


def test_in_the_release_folder(people: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path, page: Any) -> None:
    from equipoise.releases.release import release

    masks = [eq.masks.Recode("age", "10"), eq.masks.Noise("salary", 0.3)]
    limits = eq.Policy({"uniques": "<= 0.9"})
    made = release(eq.read(people, people_roles), eq.Recipe(masks, SEED), limits, tmp_path / "out")
    plain = json.loads((made.public / "codebook.json").read_text(encoding="utf-8"))
    assert plain["withheld"] == ["person"]
    assert "person" not in [v["name"] for v in plain["variables"]]
    assert {"codebook.md", "codebook.json", "data.parquet", "report.html"} == set(made.evidence["files"])
