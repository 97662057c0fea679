"""Perturb amounts by the keys of the records in them, in proportion to the largest contributions."""

import re
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Law
from equipoise.data.tables.keyed_cells import KEY_UNITS, MAX_CONTRIBUTIONS, NONZERO
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import changed, whole, without
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Rule
from equipoise.methods.parameters import above, check_fields, share
from equipoise.tables._amount_noise import AmountNoise, Flex
from equipoise.tables._perturbation_table import generate_for_amounts, read_for_amounts
from equipoise.tables.audits.changed_tables import NoiseRoom

LITTLE_MOST, LITTLE_STEP = 5, 5
"""Largest change of little amounts, and steps in which one changes."""


@dataclass(frozen=True, slots=True)
class CellKeyAmounts:
    """Change each amount by noise that depends on the records in it alone: the same cell is changed alike everywhere.

    Each of the largest contributions x_j of a cell gets a unit of noise d_j = e_j x_j m(x_j), with e_j the `epsilons`
    and m the flex function: the share `small`, which from `point` on falls to `large`,
    m(x) = large (1 + (small x - large z) / (large z) (2 z / (z + x))^q), z = point; without a `point` it is `small`
    everywhere. One after the other, component j adds v_j d_j, where v_j is looked up in a perturbation table by a key
    made of the cell's key, at the amount in units of noise, a = X / d_j; between two rows of the table v is
    interpolated. Every v_j has mean 0 and variance at most `variance`, and the keys of components are independent, so
    the change has mean 0 and variance at most variance x (d_1^2 + d_2^2 + ...). No amount becomes negative.

    `basis`: the noise is in proportion to the largest `contributions` (of holdings where there are any; weighted ones),
    or to the cell's `mean`, its `range` or its `sum`. The table is made here (largest change `most` units, in steps of
    1 / `step`) or a file `ptable` as R's ptable writes it, in which a column type may tell cells of an even and an odd
    number of contributors apart (with one epsilon), and small cells. Those, with `little` their variance, are cells in
    which the largest contribution is below the point where both kinds of noise are as large: they change like counts,
    by up to 5 whatever they hold. `extra` units more are added to the first component where the `rule` calls a cell
    sensitive. `zeros` counts the keys of records whose value is 0 as well; `same_key` takes for the first component the
    key that counts are changed by: who knows the change of the count then knows something of that of the amount.

    Published are multiples of `unit`, which must not be finer than the values: digits below these show the noise alone,
    and with it the contribution that it is a share of.

    Source: Thompson, Broadfoot and Elazar (2013), *Methodology for the automatic confidentialisation of statistical
    outputs*; Giessing and Tent (2019), *Concepts for generalising tools implementing the cell key method to the case of
    continuous variables*; Hundepool et al. (2024), *Handbook on Statistical Disclosure Control*, section 4.6; the R
    packages cellKey (ck_params_nums) and ptable. Where cellKey 1.0.2 and tau-ARGUS differ it follows tau-ARGUS:
    epsilons count below `point` too, `extra` is for the first component, little contributions after the first add
    nothing. Keys of components are drawn afresh from the cell's key, not by turning its digits, which leaves components
    correlated by a tenth.
    Does not guard against an intruder who averages an amount that can be rebuilt from many cells, nor for sure against
    an estimate of the largest contribution by those next to it: the notes of a release say how likely it is close.
    Whoever has record keys and the table can undo it. Cost: O(cells).

    >>> frame = pl.DataFrame({"k": ["a", "a", "b"], "x": [700, 90, 400], "rkey": [0.3, 0.25, 0.9]})
    >>> made = eq.table(eq.Records.of(frame, eq.Roles("k")), "k", "x", key="rkey")
    >>> CellKeyAmounts(epsilons=(1.0,)).apply(made, Draws(1)).table.select("k", "value", "published").rows()
    [('Total', 1190.0, 1138.0), ('a', 790.0, 825.0), ('b', 400.0, 420.0)]
    """

    random: ClassVar[bool] = False

    small: float = 0.05
    large: float | None = None
    point: float = 0.0
    q: float = 3.0
    epsilons: tuple[float, ...] = (1.0, 0.5, 0.2)
    basis: Literal["contributions", "mean", "range", "sum"] = "contributions"
    most: int = 10
    variance: float = 3.0
    step: int = 2
    ptable: str | None = None
    little: float | None = None
    unit: float = 1.0
    extra: float = 0.0
    rule: Rule | None = None
    zeros: bool = False
    same_key: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilons", tuple(self.epsilons))
        check_fields(self, most=1, step=1)
        share(self.small, "small")
        above(self.q, "q", 1.0)
        for name in ("variance", "unit", *(["little"] if self.little is not None else [])):
            above(getattr(self, name), name)
        for name in ("extra", "point"):
            above(getattr(self, name), name, strict=False)
        if (self.large is None) != (self.point == 0):
            raise ParameterError("large and point go together: from the point on the share falls from small to large.")
        if self.large is not None:
            share(self.large, "large", self.small)
        self._check_epsilons()
        if self.ptable is not None and not isinstance(self.ptable, str):
            raise ParameterError("ptable must be the path of a file, or left out.")
        if self.extra and self.rule is None:
            raise ParameterError("extra is for sensitive cells: name the rule that says which these are.")

    def _check_epsilons(self) -> None:
        falling = all(0 <= e <= d for d, e in pairwise((1.0, *self.epsilons)))
        if not (1 <= len(self.epsilons) <= MAX_CONTRIBUTIONS and self.epsilons[0] == 1 and falling):
            raise ParameterError(
                f"epsilons are one to {MAX_CONTRIBUTIONS} shares, the first 1 and none above the one before."
            )
        if self.basis != "contributions" and len(self.epsilons) > 1:
            object.__setattr__(self, "epsilons", (1.0,))

    @property
    def ranks(self) -> int:
        """How many of the largest contributions the table must keep."""
        return len(self.epsilons)

    def apply(self, data: Table, draws: Draws) -> Table:
        table, values = whole(data, "CellKeyAmounts")
        if not table.measured:
            raise DataError("CellKeyAmounts is for tables of amounts: this one holds counts, for which CellKey is.")
        if f"key_{NONZERO}" not in table.more.columns:
            raise DataError(
                "The table has no cell keys: add record keys with tables.record_keys and name their column, "
                "eq.table(..., key='rkey')."
            )
        noise, contributions = self.noise(), self._contributions(table, values)
        extra = np.where(self.rule.flag(table).to_numpy(), self.extra, 0.0) if self.rule is not None else 0.0 * values
        noisy = noise.changed(values, contributions, self._keys(table), table.n % 2 == 1, extra)
        rounded, far = self._rounded(values, noisy, noise.farthest(values, contributions, extra))
        room = NoiseRoom(np.maximum(rounded - far, 0.0), rounded + far, noise, contributions, extra)
        used = [c for c in table.more.columns if c in ("key", "range") or re.fullmatch(r".+_nonzero|contribution\d", c)]
        return reduce(without, used, changed(table, rounded, self._law(noise, room)))

    def _rounded(self, values: Floats, noisy: Floats, far: Floats) -> tuple[Floats, Floats]:
        """Multiples of the unit, and how far from the value each may be: a change that rounding undoes is none."""
        occupied = values[values > 0]
        if len(occupied) and np.median(occupied) < self.unit:
            raise ParameterError(f"unit = {self.unit:g} is larger than most amounts of the table: say a smaller one.")
        rounded = np.round(noisy / self.unit) * self.unit
        whole_units = np.abs(values - np.round(values / self.unit) * self.unit) <= 1e-9 * np.maximum(values, self.unit)
        undone = whole_units & (far < self.unit / 2)
        return rounded, np.where(undone | (values == 0), 0.0, far + self.unit / 2)

    def noise(self) -> AmountNoise:
        """The law of the noise."""
        laws = read_for_amounts(self.ptable) if self.ptable else {
            "all": generate_for_amounts(self.most, self.variance, self.step)
        }  # fmt: skip
        if "odd" in laws and len(self.epsilons) > 1:
            raise ParameterError("A ptable for even and odd numbers of contributors goes with one epsilon: [1].")
        little = generate_for_amounts(LITTLE_MOST, self.little, LITTLE_STEP) if self.little else laws.get("small_cells")
        flex = Flex(self.small, self.large or self.small, self.point, self.q, self.epsilons)
        return AmountNoise(flex, laws["even" if "even" in laws else "all"], laws.get("odd"), little)

    def _contributions(self, table: Table, values: Floats) -> Floats:
        """What the noise of each component is in proportion to, a column for each."""
        if self.basis == "sum":
            return values[:, None]
        if self.basis == "mean":
            return np.divide(values, table.total, out=np.zeros(len(table)), where=table.total > 0)[:, None]
        if self.basis == "range":
            return table.numbers("range")[:, None]
        name = "contribution" if "contribution1" in table.more.columns else "top"
        ranks = [table.numbers(f"{name}{k}") for k in range(1, self.ranks + 1) if f"{name}{k}" in table.more.columns]
        if len(ranks) < self.ranks:
            raise DataError(
                f"The table keeps {len(ranks)} of its largest contributions: eq.table(..., top={self.ranks})."
            )
        return np.stack(ranks, 1)

    def _keys(self, table: Table) -> Floats:
        """A key for each component, made of the cell's key alone."""
        units = np.round(table.numbers("key" if self.zeros else f"key_{NONZERO}") * KEY_UNITS).astype(np.int64)
        keys = [COMPONENT_KEYS.uniform(pl.Series(units), j) for j in range(self.ranks)]
        return np.stack([units / KEY_UNITS, *keys[1:]] if self.same_key else keys, 1)

    def _law(self, noise: AmountNoise, room: NoiseRoom) -> Law:
        """What the public may know: the shares, the largest change and the variance, not the table."""
        most, variance = float(np.abs(noise.all.v).max()), float(noise.all.variance(np.unique(noise.all.i)).max())
        parameters = {"additive": False, "small": self.small, "large": self.large, "most": most,
                      "variance": round(variance, 6)}  # fmt: skip
        words = f"{self.words()}. The cells do not add up any more."
        return Law("cell_key_amounts", (), words, parameters, detail=room)

    def words(self) -> str:
        shares = f"{self.small:.3g}" if self.large is None else f"{self.small:.3g} (large ones {self.large:.3g})"
        basis = {"mean": "their mean", "range": "their range", "sum": "themselves"}.get(
            self.basis, f"their {self.ranks} largest contributions" if self.ranks > 1 else "their largest contribution"
        )
        return f"amounts changed by the keys of their records: by noise in units of {shares} times {basis}"


COMPONENT_KEYS = Draws(0).child(0)
"""A fixed function from a cell's key to those of its components: the secret is in the record keys."""
