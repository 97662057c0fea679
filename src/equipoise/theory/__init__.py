"""Closed forms of risk and utility, to check the empirical risk-utility map."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.theory.best import Best as Best
    from equipoise.theory.best import best as best
    from equipoise.theory.mean import curve as curve
    from equipoise.theory.mean import mean as mean
    from equipoise.theory.point import Theory as Theory
    from equipoise.theory.response_error import ResponsePrecision as ResponsePrecision
    from equipoise.theory.response_error import finest_interval as finest_interval
    from equipoise.theory.response_error import response_intervals as response_intervals
    from equipoise.theory.uniques_after_noise import smallest_noise as smallest_noise
    from equipoise.theory.uniques_after_noise import uniques_after_noise as uniques_after_noise

export_lazily(__name__)
