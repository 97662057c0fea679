"""Expected loss in each cell, the shape of a loss function, and losses read from text."""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise.beta_binomial.posterior import Posterior, evaluate_loss, posterior
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError, hint
from equipoise.ground.lazy_exports import snake
from equipoise.losses.gamma_uniques import GammaUniques
from equipoise.losses.respondents import Respondents
from equipoise.losses.silence import Silence, Unit
from equipoise.losses.small_group import SmallGroup
from equipoise.losses.subclasses import Subclasses
from equipoise.losses.threshold import Threshold
from equipoise.losses.uniques import Uniques
from equipoise.methods.method import label, name_of

Loss = Callable[..., Any]
"""A function of (y, Y, n, N), zero or more; the listed ones also know their expectation."""
LOSS_KINDS = {
    name_of(kind): kind for kind in (GammaUniques, Respondents, Silence, SmallGroup, Subclasses, Threshold, Uniques)
}
UNITS: tuple[str, ...] = get_args(Unit)
PER_CELL_NAMES = ("per cell", "per-cell", "per_cell")
MAX_SHAPE_CELLS = 40
"""Cells in which the shape of a loss is checked at most, from the smallest to the largest population."""


def read(loss: Any) -> Loss:
    """A loss from text, or the loss itself: 'uniques:10', 'gamma-uniques:10,2', 'uniques(S=10)', 'y', 'cell' (or 1).

    >>> read("uniques:10"), read("gamma_uniques(S=10, a=2)"), read("cell")
    (Uniques(S=10), GammaUniques(S=10, a=2), Silence(of='cell'))
    """
    loss = "cell" if isinstance(loss, str | int) and (loss == 1 or loss in PER_CELL_NAMES) else loss
    if isinstance(loss, str):
        return Silence(loss) if loss in UNITS else _parse(loss.strip())  # type: ignore[arg-type]
    if not callable(loss) or isinstance(loss, type):
        raise ParameterError("A loss is a name like 'uniques:10', one of eq.losses, or a function of (y, Y, n, N).")
    return loss


def as_text(loss: Any) -> str:
    """A loss as text that `read` understands; a function by its name."""
    if isinstance(loss, Silence):
        return loss.of
    return label(loss) if type(loss) in LOSS_KINDS.values() else str(getattr(loss, "__name__", "a function"))


def _parse(text: str) -> Loss:
    name, values = re.match(r"([\w.-]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    bare = snake(name.rpartition(".")[2]).replace("-", "_")
    if bare not in LOSS_KINDS:
        raise ParameterError(f"No loss {name!r}.{hint(bare, list(LOSS_KINDS))}")
    kind = LOSS_KINDS[bare]
    inside = values[1:-1] if values.startswith("(") and values.endswith(")") else values.removeprefix(":")
    order = [f.name for f in fields(kind)]
    parameters: dict[str, Any] = {}
    for place, part in enumerate(_split(inside)):
        key, mark, value = part.partition("=")
        if not mark and place >= len(order):
            raise ParameterError(f"{name} takes at most {len(order)} parameters: {', '.join(order)}.")
        parameters[key.strip() if mark else order[place]] = _value(value if mark else part)
    try:
        parsed: Loss = kind(**parameters)
    except TypeError:
        raise ParameterError(f"{name} takes {', '.join(order)}.") from None
    return parsed


def _split(text: str) -> list[str]:
    """Parts between commas that are not inside brackets."""
    parts = re.split(r",(?![^(\[]*[)\]])", text)
    return [part.strip() for part in parts if part.strip()]


def _value(text: str) -> Any:
    """A number, a tuple, or words: 'sex+age' is two of them."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return tuple(text.split("+")) if "+" in text else text


def expected(loss: Loss, cells: Posterior) -> Floats:
    """Expected loss E loss(y, Y, n, N) in each cell; refused if it is negative or not a number."""
    expectation = loss.expected(cells) if hasattr(loss, "expected") else cells.expect(loss)
    values = np.array(expectation, dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"The expected loss is not finite in {int((~np.isfinite(values)).sum()):,} cells.")
    if (values < 0).any():
        raise ParameterError("The loss is negative: a loss must be zero or more.")
    return values


def risks(
    y: ArrayLike,
    n: ArrayLike,
    N: ArrayLike,  # noqa: N803
    alpha: ArrayLike,
    beta: ArrayLike,
    *,
    disclosure: Any,
    nonpublication: Any,
    effective: tuple[Any, Any] | None = None,
) -> tuple[Floats, Floats]:
    """R0 and R1 of any cells, also merged ones: the expected losses of suppressing and of publishing.

    >>> R0, R1 = risks([1, 2, 3], 3, 8, 1, 10, disclosure="uniques:10", nonpublication="y")
    >>> R0.tolist(), R1.round(3).tolist()
    ([1.0, 2.0, 3.0], [0.846, 1.479, 1.939])
    """
    cells = posterior(y, n, N, alpha, beta, effective=effective)
    return expected(read(nonpublication), cells), expected(read(disclosure), cells)


@dataclass(frozen=True)
class LossShape:
    """Shape of a loss in the population of a cell; a disclosure loss should be decreasing and convex."""

    decreasing: bool
    convex: bool

    def words(self, name: str) -> str:
        if self.decreasing and self.convex:
            return f"{name} falls as a cell's population grows, ever more slowly (monotone and convex), as it should."
        lacks = ["does not fall"] if not self.decreasing else []
        lacks += ["is not convex"] if not self.convex else []
        return (
            f"{name} {' and '.join(lacks)} in the population of a cell: larger groups should be safer, "
            "each further person adding less."
        )


def shape(loss: Loss, cells: Posterior) -> LossShape:
    """Whether a loss falls (or stays) and is convex in Y, on a grid from y to N in up to 40 different cells."""
    few, _ = cells.kinds
    places = np.linspace(0, len(few) - 1, min(MAX_SHAPE_CELLS, len(few))).astype(int)
    some = few.take(np.argsort(few.rest, kind="stable")[places])
    steps = np.unique(np.concatenate([np.arange(33), np.geomspace(33, 1e9, 200).round()]))
    t = np.minimum(steps, some.rest[:, None])
    values = evaluate_loss(loss, some.y[:, None], some.y[:, None] + t, some.n[:, None], some.N[:, None])
    rise, run = np.diff(values, axis=1), np.diff(t, axis=1)
    slack = 1e-12 * np.abs(values).max(axis=1, initial=0.0, keepdims=True)
    slope = np.divide(rise, run, out=np.zeros_like(rise), where=run > 0)
    pairs = (run[:, :-1] > 0) & (run[:, 1:] > 0)
    bent = (slope[:, 1:] - slope[:, :-1] >= -slack) | ~pairs
    return LossShape(decreasing=bool((rise <= slack).all()), convex=bool(bent.all()))


def plug_in(loss: Loss, cells: Posterior, estimate: Floats) -> Floats:
    """The loss at an estimate of Y, as if it were known."""
    return evaluate_loss(loss, cells.y, estimate, cells.n, cells.N)


def taylor(loss: Loss, cells: Posterior) -> Floats | None:
    """Taylor approximation L(E Y) + L''(E Y) Var Y / 2; None for a loss with jumps. Functions are differenced."""
    if isinstance(loss, Threshold):
        return None
    at = plug_in(loss, cells, cells.mean)
    if hasattr(loss, "bend"):
        return np.asarray(at + loss.bend(cells.y, cells.mean, cells.n, cells.N) * cells.variance / 2)
    h = np.maximum(0.1 * np.sqrt(cells.variance), 1e-3)
    sides = plug_in(loss, cells, cells.mean + h) + plug_in(loss, cells, np.maximum(cells.mean - h, 0.0))
    return np.asarray(at + (sides - 2 * at) / h**2 * cells.variance / 2)
