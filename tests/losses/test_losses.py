"""Losses: their formulas, their expectations against plain sums, their text, their shape."""
# ruff: noqa: N803

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom

import equipoise as eq
from equipoise import losses
from equipoise.beta_binomial.posterior import Posterior, posterior
from equipoise.losses.expectation import LOSS_KINDS, LossShape, as_text, plug_in, read, shape, taylor

EACH = [
    losses.Uniques(10),
    losses.GammaUniques(10, 2),
    losses.Subclasses((0.5, 0.2, 0.1, 0.1, 0.05)),
    losses.Respondents(10),
    losses.SmallGroup(7.5),
    losses.Threshold(6),
    losses.Silence("cell"),
    losses.Silence("Y"),
]


@pytest.fixture(scope="module")
def cells() -> Posterior:
    y, n, N = np.array([(0, 5, 20), (1, 5, 20), (5, 5, 40), (3, 10, 200), (2, 50, 3000), (4, 4, 4)]).T  # noqa: N806
    return posterior(y, n, N, 0.5, 1.5)


@pytest.mark.parametrize("loss", EACH, ids=as_text)
def test_the_expectation_is_the_sum_over_all_populations(loss: Any, cells: Posterior) -> None:
    for place in range(len(cells)):
        y, n, N, m = (int(x[place]) for x in (cells.y, cells.n, cells.N, cells.rest))  # noqa: N806
        t = np.arange(m + 1)
        chance = betabinom(m, cells.a[place], cells.b[place]).pmf(t)
        wanted = sum(p * float(loss(y, y + k, n, N)) for k, p in zip(t.tolist(), chance, strict=True))
        assert losses.expected(loss, cells)[place] == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def test_formulas() -> None:
    assert losses.Uniques(10)(3, 5) == pytest.approx(3 * np.exp(-0.5))
    assert losses.GammaUniques(10, 2)(3, 5) == pytest.approx(3 / (1 + 5 / 20) ** 3)
    assert losses.Subclasses((0.5, 0.25))(3, 5) == pytest.approx(3 * (0.5 * np.exp(-2.5) + 0.25 * np.exp(-1.25)))
    assert losses.Respondents(10)(3, 5) == pytest.approx(np.exp(-0.3))
    assert losses.Respondents(10)(0, 5) == 0
    assert losses.SmallGroup(10)(0, 5) == pytest.approx(np.exp(-0.5))
    assert losses.Threshold(5)(1, 4) == 1
    assert losses.Threshold(5)(1, 5) == 0


def test_even_subclasses_are_uniques(cells: Posterior) -> None:
    even = losses.expected(losses.Subclasses((0.05,) * 20), cells)
    np.testing.assert_allclose(even, losses.expected(losses.Uniques(20), cells), rtol=1e-12)


def test_unequal_subclasses_leave_more_uniques(cells: Posterior) -> None:
    """The smaller a, the more uniques at a large population."""
    risks = [losses.expected(losses.GammaUniques(10, a), cells)[4] for a in (0.5, 1, 5, 50)]
    assert risks == sorted(risks, reverse=True)


@pytest.mark.parametrize("loss", EACH, ids=as_text)
def test_text_and_back(loss: Any) -> None:
    assert read(as_text(loss)) == loss
    assert read(loss) is loss
    assert hash(loss) == hash(read(as_text(loss)))
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(loss, fields(loss)[0].name, None)


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("uniques:10", losses.Uniques(10)),
        ("Uniques:S=10", losses.Uniques(10)),
        ("losses.Uniques(10)", losses.Uniques(10)),
        ("gamma-uniques:10,2", losses.GammaUniques(10, 2)),
        ("subclasses:keys=sex+age", losses.Subclasses(keys=("sex", "age"))),
        ("subclasses(shares=(0.5, 0.25))", losses.Subclasses((0.5, 0.25))),
        ("threshold:3", losses.Threshold(3)),
        ("y", losses.Silence("y")),
        ("silence:N", losses.Silence("N")),
    ],
)
def test_how_losses_are_written(text: str, loss: Any) -> None:
    assert read(text) == loss


def test_listed_losses_have_their_source_and_an_honest_line() -> None:
    for kind in LOSS_KINDS.values():
        assert "Source:" in (kind.__doc__ or "")
        assert "Misleads when" in (kind.__doc__ or "")
        assert kind.__name__ in losses.__all__


@pytest.mark.parametrize(
    ("loss", "known"),
    [
        (losses.Uniques(10), LossShape(True, True)),
        (losses.GammaUniques(10, 0.3), LossShape(True, True)),
        (losses.SmallGroup(1000), LossShape(True, True)),
        (losses.Respondents(3), LossShape(True, True)),
        (losses.Threshold(12), LossShape(True, False)),
        (lambda y, Y, n, N: Y / N, LossShape(False, True)),
        (lambda y, Y, n, N: np.exp(-((Y / 30) ** 2)), LossShape(True, False)),
    ],
)
def test_shape(loss: Any, known: LossShape, cells: Posterior) -> None:
    found = shape(loss, cells)
    assert found == known
    assert ("as it should" in found.words("x")) == (known == LossShape(True, True))


def test_taylor_of_a_function_is_that_of_the_formula(cells: Posterior) -> None:
    exact = taylor(losses.Uniques(100), cells)
    rough = taylor(lambda y, Y, n, N: y * np.exp(-Y / 100), cells)
    assert exact is not None
    assert rough is not None
    np.testing.assert_allclose(rough[[1, 2, 3, 5]], exact[[1, 2, 3, 5]], rtol=1e-3)
    assert taylor(losses.Threshold(3), cells) is None
    gap = losses.expected(losses.Uniques(100), cells) - plug_in(losses.Uniques(100), cells, cells.mean)
    assert (gap >= -1e-12).all()


def test_risks_of_any_cells() -> None:
    """Two cells merged are one: the sums of y, n and N."""
    R0, R1 = losses.risks([3, 2], [8, 10], [28, 40], 1, 10, disclosure="uniques:10", nonpublication="Y")  # noqa: N806
    assert R0[0] == pytest.approx(3 + 20 * 4 / 19)
    assert (R1 > 0).all()


BAD: list[tuple[Any, str]] = [
    ("uniqes:10", "Did you mean 'uniques'"),
    ("uniques:0", "S must be a finite number above 0"),
    ("uniques:nan", "S must be"),
    ("uniques:1,2", "at most 1 parameters"),
    ("uniques", "takes S"),
    ("uniques:S=1,T=2", "takes S"),
    ("subclasses", "either the shares"),
    ("subclasses(shares=(0.5, 2))", "above 0 and at most 1"),
    ("subclasses(shares=(0.7, 0.7))", "more than 1"),
    ("gamma_uniques:10,-1", "a must be"),
    ("silence:much", "'cell', 'y', 'Y', 'n' or 'N'"),
    (7, "function of"),
    (losses.Uniques, "function of"),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_refusals(given: Any, words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        read(given)


def test_a_loss_that_is_negative_or_no_number_is_refused(cells: Posterior) -> None:
    for bad in (lambda y, Y, n, N: -1.0 * Y, lambda y, Y, n, N: Y * np.nan, lambda y, Y, n, N: np.inf):
        with pytest.raises(eq.ParameterError, match="loss"):
            losses.expected(bad, cells)
