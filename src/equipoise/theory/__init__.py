"""Closed forms of risk and utility, to check the empirical risk-utility map."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.theory.best import Best, best
    from equipoise.theory.mean import curve, mean
    from equipoise.theory.point import Theory

__all__ = ["Best", "Theory", "best", "curve", "mean"]

export_lazily(__name__, Theory="point", curve="mean")
