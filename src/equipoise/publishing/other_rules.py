"""Other rules on the axes of a publication: what the wrong loss, or a simpler rule, would cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError, hint
from equipoise.losses.expectation import expected, plug_in, read
from equipoise.publishing.cell_losses import by_class, silence
from equipoise.publishing.trade_off import TradeOff, limit, ordered, ratios, tie_rank

if TYPE_CHECKING:
    from equipoise.publishing.publication import Publication


@dataclass(frozen=True, eq=False, repr=False)
class RuleComparison(Mapping[str, TradeOff]):
    """Rules by name, each a TradeOff in the losses of one publication; 'optimal' is its own."""

    of: "Publication"
    curves: Mapping[str, TradeOff]

    def __getitem__(self, name: str) -> TradeOff:
        if name not in self.curves:
            raise ParameterError(f"No rule {name!r}.{hint(str(name), list(self.curves))}")
        return self.curves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def at(self, *, risk_at_most: float | None = None, publish_share: float | None = None) -> pl.DataFrame:
        """A row per rule: risk and withheld there, both relative, and what it costs more than the optimal rule.

        With `risk_at_most` the cost is in data withheld, with `publish_share` in risk.
        """
        if (risk_at_most is None) == (publish_share is None):
            raise ParameterError("Give one of risk_at_most and publish_share.")
        if risk_at_most is not None:
            points = {name: curve.at_risk(limit(risk_at_most, "risk_at_most")) for name, curve in self.curves.items()}
            cost = [point.withheld - points["optimal"].withheld for point in points.values()]
        else:
            silent = 1 - limit(publish_share, "publish_share")
            points = {name: curve.at_silence(silent) for name, curve in self.curves.items()}
            cost = [point.risk - points["optimal"].risk for point in points.values()]
        columns = {"risk": [p.risk for p in points.values()], "withheld": [p.withheld for p in points.values()]}
        return pl.DataFrame({"rule": list(points), **columns, "cost": np.round(cost, 14) + 0.0})

    def table(self) -> pl.DataFrame:
        """Every curve, a row per rule and step."""
        parts = [curve.curve().with_columns(rule=pl.lit(name)) for name, curve in self.curves.items()]
        return pl.concat(parts).select("rule", "published", "withheld", "risk")

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.curves)})"


def rival(of: "Publication", disclosure: Any, nonpublication: Any, ties: Any = "stated") -> TradeOff:
    """The order of another pair of losses."""
    published = expected(by_class(read(disclosure), of.data), of.posterior)
    ratio = ratios(published, expected(silence(nonpublication, of.data), of.posterior))
    return _curve(of, ratio, ties)


def _curve(of: "Publication", ratio: Floats, ties: Any) -> TradeOff:
    keys = of.tie_keys
    if not isinstance(ties, str):
        keys = (tie_rank(ties, of.posterior.n, of.posterior.N), *keys)
    elif ties not in ("stated", "pooled"):
        raise ParameterError("ties must be 'stated', 'pooled' or a list of (n, N) in the order of publication.")
    own = of.trade_off
    return TradeOff(own.exposed, own.silent, *ordered(ratio, keys), pooled=isinstance(ties, str) and ties == "pooled")


def built_in(of: "Publication", ties: Any = "stated") -> dict[str, TradeOff]:
    """The usual rules.

    posterior mean: publish the largest E Y first (Pannekoek and de Waal 1998). weighted, synthetic: the losses at
    Y = N y/n, and at Y = N times the class's share of the whole sample, as if that were known. minimum count: the
    largest y first. random: cells drawn at random, in expectation a straight line.
    """
    law = of.posterior
    ones = np.ones(len(of))
    keys = {"posterior mean": ratios(ones, law.mean), "minimum count": ratios(ones, law.y)}
    for name, estimate in (("weighted estimate", _weighted(of)), ("synthetic estimate", _synthetic(of))):
        top = np.maximum(estimate, law.y)
        keys[name] = ratios(plug_in(of.loss, law, top), plug_in(of.nonpublication, law, top))
    curves = {name: _curve(of, key, ties) for name, key in keys.items()}
    own = of.trade_off
    flat = TradeOff(own.exposed, own.silent, own.order, np.zeros(len(of), dtype=np.int64), pooled=True)
    return {**curves, "random": flat}


def _weighted(of: "Publication") -> Floats:
    """N times the (weighted) share of the class in the domain's own sample."""
    return of.posterior.N * of.data.column("y_eff") / of.data.column("n_eff")


def _synthetic(of: "Publication") -> Floats:
    """N times the share of the class in the whole sample, by class."""
    y, n, share = of.data.column("y_eff"), of.data.column("n_eff"), of.share
    codes = of.data.classes()
    code = np.zeros(len(of), dtype=np.int64) if codes is None else codes.astype(np.int64)
    rate = np.bincount(code, weights=share * y) / np.bincount(code, weights=share * n)
    return of.posterior.N * rate[code]
