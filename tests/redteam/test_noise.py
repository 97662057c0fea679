"""Noise attacked with the public file and its public law alone: the reported risks are never below what is reached."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import ndtri
from scipy.stats import rankdata

import equipoise as eq

SLACK = 1e-9
Record = Callable[..., None]


def made(n: int = 400, seed: int = 1) -> pl.DataFrame:
    """Five skewed amounts that go together, as turnover, wages and the like do."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=(n, 1))
    return pl.DataFrame(np.exp(size + 0.3 * rng.normal(size=(n, 5))), schema=list("abcde"))


def pair(table: pl.DataFrame, *masks: object) -> tuple[eq.Records, eq.Records]:
    original = eq.read(table, eq.Roles(numeric=table.columns))
    return eq.Recipe(masks, 1).run(original), original  # type: ignore[arg-type]


def noise_sd(released: eq.Records) -> np.ndarray:
    """The size of the noise, as the public law says it."""
    law = released.history[0].parameters
    return np.array([law["noise_sd"][column] for column in law["columns"]])


def explained(x: np.ndarray, guess: np.ndarray) -> float:
    """The largest share of a column's variance that the guesses explain."""
    return float(np.max(1 - ((x - guess) ** 2).mean(axis=0) / x.var(axis=0)))


def linear(z: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """E[X | Z] from the moments of the release: those of X are those of Z less the noise."""
    covariance = np.cov(z.T)
    return z.mean(axis=0) + (z - z.mean(axis=0)) @ np.linalg.solve(covariance, covariance - np.diag(sd**2))


def tweedie(z: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """z + sd^2 d log f(z) / dz for each column alone, f a kernel estimate of the released density."""
    guess = np.empty_like(z)
    for j, (column, s) in enumerate(zip(z.T, sd, strict=True)):
        width = column.std() * len(column) ** -0.2
        gap = (column[:, None] - column) / width
        kernel = np.exp(-(gap**2) / 2)
        guess[:, j] = column + s**2 * (-gap * kernel).sum(axis=1) / kernel.sum(axis=1) / width
    return guess


def whitened(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both files in the coordinates of the pooled covariance."""
    scale = x.std(axis=0)
    one, two = x / scale, z / scale
    values, vectors = np.linalg.eigh((np.cov(one.T) + np.cov(two.T)) / 2)
    turn = vectors[:, values > 1e-9 * values.max()] / np.sqrt(values[values > 1e-9 * values.max()])
    return one @ turn, two @ turn


def assigned(x: np.ndarray, z: np.ndarray) -> float:
    """Share of people linked right by the cheapest one-to-one assignment."""
    people, records = linear_sum_assignment(cdist(x, z))
    return float((people == records).mean())


def arrays(*files: eq.Records) -> list[np.ndarray]:
    return [file.collect().to_numpy().astype(float) for file in files]


@pytest.mark.parametrize("scale", [0.3, 1.0])
@pytest.mark.parametrize("integers", [False, True])
def test_values_of_a_made_file(record: Record, scale: float, integers: bool) -> None:
    """The linear and the curved intruder know at most what is reported; a single column would have understated it."""
    table = made() if not integers else (made() * 1000).cast(pl.Int64)
    released, original = pair(table, eq.masks.Noise(table.columns, scale))
    z, x = arrays(released, original)
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    reached = explained(x, linear(z, noise_sd(released)))
    strongest = max(reached, explained(x, tweedie(z, noise_sd(released))))
    measure = "variance of a value learnt"
    record("noise", f"{scale:g} sd", file="made", measure=measure, reported=reported, reached=strongest)
    assert reached > eq.risk.ValueDisclosure(snooper="own").measure(released, original).value


def by_atoms(z: np.ndarray, atoms: np.ndarray, sd: np.ndarray, *, own: bool) -> np.ndarray:
    """E[X | Z] by Bayes' rule, the atoms being the prior; without `own` each person's atom is left out."""
    logs = -(((z[:, None] - atoms) / sd) ** 2).sum(axis=2) / 2
    logs[np.diag_indices(len(z))] = logs.diagonal() if own else -np.inf
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights @ atoms / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["groups", "a ring"])
def test_values_that_lie_on_a_shape(record: Record, kind: str) -> None:
    """Groups and curves that noise blurs: no sum of curves in the columns follows them, Bayes' rule does.

    The prior is the release, drawn together by the linear rule, or the values of all other people.
    """
    rng = np.random.default_rng(0)
    angle, groups = rng.uniform(0, 2 * np.pi, 500), rng.normal(size=(4, 4)) * 6
    x = groups[rng.integers(0, 4, 500)] + 0.5 * rng.normal(size=(500, 4))
    if kind == "a ring":
        x = 10 * np.column_stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(3 * angle)])
    table = pl.DataFrame(x, schema=list("abcd"))
    released, original = pair(table, eq.masks.Noise(table.columns, 1.0))
    (z,), sd = arrays(released), noise_sd(released)
    by_release = explained(x, by_atoms(z, linear(z, sd), sd, own=True))
    reached = max(by_release, explained(x, by_atoms(z, x, sd, own=False)))
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    measure = "variance of a value learnt"
    record("noise", f"1 sd on {kind}", file="made", measure=measure, reported=reported, reached=reached)


def by_equal_values(table: pl.DataFrame, column: str, known: str) -> float:
    """Share of the variance that the mean of all others with the same value of a released column explains."""
    x, groups = table[column].to_numpy(), table[known].to_list()
    sums, counts = dict.fromkeys(groups, 0.0), dict.fromkeys(groups, 0)
    for value, group in zip(x, groups, strict=True):
        sums[group], counts[group] = sums[group] + value, counts[group] + 1
    means = [(sums[g] - v) / (counts[g] - 1) if counts[g] > 1 else x.mean() for v, g in zip(x, groups, strict=True)]
    return explained(x[:, None], np.array(means)[:, None])


@pytest.mark.parametrize(("areas", "kind"), [(10, "step"), (150, "step"), (75, "two columns"), (150, "sum")])
def test_an_amount_that_goes_with_an_area(record: Record, areas: int, kind: str) -> None:
    """An amount of each area, of areas and sexes, or beside one of age: no bend or sampled tree has every step."""
    rng = np.random.default_rng(areas)
    place, sex, age = rng.integers(0, areas, 2000), rng.integers(0, 2, 2000), rng.integers(18, 80, 2000)
    step = rng.normal(size=(2, areas))
    money = step[sex, place] if kind == "two columns" else step[0, place] + (kind == "sum") * 0.05 * age
    table = pl.DataFrame({"area": place, "sex": sex, "age": age, "income": rng.normal(size=2000), "money": money})
    original = eq.read(table, eq.Roles(["area", "sex", "age"], numeric=["money", "income"]))
    released = eq.Recipe([eq.masks.Noise(("money", "income"), 2.0)], 1).run(original)
    rest = money - (kind == "sum") * np.polyval(np.polyfit(age, money, 1), age)
    told = table.with_columns(rest=pl.Series(rest), cell=pl.Series(place + areas * sex * (kind == "two columns")))
    reached = 1 - (1 - by_equal_values(told, "rest", "cell")) * rest.var() / money.var()
    reported = eq.risk.ValueDisclosure().measure(released, original).value
    record(
        "noise", f"2 sd beside {areas} areas, {kind}", file="made", measure="variance of a value learnt",
        reported=reported, reached=reached,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["person", "household"])
def test_values_seen_again_in_other_rows(record: Record, role: str) -> None:
    """Six waves of a nearly constant income, or six members: noise of each row is averaged over the others."""
    rng = np.random.default_rng(3)
    unit, x = np.repeat(np.arange(150), 6), np.repeat(np.exp(10 + 0.6 * rng.normal(size=150)), 6)
    x = x * np.exp(0.03 * rng.normal(size=900))
    table = pl.DataFrame({"unit": unit, "wave": np.tile(np.arange(6), 150), "income": x})
    original = eq.read(table, eq.Roles("wave", numeric="income", **{role: "unit"}))  # type: ignore[arg-type]
    released = eq.Recipe([eq.masks.Noise(["income"], 1.0)], 5).run(original)
    z = released.collect()["income"].to_numpy()
    mean = np.bincount(unit, z)[unit] / 6
    terms = np.column_stack([np.ones(900), z, mean])
    guess = terms @ np.linalg.lstsq(terms, x, rcond=None)[0]
    known = eq.risk.KnownWithin(0.1).measure(released, original)
    assert known.interval is not None
    assert known.interval[1] >= (np.abs(mean / x - 1) <= 0.1).mean()
    reported, reached = (
        eq.risk.ValueDisclosure().measure(released, original).value,
        1 - ((x - guess) ** 2).mean() / x.var(),
    )
    parameter, measure = f"1 sd, six rows of a {role}", "variance of a value learnt"
    record("noise", parameter, file="made", measure=measure, reported=reported, reached=reached)


def test_several_copies() -> None:
    """Three releases of one file: an intruder averages them, and so does the report."""
    original = pair(made())[1]
    mask = eq.masks.Noise(list("abcde"), 1.0)
    releases = [eq.Recipe([mask], seed).run(original) for seed in range(3)]
    (x,) = arrays(original)
    mean = np.mean(arrays(*releases), axis=0)
    reported = eq.risk.ValueDisclosure().measure(eq.attacks.averaged(releases), original).value
    assert reported >= explained(x, linear(mean, noise_sd(releases[0]) / np.sqrt(3))) - SLACK


@pytest.mark.parametrize("kind", ["independent", "correlated", "multiplicative"])
def test_links_in_a_made_file(record: Record, kind: str) -> None:
    """One-to-one by Euclid, by the pooled covariance and by logarithms."""
    released, original = pair(made(200), eq.masks.Noise(list("abcde"), 0.3, kind))  # type: ignore[arg-type]
    z, x = arrays(released, original)
    reached = [assigned(x / x.std(axis=0), z / x.std(axis=0)), assigned(*whitened(x, z))]
    if kind == "multiplicative":
        reached.append(assigned(np.log(x), np.log(np.maximum(z, 1e-9))))
    reported = eq.attack(released, original, size=1).strongest.score.value
    record("noise", f"0.3 sd, {kind}", file="made", measure="person linked", reported=reported, reached=max(reached))


def test_links_by_amounts_and_a_group_of_weights(record: Record) -> None:
    """The released weight follows from the true one and parts the file; squared distances assign each part."""
    rng = np.random.default_rng(8)
    table = made(300).with_columns(weight=pl.Series(rng.gamma(2, 50, 300)))
    original = eq.read(table, eq.Roles(numeric=list("abcde"), weight="weight"))
    masks = eq.masks.Noise(list("abcde"), 0.5, "correlated"), eq.masks.CoarsenWeights(5)
    released = eq.Recipe(masks, 1).run(original)
    z, x = arrays(released, original)
    group = np.empty(300)
    group[np.argsort(x[:, 5])] = np.sort(z[:, 5])
    costs = cdist(*whitened(x[:, :5], z[:, :5]), "sqeuclidean") + 1e6 * ~np.isclose(group[:, None], z[:, 5])
    people, records = linear_sum_assignment(costs)
    score, reached = eq.attack(released, original, size=1).strongest.score, float((people == records).mean())
    assert score.interval is not None
    parameter, error = "0.5 sd, correlated, 5 groups of weights", score.interval[1] - score.value
    record("noise", parameter, file="made", measure="person linked", reported=score.value, reached=reached, error=error)
    assert score.value >= eq.attacks.Informed(known=tuple(table.columns)).measure(released, original).value


def by_share(x: np.ndarray, z: np.ndarray, scale: float) -> float:
    """One-to-one by what each value was multiplied with."""
    shares = z / x[:, None] - 1
    people, records = linear_sum_assignment(((shares / scale) ** 2).sum(axis=2))
    return float((people == records).mean())


def test_links_of_skewed_amounts(record: Record) -> None:
    """Noise in proportion to the value, where a few giants have most of the sum: the law and all links at once."""
    rng = np.random.default_rng(5)
    size = np.exp(1.4 * rng.normal(size=(250, 1)))
    table = pl.DataFrame(size * np.exp(0.6 * rng.normal(size=(250, 5))), schema=list("abcde"))
    released, original = pair(table, eq.masks.Noise(table.columns, 0.6, "multiplicative"))
    z, x = arrays(released, original)
    reported, reached = eq.attack(released, original, size=1).strongest.score.value, by_share(x, z, 0.6)
    record("noise", "0.6, multiplicative", file="skewed", measure="person linked", reported=reported, reached=reached)


def test_values_of_the_utilities(record: Record, data_folder: Path) -> None:
    """EIA, ten correlated amounts, noise of one standard deviation: 0.86 from the release and its law; 0.52 before."""
    table = pl.read_csv(data_folder / "sdcmicro" / "EIA.csv")
    table = table.select(table.columns[5:])
    released, original = pair(table, eq.masks.Noise(table.columns, 1.0))
    z, x = arrays(released, original)
    reported, reached = (
        eq.risk.ValueDisclosure().measure(released, original).value,
        explained(x, linear(z, noise_sd(released))),
    )
    assert reached > 0.85
    record("noise", "1 sd", file="EIA", measure="variance of a value learnt", reported=reported, reached=reached)
    assert reported >= 0.86


@pytest.mark.parametrize("scale", [0.4, 0.5])
def test_links_in_the_reference_file(record: Record, data_folder: Path, scale: float) -> None:
    """CASC under the noise of its first policy: one-to-one on Mahalanobis distance."""
    table = pl.read_csv(data_folder / "sdcmicro" / "CASCrefmicrodata.csv")
    released, original = pair(table, eq.masks.Noise(table.columns, scale, "correlated"))
    z, x = arrays(released, original)
    attack = eq.attacks.Nearest(metric="mahalanobis", links="one-to-one")
    reported = eq.attack(released, original, attacks=[attack], size=1).strongest.score.value
    reached = assigned(*whitened(x, z))
    parameter = f"{scale:g} sd, correlated"
    record("noise", parameter, file="CASC", measure="person linked", reported=reported, reached=reached)
    assert reported > eq.attacks.Nearest(metric="mahalanobis").measure(released, original).value + 0.1


def scored(values: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks of each column."""
    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))


def by_ranks(x: np.ndarray, z: np.ndarray) -> float:
    """Links of all at once by ranks: in units of how far a mask drawn again moves them, or by logarithms of values."""
    random, shares = np.random.default_rng(3), []
    for one, two in ((scored(x), scored(z)), (np.log1p(x), np.log1p(z))):
        moves = two - one  # what the mask drawn again would show, up to chance
        values, vectors = np.linalg.eigh(np.cov(moves.T))
        sharp = vectors / np.sqrt(np.maximum(values, 1e-9 * values.max()))
        order = random.permutation(len(x))
        people, records = linear_sum_assignment(cdist(one @ sharp, two[order] @ sharp, "sqeuclidean"))
        shares.append(float((order[records] == people).mean()))
    return max(shares)


@pytest.mark.parametrize("kind", ["independent", "correlated", "multiplicative"])
def test_values_dealt_out_by_noise_are_linked_by_ranks(record: Record, kind: str) -> None:
    """Relative noise was read as if the same for all: 0.34 reported, 0.60 reached."""
    rng = np.random.default_rng(6)
    common = rng.standard_cauchy((600, 1)).clip(-8, 8)
    table = pl.DataFrame(np.exp(0.3 * common + 1.2 * rng.normal(size=(600, 4))), schema=list("abcd"))
    released, original = pair(table, eq.masks.Noise(table.columns, 0.3, kind, preserve="distributions"))  # type: ignore[arg-type]
    score = eq.attacks.Informed().measure(released, original)
    assert score.interval is not None
    record(
        "noise", f"{kind}, 0.3 sd, distributions", file="heavy tails", measure="person linked", reported=score.value,
        reached=by_ranks(table.to_numpy(), released.collect().to_numpy()), error=score.interval[1] - score.value,
    )  # fmt: skip
