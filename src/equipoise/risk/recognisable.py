"""Match probability after post-randomization, for an intruder who also reads the other released columns."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.cells import by_record
from equipoise.data.records import Records
from equipoise.data.released_terms import by_id, rows
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import ParameterError, require_columns
from equipoise.laws.move_records import MovePlan, plan_of
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson
from equipoise.risk._block_intruders import BlockFile

UNREAD_TYPES = (nw.Binary, nw.Object)


@dataclass(frozen=True, slots=True)
class Recognisable:
    """Probability that a sample unique is recognised after Pram by keys and other released columns, as measured.

    An intruder who knows a person's keys, the law of the mask and the original counts weighs the N records of the
    person's block: an assignment of records to original cells has the probability prod P(z_i | c_i) f(y_i | c_i), up to
    a factor, z being released keys and y the other columns (all of them, or `columns`); the posterior of each record is
    the sum over assignments that respect the counts, exact for blocks of about a dozen cells. f(y | c) is learnt by
    naive Bayes, by boosted trees, and by both, from true pairs of keys and columns outside the fold of the block: no
    intruder has more to learn from. Each kind of evidence is calibrated, so that what it is 80 % sure of is right in
    80 %.

    value = the largest of: the mean over sample uniques of the probability of the best guess, by the strongest
    intruder; the share of them for whom that guess is right; and the bound by the law of the mask, from the keys alone.
    Without sample uniques the people of the smallest cells are taken. `risk` in the detail is that of each cell (a
    limit with `worst = true` binds the largest); the baseline is the bound by the keys alone. A file whose keys were
    only coarsened has 1 / T. Needs the extra `learn` where other columns are released beside moved keys.

    Source: Bayes' rule on the candidates of Nayak (2015), section 2a; on counts given, the permanent of the weights
    (blocks too large for it: Bethe's approximation). Misleads when the intruder knows more than keys and release.
    Cost: O(records x keys x columns) and four fits of trees, some seconds for 100,000 records.

    >>> Recognisable()
    Recognisable(columns=None)
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        plan = plan_of(released)
        others = self._others(released, plan)
        if not others or not len(plan.law.moving):
            return self._by_keys(released, plan)
        file = _block_file(released, original, plan, others)
        intruders = {name: file.posteriors(kind) for name, kind in file.evidence().items()}
        return self._score(released, file, intruders)

    def _others(self, released: Records, plan: MovePlan) -> tuple[str, ...]:
        """The released columns that are neither keys nor withheld, and whose values can be compared."""
        schema, roles = released.schema(), released.roles
        require_columns(self.columns or (), schema)
        withheld = {*plan.units.cells.by, roles.id, *roles.direct, None if plan.units.of_people else roles.household}
        columns = (c for c in self.columns or schema if c not in withheld)
        return tuple(c for c in columns if not schema[c].is_nested() and schema[c] not in UNREAD_TYPES)

    def _by_keys(self, released: Records, plan: MovePlan) -> Score:
        """The bound by the law of the mask: there is nothing else to read."""
        risks = plan.law.match()
        coarsened = released.coarsened and plan.units.of_people
        return Score(
            label(self),
            float(risks.max()),
            baseline=float(risks.max()),
            unit="probability",
            notes=("Nothing but the keys is released that could tell moved records.",),
            cells=lambda: _detail(plan, risks),
            records=(lambda: by_record(released, plan.units.cells, risks)) if coarsened else None,
        )

    def _score(self, released: Records, file: BlockFile, intruders: dict[str, tuple[Floats, Floats]]) -> Score:
        law = file.plan.law
        by_keys, rare = law.match(), law.counts == law.counts.min()
        bound, people = float(by_keys.max()), int(law.counts[rare].sum())
        means = {
            name: (_mean(best, by_keys, rare), _mean(right, by_keys, rare)) for name, (best, right) in intruders.items()
        }
        strongest = max(means, key=lambda name: max(means[name]))
        mean, share = means[strongest]
        value = max(bound, mean, share)
        tried = float(law.counts[rare & ~np.isnan(intruders[strongest][0])].sum())
        low, high = wilson(share, tried)[0], wilson(max(mean, share), tried)[1]
        risks = np.fmax(by_keys, np.fmax.reduce([best for best, _ in intruders.values()]))
        return Score(
            label(self),
            value,
            interval=(min(low, value), max(high, value)),
            baseline=bound,
            number=value * people,
            unit="probability",
            notes=(
                f"By the keys alone a match is right with probability {bound:.4g} at most.",
                f"With {file.others.width:,} other columns, by {strongest}: {mean:.4g} on average for the {people:,} "
                f"people of the smallest cells (guesses right: {share:.4g}), {float(risks.max()):.4g} at worst.",
            ),
            cells=lambda: _detail(file.plan, risks),
            records=lambda: rows(released, risk=risks[file.cells_of_rows()]),
        )


def _mean(values: Floats, by_keys: Floats, rare: Booleans) -> float:
    """Mean over people of the smallest cells; those that do not move are recognised by their keys alone."""
    present = rare & ~np.isnan(values)
    return float(values[present].mean()) if present.any() else float(by_keys[rare].mean())


def _block_file(released: Records, original: Records, plan: MovePlan, others: tuple[str, ...]) -> BlockFile:
    """Both files unit by unit; the keys before the move as the mask had them."""
    laws = released.history
    place = next(i for i, law in enumerate(laws) if law.detail is plan)
    if any({*law.columns} & {*plan.units.cells.by} for law in laws[place + 1 :]):
        raise ParameterError("A key was changed after Pram: moved records can no longer be told. Change it before.")
    household = released.roles.household
    columns = (*plan.units.cells.by, *((household,) if household else ()))
    _, before = aligned(released, plan.before or original, columns)
    table = by_id(released, tuple(dict.fromkeys((*columns, *others))))
    cells, places, starts = plan.moving_units(before, household)
    return BlockFile(plan, cells, plan.cells_after(table, places, starts), places, starts, table.select(others))


def _detail(plan: MovePlan, risks: Floats) -> pl.DataFrame:
    if not plan.units.of_people:
        return pl.DataFrame({"n": plan.law.counts, "risk": risks})
    return plan.units.cells.table_with(risk=risks).drop("total")
