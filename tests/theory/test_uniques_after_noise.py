"""Uniques of noisy numbers: the sum against two records in closed form, simulation, and the attack itself."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import equipoise as eq


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
def test_two_records_in_closed_form(scale: float) -> None:
    """|e1| < |d + e2| iff (d + e2 - e1)(d + e2 + e1) > 0, independent: F^2 + (1 - F)^2 with F = F(d / (l sqrt 2))."""
    l2 = scale * 0.5
    chance = norm.cdf(1 / (l2 * np.sqrt(2)))
    found = eq.theory.uniques_after_noise([0.0, 1.0], [scale])["found"][0]
    assert found == pytest.approx(chance**2 + (1 - chance) ** 2, abs=2e-3)


def test_no_noise_finds_those_who_are_alone_with_their_value() -> None:
    """Three of one value count a third each: (1 + 1 + 3 / 3) / 5."""
    assert eq.theory.uniques_after_noise([1.0, 2.0, 7.0, 7.0, 7.0], [0.0])["found"][0] == pytest.approx(0.6)


@pytest.mark.parametrize("scale", [0.02, 0.2, 1.0])
def test_the_share_is_what_the_nearest_record_finds(scale: float) -> None:
    """400 draws of 120 skewed numbers: the mean share found is within four of its standard errors, and a rounding."""
    rng = np.random.default_rng(4)
    values = rng.lognormal(3, 1, 120)
    sd = scale * values.std()
    noisy = values[None, :] + sd * rng.standard_normal((400, 120))
    nearest = np.abs(noisy[:, None, :] - values[None, :, None]).argmin(axis=2)
    shares = (nearest == np.arange(120)).mean(axis=1)
    error = shares.std() / np.sqrt(400)
    assert eq.theory.uniques_after_noise(values, [scale])["found"][0] == pytest.approx(
        shares.mean(), abs=4 * error + 2e-3
    )


def test_the_mask_and_the_attack_of_the_package_agree() -> None:
    rng = np.random.default_rng(9)
    table = pl.DataFrame({"id": range(300), "pay": rng.lognormal(3, 1, 300)})
    records = eq.read(table, eq.Roles(numeric="pay", id="id"))
    found = []
    for seed in range(12):
        released = eq.Recipe([eq.masks.Noise(["pay"], 0.1)], seed).run(records)
        found.append(eq.attacks.Nearest(["pay"]).measure(released, records).value)
    expected = eq.theory.uniques_after_noise(table["pay"].to_list(), [0.1])["found"][0]
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / np.sqrt(12) + 2e-3)


def test_the_smallest_noise_keeps_the_limit_and_less_does_not() -> None:
    values = np.random.default_rng(2).normal(size=200)
    scale = eq.theory.smallest_noise(values, 0.05)
    kept, less = eq.theory.uniques_after_noise(values, [scale, 0.9 * scale])["found"]
    assert kept <= 0.05 < less
    assert eq.theory.smallest_noise([1.0, 1.0, 1.0], 0.5) == 0


def test_what_noise_cannot_do_is_refused() -> None:
    with pytest.raises(eq.InfeasibleError, match="3 standard deviations"):
        eq.theory.smallest_noise([0.0, 1.0], 0.4)
    with pytest.raises(eq.DataError, match="finite"):
        eq.theory.uniques_after_noise([], [1.0])
    with pytest.raises(eq.ParameterError, match="found_at_most"):
        eq.theory.smallest_noise([0.0, 1.0], 1.5)


@pytest.mark.parametrize("l2", [0.5, 2.0, 7.0])
def test_a_private_size_of_noise_helps_and_never_hurts(l2: float) -> None:
    """Among all linear guesses his is the best on average over the sizes, and none beats who knows the size."""
    known = eq.theory.mean("noise", n=10, s2=4.0, l2=l2).mse["shrunk"]
    guessed = eq.theory.mean("noise", n=10, s2=4.0, l2=l2, private=(0.0, 8.0)).mse["guessed"]
    assert guessed >= known - 1e-12
    sizes = np.linspace(0.0, 8.0, 2001)

    def error(own: float, size: float) -> float:
        others = (4.0 + size) / 9
        return (1 - own) ** 2 * (4.0 + others) + own**2 * size

    weights = np.linspace(0, 1, 1001)
    best = weights[np.argmin([np.mean(error(own, sizes)) for own in weights])]
    assert guessed == pytest.approx(error(best, l2), rel=2e-3)


def test_a_private_scale_is_on_the_curve() -> None:
    """The map along the scale: below its mean square the guess errs on one side, above on the other; equal there."""
    curve = eq.theory.curve("noise", "scale", [0.2, 1.0, 1.8], n=50, s2=1.0, private=(0.0, np.sqrt(3.0)))
    plain = eq.theory.curve("noise", "scale", [0.2, 1.0, 1.8], n=50, s2=1.0)
    ratio = (curve["guessed"] / plain["shrunk"]).to_list()
    assert ratio[1] == pytest.approx(1.0)
    assert ratio[0] > 1.1
    assert ratio[2] > 1.1
    assert (curve["risk"] <= plain["risk"]).all()
    with pytest.raises(eq.ParameterError, match="pair"):
        eq.theory.mean("noise", n=10, s2=4.0, l2=2.0, private=(3.0, 1.0))
