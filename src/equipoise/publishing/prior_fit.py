"""Whether the prior of a publication fits its domains: residuals that are normal if it does, and their Q-Q chart."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from equipoise.beta_binomial.prior import Errors, Misfit, PriorFit, misfit, residuals
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError
from equipoise.presentation.style import BLUE, GREY, INK, Spec, chart, labels, layer, quantity
from equipoise.publishing.cells_of_domains import Domains

RESIDUAL_SEED = 1996
"""Public: it only says where within a step of its law each residual stands."""
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Residuals:
    """Randomised quantile residuals of the cells, in the order of the table, and the test that they are normal.

    Misleads when domains have several classes: their counts add up to n, so residuals of one domain depend on each
    other and the p-value is too large or too small; read the chart.
    """

    cells: pl.Series = field(repr=False)
    misfit: Misfit = field(repr=False)

    @property
    def words(self) -> str:
        return self.misfit.words

    def points(self) -> pl.DataFrame:
        """Of the Q-Q chart: expected and observed quantiles, and the 95 % range of each if the prior is right."""
        low, high = _range(self.misfit.expected, len(self.cells))
        return pl.DataFrame(
            {"expected": self.misfit.expected, "observed": self.misfit.observed, "low": low, "high": high}
        )

    def chart(self) -> Spec:
        """A Q-Q chart of the residuals against the normal law, as Vega-Lite."""
        return _chart(self.points(), self.words)


def checked(data: Domains, alpha: Floats, beta: Floats, *, seed: int = RESIDUAL_SEED) -> Residuals:
    """The residuals of each cell's y under its prior, Beta(alpha, beta); with weights, of the effective counts."""
    if data.configurations:
        raise ParameterError("A table of configurations with shares holds no domains to check the prior on.")
    y, n = data.column("y_eff"), data.column("n_eff")
    unknown = float("nan")
    prior = PriorFit(
        alpha, beta, alpha / (alpha + beta), alpha + beta, Errors(unknown, unknown, unknown, unknown), unknown, True,
        None, len(y), "as given",
    )  # fmt: skip
    uniform = np.random.Generator(np.random.PCG64(seed)).random(len(y))
    values = residuals(y, n, prior, np.clip(uniform, 1e-12, 1 - 1e-12))
    return Residuals(pl.Series("residual", values), misfit(values))


def _range(expected: Floats, count: int) -> tuple[Floats, Floats]:
    """Where each ordered residual falls with probability 95 %: quantiles of Beta(i, count + 1 - i), made normal."""
    from scipy.special import ndtr, ndtri
    from scipy.stats import beta

    place = np.rint(ndtr(expected) * count + 0.5)
    low, high = (beta.ppf(end, place, count + 1 - place) for end in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return np.asarray(ndtri(low)), np.asarray(ndtri(high))


def _chart(points: pl.DataFrame, words: str) -> Spec:
    values = points.to_numpy()
    high = float(np.ceil(2 * max(np.abs(values[:, :2]).max(), 1.0)) / 2)
    rows = [{name: round(value, 4) for name, value in row.items()} for row in points.iter_rows(named=True)]
    ends = [{"expected": end, "observed": end} for end in (-high, high)]
    band = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    area, dashed = {"type": "area", "color": GREY, "opacity": 0.18}, {"type": "line", "color": INK, "strokeWidth": 1}
    quiet, point = {"clip": True, "aria": False}, {"type": "point", "filled": True, "opacity": 0.8, "size": 26}
    corner = {"expected": high, "observed": -high, "label": "a right prior has 95 % of points in the band"}
    layers = [
        layer("qq_band", rows, {**area, **quiet}, band),
        layer("qq_line", ends, {**dashed, "strokeDash": [5, 4], **quiet}),
        layer("best", rows, {**point, "color": BLUE, "clip": True}, _tooltip()),
        labels("qq_label", [corner], align="right", dx=-4, dy=-10, fontStyle="italic"),
    ]
    title = {"text": "Does the prior fit?", "subtitle": "Residuals of the cells against the normal law."}
    words = f"Q-Q chart of the residuals against the normal law. {words}"
    return chart(layers, _axes(high), title=title, description=words, size=(420, 340))


def _tooltip() -> Spec:
    pairs = (("expected", "Expected"), ("observed", "Observed"))
    return {"tooltip": [{"field": f, "type": "quantitative", "title": name, "format": ".2f"} for f, name in pairs]}


def _axes(high: float) -> Spec:
    scale = {"domain": [-high, high], "zero": False}
    return {
        name: quantity(field, scale, title=title, tickCount=7, grid=name == "y")
        for name, field, title in (("x", "expected", "Normal quantile"), ("y", "observed", "Residual"))
    }
