"""Every closed form against 400,000 simulated releases, within four standard errors, and the printed numbers."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import equipoise as eq
from equipoise.theory import mean

RUNS = 400_000
BATCH = 50_000
Floats = NDArray[np.float64]
Runs = dict[str, Floats]
Simulate = Callable[[np.random.Generator, int, Floats, dict[str, Any]], Runs]


def simulated(simulate: Simulate, given: dict[str, Any], seed: int) -> dict[str, tuple[float, float]]:
    """Mean and standard error of each squared error, over runs made a batch at a time."""
    rng = np.random.default_rng(seed)
    sums: dict[str, Floats] = {}
    for _ in range(RUNS // BATCH):
        found = simulate(rng, BATCH, target(rng, BATCH, given), given)
        for name, errors in found.items():
            sums[name] = sums.get(name, np.zeros(2)) + np.array([(errors**2).sum(), (errors**4).sum()])
    made = {}
    for name, (first, second) in sums.items():
        centre = first / RUNS
        made[name] = (centre, float(np.sqrt(max(0.0, second / RUNS - centre**2) / RUNS)))
    return made


def target(rng: np.random.Generator, size: int, given: dict[str, Any]) -> Floats:
    """The target's value: skewed, for only mean and variance may matter."""
    mean_, variance = given.get("prior", (given.get("mu", 0.0), given["s2"]))
    return mean_ + np.sqrt(variance) * (rng.exponential(size=size) - 1)


def population(rng: np.random.Generator, size: int, n: int, given: dict[str, Any]) -> Floats:
    mu, sd = float(given.get("mu", 0.0)), float(np.sqrt(given["s2"]))
    return mu + sd * rng.normal(size=(size, n))


def file(rng: np.random.Generator, x: Floats, given: dict[str, Any]) -> Floats:
    """n records, the target in the first row when it is inside."""
    rows = population(rng, len(x), given["n"], given)
    if given.get("target", "inside") == "inside":
        rows[:, 0] = x
    return rows


def noise(rng: np.random.Generator, size: int, x: Floats, given: dict[str, Any]) -> Runs:
    """Of l2 (or scale), in copies; the shrinking snooper draws the linked value towards the mean."""
    s2, l2 = given["s2"], given.get("l2", given.get("scale", 0.0) ** 2 * given["s2"])
    rows = file(rng, x, given)
    copies = [rows + np.sqrt(l2) * rng.normal(size=rows.shape) for _ in range(given.get("copies", 1))]
    y, left = np.mean(copies, axis=0), l2 / len(copies)
    found = {"mean": x - y.mean(axis=1)}
    if "prior" not in given:
        found["user"] = y.mean(axis=1) - given.get("mu", 0.0)
    if given.get("target", "inside") == "inside":
        kept = s2 / (s2 + left)
        found |= {"linked": x - y[:, 0], "shrunk": x - y.mean(axis=1) - kept * (y[:, 0] - y.mean(axis=1))}
    if "prior" in given:
        centre, v = given["prior"]
        found["prior"] = x - centre
        if "linked" in found:
            found["prior and linked"] = x - centre - (v / (v + left) if v else 0.0) * (y[:, 0] - centre)
    return found


def synthetic(rng: np.random.Generator, size: int, x: Floats, given: dict[str, Any]) -> Runs:
    """Means drawn around the sample mean (or mu, naive), then records around the means."""
    n, m, k, s2 = given["n"], given["m"], given.get("k", given["n"]), given["s2"]
    a2, mu = given.get("a2", s2 / n), given.get("mu", 0.0)
    centre = np.full(size, mu) if given.get("form") == "naive" else file(rng, x, given).mean(axis=1)
    means = centre[:, None] + np.sqrt(a2) * rng.normal(size=(size, m))
    y = means[:, :, None] + np.sqrt(s2) * rng.normal(size=(size, m, k))
    found = {
        "mean": x - y.mean(axis=(1, 2)),
        "sample mean": x - y[:, 0].mean(axis=1),
        "synthetic record": x - y[:, 0, 0],
    }
    if "prior" in given and given.get("form") != "naive":
        found["prior"] = x - given["prior"][0]
    return found if "prior" in given else found | {"user": y.mean(axis=(1, 2)) - mu}


def swapped(rng: np.random.Generator, size: int, x: Floats, given: dict[str, Any]) -> Runs:
    """Candidates stand first in both areas; each changes places with its partner (or one of several) at the rate."""
    (n1, n2), p, d = given.get("areas", (3, 2)), given["rate"], given["d"]
    many, pairs = given.get("partners", 1), given.get("candidates", 1)
    one, two = population(rng, size, n1, given), population(rng, size, n2, given) - d
    inside = given.get("target", "inside") == "inside"
    if inside:
        one[:, 0] = x
    rows = np.arange(size)
    for pair in range(pairs):
        moves = rng.random(size) < p
        whom = rng.integers(0, many, size) if many > 1 else np.full(size, pair)
        mine, theirs = one[:, pair].copy(), two[rows, whom]
        one[:, pair] = np.where(moves, theirs, mine)
        two[rows, whom] = np.where(moves, mine, theirs)
    found = {"mean": x - one.mean(axis=1)}
    if "prior" not in given:
        found["user"] = one.mean(axis=1) - two.mean(axis=1) - d
    if not inside:
        return found
    own, partner, others = one[:, 0], two[:, 0], two[:, :many].mean(axis=1)
    found |= {"linked": x - own, "undone": x - partner, "hedged": x - (1 - p) * own - p * others}
    found["best linear"] = x - fitted(own, others, x)
    return found | ({"prior": x - given["prior"][0]} if "prior" in given else {})


def fitted(own: Floats, others: Floats, x: Floats) -> Floats:
    """The best linear guess, by least squares on the simulated runs themselves: no formula of ours."""
    design = np.column_stack([np.ones(len(x)), own, others])
    weights, *_ = np.linalg.lstsq(design, x, rcond=None)
    return np.asarray(design @ weights)


CASES: list[tuple[str, Simulate, dict[str, Any]]] = [
    ("original", noise, {"n": 10, "s2": 4.0}),
    ("original", noise, {"n": 4, "s2": 4.0, "mu": 2.0, "target": "outside"}),
    ("original", noise, {"n": 5, "s2": 4.0, "mu": 2.0, "prior": (3.0, 1.0)}),
    ("noise", noise, {"n": 10, "s2": 4.0, "l2": 2.0}),
    ("noise", noise, {"n": 3, "s2": 1.0, "scale": 2.0, "mu": 1.0}),
    ("noise", noise, {"n": 6, "s2": 4.0, "l2": 9.0, "copies": 3}),
    ("noise", noise, {"n": 10, "s2": 4.0, "l2": 2.0, "target": "outside"}),
    ("noise", noise, {"n": 6, "s2": 4.0, "l2": 2.0, "mu": 1.0, "prior": (2.5, 1.5)}),
    ("noise", noise, {"n": 6, "s2": 4.0, "l2": 2.0, "mu": 1.0, "prior": (2.5, 1.5), "target": "outside"}),
    ("synthetic", synthetic, {"n": 10, "s2": 4.0, "a2": 0.4, "k": 10, "m": 5}),
    ("synthetic", synthetic, {"n": 10, "s2": 4.0, "a2": 0.4, "k": 10, "m": 5, "form": "naive"}),
    ("synthetic", synthetic, {"n": 6, "s2": 4.0, "k": 3, "m": 2, "target": "outside", "mu": 1.0}),
    ("synthetic", synthetic, {"n": 6, "s2": 4.0, "k": 3, "m": 2, "prior": (1.0, 2.0)}),
    ("synthetic", synthetic, {"n": 6, "s2": 4.0, "k": 3, "m": 2, "prior": (1.0, 2.0), "form": "naive"}),
    ("swapped", swapped, {"s2": 4.0, "d": 3.0, "rate": 0.2}),
    ("swapped", swapped, {"s2": 4.0, "d": 3.0, "rate": 0.5, "mu": 1.0}),
    ("swapped", swapped, {"s2": 1.0, "d": -2.0, "rate": 0.9, "areas": (4, 6), "partners": 3}),
    ("swapped", swapped, {"s2": 1.0, "d": 0.5, "rate": 0.6, "areas": (2, 5), "partners": 5}),
    ("swapped", swapped, {"s2": 2.0, "d": 1.5, "rate": 0.3, "areas": (5, 4), "candidates": 3}),
    ("swapped", swapped, {"s2": 2.0, "d": 1.5, "rate": 0.3, "areas": (5, 4), "candidates": 2, "prior": (1.0, 0.5)}),
    ("swapped", swapped, {"s2": 2.0, "d": 1.5, "rate": 0.7, "partners": 2, "mu": 1.0, "prior": (3.0, 4.0)}),
    ("swapped", swapped, {"s2": 2.0, "d": 1.5, "rate": 0.3, "areas": (5, 4), "candidates": 3, "target": "outside"}),
]


@pytest.mark.parametrize(("place", "method", "simulate", "given"), [(i, *c) for i, c in enumerate(CASES)])
def test_every_closed_form_is_what_happens(place: int, method: str, simulate: Simulate, given: dict[str, Any]) -> None:
    """Every closed form against 400,000 simulated runs within 4 standard errors."""
    point = mean(method, **given)
    found = simulated(simulate, given, seed=20_000 + place)
    wanted = dict(point.mse) | ({} if "prior" in given else {"user": point.user})
    assert set(wanted) <= set(found)
    for name, error in wanted.items():
        centre, spread = found[name]
        assert abs(centre - error) <= 4 * spread + 1e-12, (name, centre, error, spread)


def test_numbers_of_the_noise_example() -> None:
    """n = 10, s2 = 4, l2 = 2: 1.4 against 2.0 and 3.8; U = n/(s2 + l2)."""
    point = mean("noise", n=10, s2=4.0, l2=2.0)
    assert dict(point.mse) == pytest.approx({"mean": 3.8, "linked": 2.0, "shrunk": 1.4})
    assert (point.strongest, point.risk, point.utility) == ("shrunk", pytest.approx(1 / 1.4), pytest.approx(10 / 6))
    assert list(point.risks) == ["shrunk", "linked", "mean"]


def test_numbers_of_the_synthetic_example() -> None:
    """n = 10, s2 = 4, a2 = 0.4, k = 10, m = 5: 0.56, where the paper's form says 0.16, below the original's 0.40."""
    given: dict[str, Any] = {"n": 10, "s2": 4.0, "a2": 0.4, "k": 10, "m": 5}
    right, naive = mean("synthetic", **given), mean("synthetic", **given, form="naive")
    original = mean("original", n=10, s2=4.0, links=False)
    assert (right.user, naive.user, original.user) == pytest.approx((0.56, 0.16, 0.40))
    assert naive.user < original.user < right.user
    assert dict(right.mse)["mean"] == pytest.approx(0.9 * 4 + 0.16)
    assert dict(naive.mse) == pytest.approx({"mean": 4 + 8 / 50, "sample mean": 4.8, "synthetic record": 8.4})
    assert right.identity is None


def test_the_original_and_who_links() -> None:
    """R = n/((n-1) s2) for the mean; infinite with a certain link; the paper's form has the mean alone."""
    assert mean("original", n=10, s2=4.0, links=False).risk == pytest.approx(10 / 36)
    assert mean("original", n=10, s2=4.0, form="naive").risk == pytest.approx(10 / 36)
    assert (mean("original", n=10, s2=4.0).risk, mean("original", n=10, s2=4.0).strongest) == (inf, "linked")
    assert mean("original", n=10, s2=4.0, target="outside").risk == pytest.approx(1 / 4.4)
    assert mean("original", n=10, s2=4.0, prior=(0.0, 0.0), links=False).strongest == "prior"


@pytest.mark.parametrize("l2", [0.5, 3.99, 4.0, 4.01, 30.0])
def test_who_wins_where_under_noise(l2: float) -> None:
    """The mean is the better guess iff l2 >= s2; shrinking beats both, always."""
    naive = mean("noise", n=10, s2=4.0, l2=l2, form="naive")
    assert naive.strongest == ("mean" if l2 >= 4.0 else "linked")
    assert mean("noise", n=10, s2=4.0, l2=l2).strongest == "shrunk"
    assert mean("noise", n=10, s2=4.0, l2=l2, links=False).strongest == "mean"


def test_a_prior_between_knowing_nothing_and_mu() -> None:
    """The prior (mu, s2) is knowing mu: s2 l2/(s2 + l2); a wide one is a plain link; a sharp one wins alone."""
    given: dict[str, Any] = {"n": 10, "s2": 4.0, "l2": 2.0, "mu": 7.0}
    assert mean("noise", **given, prior=(7.0, 4.0)).mse["prior and linked"] == pytest.approx(8 / 6)
    assert mean("noise", **given, prior=(7.0, 1e9)).mse["prior and linked"] == pytest.approx(2.0)
    assert mean("noise", **given, prior=(9.0, 0.0)).risk == inf
    assert "prior" not in mean("noise", **given, prior=(9.0, 0.1), form="naive").mse


def exact_swap(p: Fraction, d: Fraction) -> dict[str, Fraction]:
    """Areas of 3 and 2 with values mu +- 1 (variance 1), by enumeration of all 2^5 files and both outcomes."""
    sums = dict.fromkeys(("loss", "user", "hedged", "undone", "mean"), Fraction(0))
    for signs in product((-1, 1), repeat=5):
        values = [Fraction(s) for s in signs[:3]] + [s - d for s in signs[3:]]
        for moves, chance in ((True, p), (False, 1 - p)):
            y = list(values)
            if moves:
                y[0], y[3] = y[3], y[0]
            x, weight = values[0], chance / 32
            area = sum(y[:3]) / 3
            sums["loss"] += weight * (x - y[0]) ** 2
            sums["undone"] += weight * (x - y[3]) ** 2
            sums["hedged"] += weight * (x - (1 - p) * y[0] - p * y[3]) ** 2
            sums["user"] += weight * (area - sum(y[3:]) / 2 - d) ** 2
            sums["mean"] += weight * (x - area) ** 2
    return sums


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("d", [Fraction(0), Fraction(3, 2), Fraction(-4)])
def test_the_swap_example_exactly(p: Fraction, d: Fraction) -> None:
    """Areas of 3 and 2: E(loss) = p (2 s2 + d^2); the difference of means has MSE 5/6 s2 + (5/6)^2 p d^2."""
    found = exact_swap(p, d)
    assert found["loss"] == p * (2 + d**2)
    assert found["user"] == Fraction(5, 6) + Fraction(25, 36) * p * d**2
    assert found["hedged"] == p * (1 - p) * (2 + d**2)
    point = mean("swapped", s2=1.0, d=float(d), rate=float(p))
    assert point.user == pytest.approx(float(found["user"]), abs=1e-12)
    named = {"linked": "loss", "undone": "undone", "hedged": "hedged", "mean": "mean"}
    for snooper, sum_ in named.items():
        assert point.mse[snooper] == pytest.approx(float(found[sum_]), abs=1e-12)
    naive = mean("swapped", s2=1.0, d=float(d), rate=float(p), form="naive")
    assert (dict(naive.mse), naive.identity) == ({"linked": pytest.approx(float(found["loss"]))}, float(1 - p))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.83, 1.0])
@pytest.mark.parametrize("d", [0.0, 1.0, 5.0])
def test_the_best_linear_snooper_of_a_swap(rate: float, d: float) -> None:
    """K = 1: p (1-p) (2 s2 + d2) s2 / (s2 + 2 p (1-p) d2); never behind another; a certain swap is undone."""
    q, s2 = rate * (1 - rate), 4.0
    point = mean("swapped", s2=s2, d=d, rate=rate)
    assert point.mse["best linear"] == pytest.approx(q * (2 * s2 + d**2) * s2 / (s2 + 2 * q * d**2), abs=1e-12)
    assert point.mse["best linear"] <= min(point.mse.values()) + 1e-12
    assert point.identity == max(1 - rate, rate)
    if rate in (0.0, 1.0):
        assert point.risk == inf or point.risk > 1e12


@pytest.mark.parametrize("partners", [1, 2, 5])
def test_the_identity_of_a_swapped_record(partners: int) -> None:
    """max(1-p, p/K), least at K/(K+1)."""
    rates = np.linspace(0, 1, 1201)
    risks = [mean("swapped", s2=1.0, d=1.0, rate=p, areas=(3, 5), partners=partners).identity for p in rates]
    assert rates[int(np.argmin(np.array(risks, dtype=float)))] == pytest.approx(partners / (partners + 1), abs=1e-3)
    assert min(r for r in risks if r is not None) == pytest.approx(1 / (partners + 1), abs=1e-3)


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("nois", {"n": 3, "s2": 1.0}, "Did you mean 'noise'"),
        ("noise", {"n": 3, "s2": 1.0}, "one of l2"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "scale": 1.0}, "one of l2"),
        ("noise", {"n": 3, "s2": 1.0, "l2": -1.0}, "l2 must be a finite number of at least 0"),
        ("noise", {"n": 0, "s2": 1.0, "l2": 1.0}, "n must be a whole number"),
        ("noise", {"n": 3, "s2": 0.0, "l2": 1.0}, "s2 must be a finite number above 0"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "target": "near"}, "'inside' or 'outside'"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "form": "true"}, "'corrected' or 'naive'"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "prior": (1.0,)}, "prior is a pair"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "prior": (1.0, -1.0)}, "variance of the prior"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "mu": "x"}, "takes numbers"),
        ("noise", {"s2": 1.0, "l2": 1.0}, "needs n"),
        ("noise", {"n": 3, "s2": 1.0, "l2": 1.0, "rate": 0.5}, "no parameter 'rate'"),
        ("synthetic", {"n": 3, "s2": 1.0, "m": 0}, "m must be a whole number"),
        ("synthetic", {"n": 3, "s2": 1.0, "a2": float("nan")}, "a2 must be"),
        ("swapped", {"s2": 1.0, "d": 1.0, "rate": 20}, "Write 20 % as 0.2"),
        ("swapped", {"s2": 1.0, "d": 1.0, "rate": 0.2, "areas": (3, 0)}, "areas must be"),
        ("swapped", {"s2": 1.0, "d": 1.0, "rate": 0.2, "partners": 3}, "fewer pairs"),
        ("swapped", {"s2": 1.0, "d": 1.0, "rate": 0.2, "partners": 2, "candidates": 2}, "no closed form"),
        ("swapped", {"s2": 1.0, "d": float("inf"), "rate": 0.2}, "d must be a finite"),
    ],
)
def test_bad_parameters_are_refused_in_words(method: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        mean(method, **given)
