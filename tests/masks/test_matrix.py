"""Matrix: M = A X B + C, and that noise, swapping, microaggregation and sampling are instances of it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Matrix, Noise, Swap
from equipoise.recipe import catalogue

COLUMNS = ("x", "y", "n")


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    size = 60
    return pl.DataFrame(
        {
            "id": np.arange(size) + 3,
            "area": rng.choice(["a", "b", "c"], size),
            "x": rng.normal(10, 3, size),
            "y": rng.normal(size=size),
            "n": rng.integers(0, 9, size),
        }
    )


ROLES = eq.Roles(["area"], numeric=COLUMNS, id="id")


def masked(mask: Matrix, data: Any, seed: int = 1, roles: eq.Roles = ROLES) -> pl.DataFrame:
    return mask.apply(eq.read(data, roles), Draws(seed)).collect()


def numbers(table: pl.DataFrame, *columns: str) -> np.ndarray[Any, Any]:
    return table.select(columns or COLUMNS).to_numpy()


def test_the_formula(table: pl.DataFrame) -> None:
    """A, B and C dense and sparse, by value and by path, against NumPy."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(60, 60)), rng.normal(size=(3, 3)), rng.normal(size=(60, 3))
    wanted = a @ numbers(table) @ b + c
    found = masked(Matrix(a, b, c), table)
    assert numbers(found) == pytest.approx(wanted)
    assert found.select("id", "area").equals(table.select("id", "area"))
    assert numbers(masked(Matrix(scipy.sparse.coo_matrix(a), b, c), table)) == pytest.approx(wanted)


def test_by_path(table: pl.DataFrame, tmp_path: Path) -> None:
    """Arrays are given by path in files."""
    a = scipy.sparse.random(60, 60, 0.1, random_state=1, format="csr")
    scipy.sparse.save_npz(tmp_path / "a.npz", a)
    np.save(tmp_path / "b.npy", np.eye(3) * 2)
    np.save(tmp_path / "c.npy", np.ones((60, 3)))
    mask = Matrix(str(tmp_path / "a.npz"), str(tmp_path / "b.npy"), str(tmp_path / "c.npy"))
    assert numbers(masked(mask, table)) == pytest.approx(2 * (a @ numbers(table)) + 1)
    plain = catalogue.to_plain(mask)
    assert catalogue.build(plain.pop("use"), "mask", plain) == mask
    with pytest.raises(eq.ParameterError, match="No file"):
        masked(Matrix(str(tmp_path / "nothing.npz")), table)
    (tmp_path / "bad.npy").write_text("no array")
    with pytest.raises(eq.ParameterError, match="holds no matrix"):
        masked(Matrix(B=str(tmp_path / "bad.npy")), table)


def test_masks_that_hold_arrays_are_comparable() -> None:
    """Equal numbers, equal masks; the repr shows shapes, never numbers."""
    one, two = (Matrix(scipy.sparse.eye(4, format="csc") * 0.123, np.ones((2, 2))) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Matrix(scipy.sparse.eye(4, format="csc") * 0.124, np.ones((2, 2)))
    assert one != Matrix(scipy.sparse.eye(4) * 0.123, np.ones((4, 1)))
    assert "0.123" not in repr(one)
    assert "4 x 4" in repr(one)


# --- instances ----------------------------------------------------------------------------------------------------


def test_noise_is_an_instance(table: pl.DataFrame) -> None:
    """M = X + C, C the noise."""
    noisy = Noise(["x", "y"], 0.3).apply(eq.read(table, ROLES), Draws(7)).collect()
    c = numbers(noisy, "x", "y") - numbers(table, "x", "y")
    found = masked(Matrix(C=c, columns=["x", "y"]), table)
    assert_frame_equal(found, noisy)


def test_multiplicative_noise_and_swapping_are_instances(table: pl.DataFrame) -> None:
    """M = W X: one transposition for each pair that was swapped."""
    ages = table.with_columns(age=pl.col("n") // 3, number=pl.int_range(pl.len()))
    mask = Swap(["age"], "area", ["x", "y", "number"], 0.8, target="n")
    done = mask.apply(eq.read(ages, ROLES), Draws(3)).collect()
    source = done["number"].to_numpy()
    pairs = tuple((int(i), int(j)) for i, j in enumerate(source) if i < j)
    assert pairs
    assert numbers(masked(Matrix(pairs, columns=["x", "y"]), table), "x", "y") == pytest.approx(numbers(done, "x", "y"))
    w = scipy.sparse.eye(60, format="csr")[source]
    assert numbers(masked(Matrix(w, columns=["x", "y"]), table), "x", "y") == pytest.approx(numbers(done, "x", "y"))
    double = masked(Matrix(scipy.sparse.diags(np.full(60, 2.0)), columns=["n"]), table)
    assert double["n"].equals(table["n"] * 2)


def test_transpositions_compose_and_happen_with_probability_rate(table: pl.DataFrame) -> None:
    """W = W_1 W_2 ...; each applied by a coin of its own, within 4 standard errors."""
    cycle = masked(Matrix(((0, 1), (1, 2)), columns=["x"]), table)["x"].to_list()
    before = table["x"].to_list()
    assert cycle[:3] == [before[1], before[2], before[0]]
    pairs = tuple((2 * i, 2 * i + 1) for i in range(30))
    made = [
        int((masked(Matrix(pairs, columns=["x"], rate=0.3), table, s)["x"] != table["x"]).sum()) // 2
        for s in range(100)
    ]
    assert np.mean(made) / 30 == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 3000))


def test_microaggregation_is_an_instance(table: pl.DataFrame) -> None:
    """Block averaging, as an operation and as a matrix; sums are kept."""
    groups = table.with_columns(group=pl.col("x").rank("ordinal") // 4)
    found = masked(Matrix(A="means:group", columns=["x", "y"]), groups)
    wanted = groups.with_columns(pl.col("x", "y").mean().over("group"))
    assert_frame_equal(found, wanted)
    assert found["x"].sum() == pytest.approx(groups["x"].sum())
    member = (groups["group"].to_numpy()[:, None] == groups["group"].to_numpy()).astype(float)
    block = scipy.sparse.csr_matrix(member / member.sum(axis=1, keepdims=True))
    assert_frame_equal(masked(Matrix(block, columns=["x", "y"]), groups), wanted)


def test_sampling_is_an_instance(table: pl.DataFrame) -> None:
    """A takes records as they are, and the rest of each record comes along; each is taken equally often."""
    found = masked(Matrix(A="sample:0.25"), table)
    assert found.height == 15
    assert found.equals(table.filter(pl.col("id").is_in(found["id"].implode())))
    other = masked(Matrix(A="sample:0.25"), table.reverse())
    assert other.sort("id").equals(found.sort("id")), "drawn by record, not by row"
    rows = [5, 2, 9]
    assert masked(Matrix(scipy.sparse.eye(60, format="csr")[rows]), table).equals(table[rows])
    times = np.zeros(60)
    for seed in range(300):
        times[masked(Matrix(A="sample:0.25"), table, seed)["id"].to_numpy() - 3] += 1
    assert np.abs(times / 300 - 0.25).max() < 4.5 * np.sqrt(0.1875 / 300)


def test_sums_of_records(table: pl.DataFrame) -> None:
    """One record for each group; columns and roles that have no meaning any more are gone."""
    done = Matrix(A="sums:area").apply(eq.read(table, ROLES), Draws(1))
    wanted = table.group_by("area").agg(pl.col(COLUMNS).sum()).sort("area")
    assert_frame_equal(done.collect(), wanted)
    assert done.roles.id is None
    assert done.roles.keys == ("area",)
    mixed = Matrix(np.ones((2, 60)), columns=["x"]).apply(eq.read(table, ROLES), Draws(1))
    assert mixed.collect().columns == ["x"]
    assert mixed.roles == eq.Roles(numeric=["x"])


def test_projection_names_its_outputs(table: pl.DataFrame) -> None:
    """B may change the number of columns; they are named, and the old ones go."""
    done = Matrix(B=((0.5,), (0.5,)), columns=["x", "y"], outputs=["both"]).apply(eq.read(table, ROLES), Draws(1))
    found = done.collect()
    assert found.columns == ["id", "area", "n", "both"]
    assert found["both"].to_numpy() == pytest.approx((table["x"] / 2 + table["y"] / 2).to_numpy())
    assert done.roles.numeric == ("n",)
    with pytest.raises(eq.ParameterError, match="name as many in outputs"):
        masked(Matrix(B=((0.5,), (0.5,)), columns=["x", "y"]), table)
    with pytest.raises(eq.ParameterError, match="there already"):
        masked(Matrix(B=((1,), (1,)), columns=["x", "y"], outputs=["area"]), table)


# --- gaps, types, engines, refusals -------------------------------------------------------------------------------


def test_gaps_reach_what_is_made_of_them_only(table: pl.DataFrame) -> None:
    holes = table.with_columns(x=pl.when(pl.col("id") == 5).then(None).otherwise(pl.col("x")))
    found = masked(Matrix(B=((1, 1, 0), (0, 1, 0), (0, 0, 1)), C=(0, 0, 1)), holes)
    assert found["x"].null_count() == found["y"].null_count() == 1
    assert found["n"].equals(table["n"] + 1)
    means = masked(Matrix(A="means:area", columns=["x"]), holes)
    lost = holes.filter(pl.col("id") == 5)["area"].item()
    assert means["x"].is_null().equals(holes["area"] == lost)


def test_whole_numbers_stay_whole_where_they_can(table: pl.DataFrame) -> None:
    assert masked(Matrix(C=1, columns=["n"]), table)["n"].dtype == pl.Int64
    assert masked(Matrix(C=0.5, columns=["n"]), table)["n"].dtype == pl.Float64
    narrow = table.with_columns(pl.col("n").cast(pl.UInt8))
    assert masked(Matrix(C=-100, columns=["n"]), narrow)["n"].dtype == pl.Float64


def test_engines_agree(engine: Any, table: pl.DataFrame) -> None:
    for mask in (Matrix(A="means:area", B=((2, 0), (0, 1)), C=(1, 2), columns=["x", "n"]), Matrix(A="sample:0.5")):
        expected = masked(mask, table).sort("id")
        records = eq.read(engine.make(table), ROLES)
        if engine.name == "pyspark":
            with pytest.raises(eq.EngineError, match="in memory"):
                mask.apply(records, Draws(1))
            return
        found = engine.rows(mask.apply(records, Draws(1)).to_native()).sort("id")
        assert_frame_equal(found, expected, check_dtypes=False)


def test_scanned_parquet(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_parquet(tmp_path / "t.parquet", row_group_size=16)
    mask = Matrix(A="sums:area")
    assert_frame_equal(masked(mask, pl.scan_parquet(tmp_path / "t.parquet")), masked(mask, table))


@pytest.mark.parametrize(
    "bad",
    [
        {"A": "sums"},
        {"A": "sums:"},
        {"A": "products:area"},
        {"A": "sample:half"},
        {"A": "sample:5"},
        {"A": ((0, 1, 2),)},
        {"A": ((0, -1),)},
        {"A": 3},
        {"A": np.ones(3)},
        {"B": ((1, 2), (3,))},
        {"B": (("a",),)},
        {"B": "matrix.csv"},
        {"B": np.array([[np.nan]])},
        {"C": float("nan")},
        {"C": "5"},
        {"rate": 0.5},
        {"rate": 2},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Matrix(**bad)


def test_shapes_that_do_not_fit(table: pl.DataFrame) -> None:
    for mask, word in (
        (Matrix(np.eye(3)), "3 columns for 60 records"),
        (Matrix(B=np.eye(2)), "2 rows for 3 columns"),
        (Matrix(C=np.ones((5, 3))), "C has the shape 5 x 3"),
        (Matrix(((0, 99),)), "names record 99"),
        (Matrix(A="sums:areas"), "areas"),
        (Matrix(C=1, columns=["area"]), "not numeric"),
    ):
        with pytest.raises(eq.EquipoiseError, match=word):
            masked(mask, table)


def test_words_and_law(table: pl.DataFrame) -> None:
    mask = Matrix(A="means:area", B=np.eye(3) * 0.777)
    law = mask.apply(eq.read(table, ROLES), Draws(1)).history[0]
    assert law.parameters["A"] == "'means:area'"
    assert "0.777" not in repr(law)
    assert Matrix().words() == "the numeric columns replaced by A X B + C: the identity"
