"""Agreement patterns against enumeration of every pair; EM against a plain computation; thresholds by hand."""

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks._linkage import agreement_patterns
from equipoise.attacks._linkage.agreement_patterns import (
    Agreement,
    agreements,
    bits,
    code_files,
    count_agreement,
    decide,
    estimate,
    exact_counts,
)

# Domingo-Ferrer and Torra (2004), Table 1.
A = pl.DataFrame(
    {
        "name": ["Joan", "Pere", "J.M.", "Juan", "Ricardo", "Pere", "Juan", "Ricard"],
        "surname": ["Casanovas", "Joan", "Casanovas", "Garcia", "Garcia", "Garcia", "Garcia", "Tanaka"],
        "age": [19, 17, 35, 53, 14, 18, 18, 14],
    }
)
B = A.with_columns(
    pl.Series("name", ["Joan", "Pere", "J.Manel", "Juan", "Ricard", "Pere", "Juan", "Ricard"]),
    pl.Series("age", [19, 17, 35, 53, 14, 82, 18, 18]),
)


def enumerated(first: pl.DataFrame, second: pl.DataFrame) -> list[int]:
    """Every pair looked at."""
    found = [0] * (1 << first.width)
    for one, two in product(first.rows(), second.rows()):
        found[sum(1 << i for i, (x, y) in enumerate(zip(one, two, strict=True)) if x is not None and x == y)] += 1
    return found


def files(seed: int, width: int, here: int, there: int, gaps: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, width)

    def one(n: int) -> pl.DataFrame:
        texts = [[None if rng.random() < gaps else f"v{rng.integers(0, s)}" for _ in range(n)] for s in sizes]
        return pl.DataFrame({f"x{i}": pl.Series(column, dtype=pl.String) for i, column in enumerate(texts)})

    return one(here), one(there)


def test_table_1_by_enumeration() -> None:
    """The paper: 64 pairs, 8 possible coincidence vectors."""
    found = exact_counts(agreements(code_files(A, B)))
    assert found.tolist() == enumerated(A, B)
    assert found.sum() == 64
    # By hand: pairs with equal names 2x2 Pere + 2x2 Juan + 1 Joan + 1x2 Ricard; surnames 2x2 + 1 + 4x4 + 1.
    assert agreements(code_files(A, B))[[1, 2]].tolist() == [11, 22]


@pytest.mark.parametrize("seed", range(30))
def test_patterns_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = files(seed, int(rng.integers(1, 6)), *rng.integers(1, 61, 2).tolist(), float(rng.choice([0, 0.2])))
    assert exact_counts(agreements(code_files(first, second))).tolist() == enumerated(first, second)


def test_missing_agrees_with_nothing() -> None:
    nothing = pl.DataFrame({"x": pl.Series([None, None], dtype=pl.Int64), "y": [1.0, float("nan")]})
    assert exact_counts(agreements(code_files(nothing, nothing))).tolist() == [3, 0, 1, 0]
    assert exact_counts(agreements(code_files(nothing.cast({"x": pl.Null}), nothing))).tolist() == [3, 0, 1, 0]


def test_types_may_differ() -> None:
    """A recoded number is text: values are compared as they are written. Whole numbers equal floats."""
    number, text = pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": ["1", "0-9"]})
    assert agreements(code_files(number, text)).tolist() == [4, 1]
    assert agreements(code_files(number, number.cast(pl.Float64))).tolist() == [4, 2]
    assert agreements(code_files(text.cast(pl.Categorical), text)).tolist() == [4, 2]


def test_counts_stay_exact_beyond_floats() -> None:
    """3 x 10^8 records in one cell of each file: more pairs than a float can tell apart."""
    small = code_files(pl.DataFrame({"x": [1], "y": [1]}), pl.DataFrame({"x": [1], "y": [1]}))
    object.__setattr__(small, "first_counts", np.array([300_000_001]))
    object.__setattr__(small, "second_counts", np.array([300_000_007]))
    assert agreements(small).tolist() == [300_000_001 * 300_000_007] * 4


def test_too_many_or_unfit_variables_are_refused() -> None:
    wide = pl.DataFrame({f"x{i}": [1] for i in range(13)})
    with pytest.raises(eq.ParameterError, match="at most 12"):
        code_files(wide, wide)
    listed = pl.DataFrame({"x": [[1, 2]]})
    with pytest.raises(eq.RolesError, match="single values"):
        code_files(listed, listed)


# --- expectation-maximisation ---------------------------------------------------------------------------------------


def plain_em(counts: list[int], most: float, rounds: int) -> tuple[float, list[float], list[float]]:
    """The same model in plain Python: one pair's probabilities multiplied out, classes summed one by one."""
    width, total = len(counts).bit_length() - 1, sum(counts)
    edge = agreement_patterns.MIN_PROBABILITY
    u = [sum(c for s, c in enumerate(counts) if s >> i & 1) / total for i in range(width)]
    u = [min(max(x, edge), 1 - edge) for x in u]
    m, p = [max(0.9, x) for x in u], most
    for _ in range(rounds):
        matches, agree, others, differ = 0.0, [0.0] * width, 0.0, [0.0] * width
        for s, c in enumerate(counts):
            one = p * math.prod(m[i] if s >> i & 1 else 1 - m[i] for i in range(width))
            two = (1 - p) * math.prod(u[i] if s >> i & 1 else 1 - u[i] for i in range(width))
            g = one / (one + two)
            matches, others = matches + c * g, others + c * (1 - g)
            for i in range(width):
                agree[i] += c * g * (s >> i & 1)
                differ[i] += c * (1 - g) * (s >> i & 1)
        for i in range(width):
            m[i], u[i] = agree[i] / matches, differ[i] / others
            if m[i] < u[i]:
                m[i] = u[i] = (agree[i] + differ[i]) / total
        m, u = ([min(max(x, edge), 1 - edge) for x in xs] for xs in (m, u))
        p = min(matches / total, most)
    return p, m, u


@pytest.mark.parametrize("seed", range(6))
def test_em_is_that_of_a_plain_computation(seed: int) -> None:
    first, _ = files(seed, 4, 60, 60, 0.0)
    rng = np.random.default_rng(seed)
    second = first.with_columns(
        pl.Series(c, [x if rng.random() < 0.85 else y for x, y in zip(first[c], first[c].shuffle(seed), strict=True)])
        for c in first.columns
    )
    counts = exact_counts(agreements(code_files(first, second)))
    found = estimate(counts, 60, 60)
    share, m, u = plain_em(counts.tolist(), 1 / 60, found.rounds)
    assert found.share == pytest.approx(share, abs=1e-9)
    assert found.m == pytest.approx(m, abs=1e-7)
    assert found.u == pytest.approx(u, abs=1e-7)
    assert (found.m >= found.u).all()


def test_em_on_table_1_is_that_of_a_plain_computation() -> None:
    counts = exact_counts(agreements(code_files(A, B)))
    found = estimate(counts, 8, 8)
    share, m, u = plain_em(counts.tolist(), 1 / 8, found.rounds)
    assert (found.share, *found.m, *found.u) == pytest.approx((share, *m, *u), abs=1e-7)
    assert found.converged


def test_em_recovers_what_made_the_patterns() -> None:
    """Expected counts of the model itself: EM from its own start finds m, u and the share again."""
    truth = Agreement(1e-3, np.array([0.95, 0.9, 0.8, 0.97]), np.array([0.1, 0.3, 0.02, 0.05]))
    m, u = truth.of_patterns()
    pairs = np.round(1e12 * (truth.share * m + (1 - truth.share) * u)).astype(np.int64)
    found = estimate(pairs, 1000, 500)
    assert found.converged
    assert found.share == pytest.approx(truth.share, rel=1e-3)
    assert found.m == pytest.approx(truth.m, abs=1e-3)
    assert found.u == pytest.approx(truth.u, abs=1e-5)


def test_em_says_when_it_did_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement_patterns, "MAX_EM_ROUNDS", 3)
    found = estimate(exact_counts(agreements(code_files(A, B))), 8, 8)
    assert (found.rounds, found.converged) == (3, False)


def test_the_likelihood_never_falls() -> None:
    first, second = files(3, 5, 50, 60, 0.1)
    counts = exact_counts(agreements(code_files(first, second)))
    table, shares = bits(5), counts / counts.sum()
    now, before = Agreement(1 / 60, np.full(5, 0.9), np.full(5, 0.3)), -math.inf
    for _ in range(200):
        m, u = now.of_patterns()
        likely = float(shares @ np.log(now.share * m + (1 - now.share) * u))
        assert likely >= before - 1e-12
        before, now = likely, agreement_patterns._round(table, shares, now, 1 / 60)


def test_m_and_u_of_the_true_pairs() -> None:
    """Table 1 by hand: 6 of 8 true pairs agree on name, 8 on surname, 6 on age."""
    both, rows = code_files(A, B), np.arange(8)
    found = count_agreement(agreements(both), both.pattern(rows, rows))
    assert found.m.tolist() == [6 / 8, 1.0, 6 / 8]
    assert found.u[:2].tolist() == [(11 - 6) / 56, (22 - 8) / 56]


# --- decisions ------------------------------------------------------------------------------------------------------


def brute_decisions(rates: Agreement, mu: float, lam: float) -> list[int]:
    m, u = rates.of_patterns()
    w = rates.weights()
    made = []
    for s in range(len(w)):
        lost, false = m[w <= w[s]].sum() <= lam, u[w >= w[s]].sum() <= mu
        made.append(2 if false and (not lost or w[s] > 0) else 0 if lost else 1)
    return made


@pytest.mark.parametrize(("mu", "lam"), [(0.01, 0.01), (0.2, 0.001), (0.001, 0.3), (0.6, 0.6)])
def test_thresholds_keep_both_bounds(mu: float, lam: float) -> None:
    rates: Any = Agreement(0.01, np.array([0.95, 0.9, 0.8, 0.8]), np.array([0.1, 0.3, 0.2, 0.2]))
    found, (m, u) = decide(rates, mu, lam), rates.of_patterns()
    assert u[found == 2].sum() <= mu
    assert m[found == 0].sum() <= lam
    assert found.tolist() == brute_decisions(rates, mu, lam)


def test_weights_add_up() -> None:
    rates = Agreement(0.1, np.array([0.9, 0.8]), np.array([0.1, 0.4]))
    by_hand = [math.log2(0.1 / 0.9) + math.log2(0.2 / 0.6), math.log2(9) + math.log2(0.2 / 0.6)]
    by_hand += [math.log2(0.1 / 0.9) + 1, math.log2(9) + 1]
    assert rates.weights() == pytest.approx(by_hand, abs=1e-6)
