"""Closed forms of risk and utility, to check the empirical risk-utility map."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.theory.best import Best as Best
    from equipoise.theory.best import best as best
    from equipoise.theory.mean import curve as curve
    from equipoise.theory.mean import mean as mean
    from equipoise.theory.point import Theory as Theory

export_lazily(__name__)
