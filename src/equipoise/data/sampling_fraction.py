"""The sampling fraction of a file: given, or from its weights."""

from equipoise.data.cells import Cells
from equipoise.ground.errors import ParameterError

CENSUS_NOTE = "No sampling fraction was given and there are no weights: the file is taken for the whole population."


def check_fraction(fraction: float | None) -> None:
    """Refuse a sampling fraction outside (0, 1]."""
    if fraction is not None and not 0 < fraction <= 1:
        hint = " Write 5 % as 0.05." if fraction > 1 else ""
        raise ParameterError(f"fraction must be above 0 and at most 1, got {fraction:g}.{hint}")


def fraction_of(cells: Cells, fraction: float | None) -> tuple[float, tuple[str, ...]]:
    """Sampling fraction and notes on it: the one passed, else records / sum of weights, at most 1.

    >>> import polars as pl
    >>> fraction_of(Cells.of(pl.DataFrame({"k": [1, 2], "n": [1, 1], "total": [30.0, 10.0]})), None)
    (0.05, ())
    """
    if fraction is not None:
        return fraction, ()
    notes = (CENSUS_NOTE,) if bool((cells.total == cells.n).all()) else ()
    total = float(cells.total.sum())
    return (min(1.0, cells.records / total) if total > 0 else 1.0), notes
