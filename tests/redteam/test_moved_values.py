"""Attacks on masks that mix, shuffle, swap or redraw values, by their public laws and by NumPy and SciPy alone.

The intruder has the true values of everybody in the columns named, and solves, sorts or weighs what the law says.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import equipoise as eq
from equipoise.methods.method import Mask

Record = Callable[..., None]
TURN = ((0.5, 0.5, 0.0), (0.5, -0.5, 0.0), (0.1, 0.2, 1.0))


def made(n: int = 200, seed: int = 3) -> pl.DataFrame:
    """Three amounts that go together, and a group that tells something of them."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=(n, 1))
    table = pl.DataFrame(np.round(np.exp(size + 0.5 * rng.normal(size=(n, 3))), 4), schema=list("abc"))
    return table.with_columns(group=pl.Series((size[:, 0] > 0).astype(int)))


def released_file(table: pl.DataFrame, mask: Mask, **roles: object) -> tuple[eq.Records, eq.Records]:
    original = eq.read(table, eq.Roles(**roles))  # type: ignore[arg-type]
    return eq.Recipe([mask], 1).run(original), original


def numbers(table: pl.DataFrame, columns: str | list[str]) -> np.ndarray:
    return table.select(list(columns)).to_numpy().astype(float)


def assigned(costs: np.ndarray) -> float:
    """Share of people linked right by the cheapest one-to-one assignment."""
    people, rows = linear_sum_assignment(costs)
    return float((people == rows).mean())


def nearest(x: np.ndarray, z: np.ndarray) -> float:
    """Share of people whose nearest record is their own; equal ones are told apart by luck."""
    gaps = cdist(x, z)
    best = gaps <= gaps.min(axis=1, keepdims=True) + 1e-9
    return float((best.diagonal() / best.sum(axis=1)).mean())


def ranks(values: np.ndarray) -> np.ndarray:
    return np.stack([pl.Series(column).rank().to_numpy() for column in values.T], axis=1)


def explained(truth: np.ndarray, guess: np.ndarray) -> float:
    return float(np.max(1 - ((truth - guess) ** 2).mean(axis=0) / truth.var(axis=0)))


@pytest.mark.parametrize(
    ("mask", "parameter"),
    [
        (eq.masks.Matrix(B=TURN, columns=list("abc")), "B of 3 x 3"),
        (eq.masks.Matrix(B=TURN, C=(1.0, 2.0, 3.0), columns=list("abc")), "B of 3 x 3, C of 3 numbers"),
    ],
)
def test_a_matrix_is_solved(record: Record, mask: eq.masks.Matrix, parameter: str) -> None:
    """Whoever knows B and C has X = (M - C) B^-1: every value, and every record."""
    released, original = released_file(made(), mask, numeric=list("abc"))
    added = np.zeros(3) if mask.C is None else np.array(mask.C)
    x = numbers(original.collect(), "abc")
    solved = np.linalg.solve(np.array(TURN).T, (numbers(released.collect(), "abc") - added).T).T
    reported = eq.attack(released, original, size=1).strongest.score.value
    record("matrix", parameter, file="made", measure="person linked", reported=reported, reached=nearest(x, solved))
    values = eq.risk.ValueDisclosure().measure(released, original).value
    measure = "variance of a value learnt"
    record("matrix", parameter, file="made", measure=measure, reported=values, reached=explained(x, solved))


def test_a_matrix_that_makes_other_columns(record: Record) -> None:
    """Whoever knows B and two amounts of a person computes the sum that was released, and joins."""
    mask = eq.masks.Matrix(B=((1.0,), (1.0,)), columns=["a", "b"], outputs=["both"])
    released, original = released_file(made().drop("c"), mask, numeric=["a", "b"])
    sums = Counter(released.collect()["both"].round(6).to_list())
    reached = float(np.mean([sums[round(a + b, 6)] == 1 for a, b in made().select("a", "b").rows()]))
    reported = eq.risk.RevealingColumns().measure(released, original).value
    record("matrix", "B of 2 x 1", file="made", measure="found by its sum", reported=reported, reached=reached)


def test_means_by_a_matrix(record: Record) -> None:
    table = made().with_columns(block=pl.int_range(pl.len()) // 5)
    released, original = released_file(table, eq.masks.Matrix("means:block", columns=list("abc")), numeric=list("abc"))
    z, x = numbers(released.collect(), "abc"), numbers(table, "abc")
    scale = x.std(axis=0)
    reached = max(nearest(x / scale, z / scale), nearest(ranks(x), ranks(z)))
    reported = eq.attack(released, original, size=1).strongest.score.value
    record("matrix", "means of 5", file="made", measure="person linked", reported=reported, reached=reached)


def test_a_sample_by_a_matrix(record: Record) -> None:
    """Values are as they were: a join by one amount finds whoever is in the sample."""
    released, original = released_file(made(), eq.masks.Matrix("sample:0.4", columns=list("abc")), numeric=list("abc"))
    owners = Counter(made()["a"].to_list())
    reached = float(np.mean([owners[value] == 1 for value in released.collect()["a"]]))
    reported = eq.risk.RevealingColumns().measure(released, original).value
    record("matrix", "sample of 0.4", file="made", measure="found by one amount", reported=reported, reached=reached)


def shuffled(record: Record, table: pl.DataFrame, columns: list[str], keys: list[str], file: str) -> None:
    """Links one-to-one within equal keys, by ranks and as they are; values by what the release teaches of the keys.

    Other columns are left out: an amount that was not shuffled finds everybody by itself.
    """
    table = table.select(*keys, *columns)
    mask = eq.masks.Shuffle(columns)
    released, original = released_file(table, mask, keys=keys, numeric=columns)
    z, x = numbers(released.collect(), columns), numbers(table, columns)
    block = table.select(pl.struct(keys).rank("dense")).to_numpy()
    apart = 1e6 * (block != block.T)
    reached = max(
        assigned(cdist(ranks(x), ranks(z)) + apart), assigned(cdist(x / x.std(axis=0), z / x.std(axis=0)) + apart)
    )
    reported = eq.attack(released, original, known=[*keys, *columns], size=1).strongest.score.value
    record("shuffle", "given the keys", file=file, measure="person linked", reported=reported, reached=reached)
    design = table.select(keys).to_dummies(keys).to_numpy().astype(float)
    guess = design @ np.linalg.lstsq(design, z, rcond=None)[0]
    values = eq.risk.ValueDisclosure().measure(released, original).value
    measure = "variance of a value learnt"
    reached = max(explained(x, guess), explained(x, z))
    record("shuffle", "given the keys", file=file, measure=measure, reported=values, reached=reached)


def test_shuffled_amounts(record: Record) -> None:
    shuffled(record, made(300), ["a", "b"], ["group"], "made")


def test_shuffled_expenses_of_testdata(record: Record, data_folder: Path) -> None:
    table = pl.read_csv(data_folder / "sdcmicro" / "testdata.csv").head(300)
    table = table.with_columns(pl.col("expend", "income", "savings").cast(pl.Float64))
    shuffled(record, table, ["expend", "income", "savings"], ["urbrur", "sex"], "testdata")


@pytest.mark.parametrize("rate", [0.3, 0.8])
def test_swapped_amounts(record: Record, rate: float, full: Callable[..., int]) -> None:
    """One record of each key in either area: whoever knows the key and the amount guesses by the rate.

    He takes the record that shows the amount, or its only possible partner where a swap is likelier than not.
    """
    people = full(600, 6_000)
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"key": np.arange(people) // 2, "area": np.arange(people) % 2})
    table = table.with_columns(amount=pl.Series(rng.permutation(people)))
    mask = eq.masks.Swap(["key"], "area", ["amount"], rate)
    released, original = released_file(table, mask, keys=["key", "area"], numeric="amount")
    shown, rows = released.collect(), defaultdict(list)
    for row, key in enumerate(shown["key"]):
        rows[key].append(row)
    place = {amount: row for row, amount in enumerate(shown["amount"])}
    stays = np.array([place[amount] for amount in table["amount"]])
    other = np.array([next(r for r in rows[key] if r != row) for key, row in zip(table["key"], stays, strict=True)])
    hits = [(guess == np.arange(people)).mean() for guess in (stays, other)]
    reached = float(max(hits))
    reported = eq.attacks.Informed(("key", "amount")).measure(released, original).value
    record("swap", f"rate {rate:g}", file="made", measure="person linked", reported=reported, reached=reached)


def by_matrices(
    truth: list[np.ndarray], shown: list[np.ndarray], matrices: list[np.ndarray], still: np.ndarray
) -> float:
    """The best of three guesses: the likeliest record, that with the fewest rivals, and all people one-to-one."""
    logs = np.where(still[:, None] == still, 0.0, -1e6)
    for true, new, matrix in zip(truth, shown, matrices, strict=True):
        logs = logs + np.log(np.maximum(matrix[true][:, new], 1e-12))
    rivals = logs - np.log(np.exp(logs).sum(axis=0, keepdims=True))
    shares = []
    for scores in (logs, rivals):
        best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
        shares.append(float((best.diagonal() / best.sum(axis=1)).mean()))
    exact = np.column_stack([still, *shown])
    _, group, size = np.unique(exact, axis=0, return_inverse=True, return_counts=True)
    pick = linear_sum_assignment(-logs)[1]
    return max(*shares, float(((group.ravel()[pick] == group.ravel()) / size[group.ravel()]).mean()))


def redrawn(record: Record, table: pl.DataFrame, columns: list[str], diagonal: float, file: str) -> None:
    keys = table.columns
    original = eq.read(table, eq.Roles(keys))
    masks = [eq.masks.PramMatrix(column, diagonal=diagonal, invariant=False) for column in columns]
    released = eq.Recipe(masks, 1).run(original)
    truth, shown, matrices = [], [], []
    for column in columns:
        old, new = table[column].cast(pl.String), released.collect()[column].cast(pl.String)
        codes = {value: place for place, value in enumerate(sorted(set(old)))}
        truth.append(np.array([codes[value] for value in old]))
        shown.append(np.array([codes[value] for value in new]))
        matrix = np.full((len(codes), len(codes)), (1 - diagonal) / (len(codes) - 1))
        np.fill_diagonal(matrix, diagonal)
        matrices.append(matrix)
    rest = [key for key in keys if key not in columns]
    still = table.select(pl.struct(rest).rank("dense")).to_series().to_numpy() if rest else np.zeros(table.height)
    reached = by_matrices(truth, shown, matrices, still)
    reported = eq.attacks.Informed().measure(released, original).value
    parameter = f"diagonal {diagonal:g}, {len(columns)} columns"
    record("pram_matrix", parameter, file=file, measure="person linked", reported=reported, reached=reached)


@pytest.mark.parametrize("diagonal", [0.5, 0.8])
def test_redrawn_categories(record: Record, diagonal: float) -> None:
    table = eq.demo.survey().gather_every(200).select("sex", "education", "marital", "region")
    redrawn(record, table, ["education", "marital"], diagonal, "demo survey")


def test_redrawn_categories_of_adult(record: Record, data_folder: Path) -> None:
    table = pl.read_csv(data_folder / "arx" / "adult.csv", separator=";").head(500)
    redrawn(record, table.select("sex", "race", "education", "occupation"), ["education", "occupation"], 0.7, "adult")


def by_moves(truth: pl.DataFrame, released: pl.DataFrame, stay: dict[str, float]) -> float:
    """The record whose changed keys are likeliest by how often each stays, unchanged ones agreeing; ties at random."""
    scores = np.zeros((truth.height, released.height))
    for key in truth.columns:
        x, z = (table[key].cast(pl.String).to_numpy() for table in (truth, released))
        equal = x[:, None] == z
        shares = released[key].cast(pl.String).value_counts()
        share = dict(zip(shares[key], shares["count"] / released.height, strict=True))
        rest = np.array([share[value] for value in z])
        chance = np.where(equal, stay.get(key, 1.0) / rest, (1 - stay.get(key, 1.0)) + 1e-12)
        scores += np.log(chance)
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return float((best.diagonal() / best.sum(axis=1)).mean())


@pytest.mark.parametrize("diagonal", [0.4, 0.7])
def test_matches_by_moved_keys(record: Record, diagonal: float) -> None:
    """One key of three is moved: who agrees in the others is found all the same, by correct_matches too."""
    rng = np.random.default_rng(6)
    columns = {"age": rng.integers(20, 80, 400), "area": rng.integers(0, 6, 400), "job": rng.integers(0, 5, 400)}
    table = pl.DataFrame(columns).with_columns(pl.all().cast(pl.String))
    released, original = released_file(
        table, eq.masks.PramMatrix("job", diagonal=diagonal), keys=["age", "area", "job"]
    )
    reached = by_moves(table, released.collect(), {"job": diagonal})
    agreeing = eq.risk.CorrectMatches().measure(released, original)
    measure, parameter = "matches by keys", f"diagonal {diagonal:g}, 1 of 3 keys"
    record("pram_matrix", parameter, file="made", measure=measure, reported=agreeing.value, reached=reached)
    assert reached > float(agreeing.notes[0].split("agreement ")[1].split(",")[0]) + 0.02
