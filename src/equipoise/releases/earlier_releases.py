"""Audit of a release of records together with the earlier releases of the same people, before anything is written.

Whoever has two releases knows of each person the class in both: bands of 3 and of 5 years are bands of 1 (Ganta,
Kasiviswanathan and Smith, 2008, *Composition attacks and auxiliary information in data privacy*). Rows are taken to be
linkable across releases, the worst case: a person hides only among those who are in the same classes in all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise import risk
from equipoise.data import engines
from equipoise.data.cells import count
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EquipoiseError, RefusedError
from equipoise.ground.packed_keys import code
from equipoise.methods.score import Score
from equipoise.policies.limits import Limit, limits_of
from equipoise.policies.policy import Policy
from equipoise.policies.scoped_measures import scale
from equipoise.presentation.numbers import number
from equipoise.provenance.people_tokens import TRUE, look_up
from equipoise.provenance.seed_register import EarlierRelease, RegisterView
from equipoise.recipe.catalogue import family
from equipoise.recipe.recipe import Recipe

CLASS_MEASURES = (
    risk.Uniques, risk.KAnonymity, risk.Individual, risk.Household, risk.Composition, risk.Prosecutor,
    risk.SpecialUniques, risk.PopulationUniques, risk.AttributeDisclosure,
)  # fmt: skip
"""Risks of the classes of a release: measured again on the classes of all releases together."""
TRUTHFUL_MASKS = ("local_suppress", "local_recode", "suppress_records")
"""Masks that change no value to another: blanks and categories, which intersect as coarsenings do."""
ROW_MASKS = ("sample", "shuffle_order")
"""Masks after which rows are not where they were."""
TOLERANCE = 1e-12
"""A risk that is not this much larger than that of the earlier releases alone has not grown."""
TRACE = "__eq_row"


@dataclass(frozen=True, eq=False, repr=False)
class JointView:
    """A release and the earlier ones of its people; `rows` has the record of the original that each released one is.

    `display` are the tokens of what the release shows, a row per released record.
    """

    released: Records
    rows: Integers
    display: pl.DataFrame
    view: RegisterView

    @cached_property
    def earlier(self) -> tuple[EarlierRelease, ...]:
        """The earlier releases of records that show anything else than this one."""
        records = [one for one in self.view.earlier if one.entry["kind"] == "records"]
        return tuple(one for one in records if not one.table.head(one.entry["records"]).equals(self.display))

    @property
    def changed(self) -> tuple[str, ...]:
        """The columns whose values were changed, not only coarsened or blanked."""
        return changed_columns(self.released)

    def records(self, policy: Policy, *, own: bool = True) -> Records:
        """The released records, each key its class in all releases together; without `own` in the earlier ones."""
        scenario_keys = [column for scenario in policy.scenarios for column in scenario.known]
        keys = [column for one in self.earlier for column in one.entry["keys"]]
        columns = dict.fromkeys((*self.released.roles.keys, *keys, *scenario_keys))
        classes = [pl.Series(column, self._classes(column, own)) for column in columns]
        roles, table = self.released.roles, self.released.collect().with_columns(classes)
        table = table if own else table.filter(pl.Series(self._released_before))
        roles = replace(
            roles, keys=tuple(dict.fromkeys((*roles.keys, *keys))), hierarchies={}, missing="category",
            sensitive=tuple(c for c in roles.sensitive if c not in columns),
            numeric=tuple(c for c in roles.numeric if c not in columns),
        )  # fmt: skip
        return replace(self.released, frame=engines.like(self.released.frame, table), roles=roles)

    @property
    def _released_before(self) -> NDArray[np.bool_]:
        return np.any([one.places[self.rows] >= 0 for one in self.earlier], axis=0)

    def _classes(self, column: str, own: bool) -> Integers:
        """The meet of the partitions by what each release shows in a column, or by who is in it."""
        parts = [self.display[column]] if own and column in self.display.columns else []
        for one in self.earlier:
            name = column if column in one.table.columns else one.table.columns[0]
            tokens = one.tokens(name, self.rows)
            parts.append(tokens if name == column else tokens.is_null())
        return meet(parts)

    def refuse_changed(self) -> None:
        """Refuse a column that was changed otherwise before: two draws can be averaged, or show who moved."""
        for one in self.earlier:
            for column, earlier in self._same_columns(one):
                if column in self.changed or earlier in one.entry.get("changed", ()):
                    before = one.tokens(earlier, self.rows)
                    now = pl.Series(self.view.tokens.of_column(self._table[column], earlier))
                    others = int((before.is_not_null() & (before != now)).sum())
                    if others:
                        raise RefusedError(_changed_words(column, others, one))

    @cached_property
    def _table(self) -> pl.DataFrame:
        return self.released.collect()

    def _same_columns(self, one: EarlierRelease) -> Iterator[tuple[str, str]]:
        """Columns of this release and of an earlier one that are the same, by name or else by people's true values."""
        pairs = [(own, earlier) for earlier, own in one.other_names(self.view.tokens).items()]
        for own, earlier in [*((column, column) for column in self._table.columns), *pairs]:
            if own in self.display.columns and earlier in one.table.columns:
                yield own, earlier


def changed_columns(released: Records) -> tuple[str, ...]:
    """The columns in which a mask put other values than the true ones."""
    laws = [law for law in released.history if not law.coarsens and law.mask not in TRUTHFUL_MASKS]
    return tuple(dict.fromkeys(column for law in laws for column in law.columns))


def _changed_words(column: str, others: int, one: EarlierRelease) -> str:
    return (
        f"Nothing was released: {column!r} was released before with other masks or parameters ({one.words}), and "
        f"{number(others)} records have another value in it now. Whoever has both can average them (the standard "
        "deviation of two draws of noise is 29 % smaller) or see who moved. Use the masks and the records of that "
        "release, or leave the column out."
    )


def meet(parts: Sequence[pl.Series]) -> Integers:
    """The coarsest partition that is finer than all of these: records are alike that are alike in each.

    >>> meet([pl.Series([1, 1, 2, 2]), pl.Series(["a", "b", "b", "b"])]).tolist()
    [0, 1, 2, 2]
    """
    classes = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        coded = code(part)
        classes = np.unique(classes * coded.size + coded.codes, return_inverse=True)[1]
    return classes


def view_of(
    released: Records, view: RegisterView, recipe: Recipe, *, records: Records, draw: int, withheld: Sequence[str]
) -> JointView:
    """What a release shows of whom, beside what was shown before. O(values) of the release."""
    if released.synthetic:
        people = pl.DataFrame(view.tokens.all())
        return JointView(released, np.arange(people.height), people, view)
    table = released.collect()
    rows = _rows(released, table, records, recipe, draw, view)
    display = view.tokens.of_values(table.drop(withheld, strict=False))
    true = {name: tokens[rows] for name, tokens in view.tokens.of_true_values(display).items()}
    true = {name: values for name, values in true.items() if (values != display[name.removeprefix(TRUE)]).any()}
    owners = {basis: tokens[rows] for basis, tokens in view.tokens.all().items()}
    return JointView(released, rows, pl.DataFrame({**owners, **display, **true}, height=table.height), view)


def _rows(
    released: Records, table: pl.DataFrame, records: Records, recipe: Recipe, draw: int, view: RegisterView
) -> Integers:
    """The record of the original that each released one is."""
    name, original = records.roles.id, view.tokens.table
    if name:
        both = pl.concat([original[name].cast(pl.String), table[name].cast(pl.String)])
        codes = code(both).codes.astype(np.int64)
        return look_up(codes[original.height :], codes[: original.height])
    if not any(law.mask in ROW_MASKS for law in released.history) and table.height == original.height:
        return np.arange(original.height)
    return _traced(records, recipe, draw)


def _traced(records: Records, recipe: Recipe, draw: int) -> Integers:
    """Run the recipe once more with a row number: the draws are those of the content, kept as an id."""
    keys = records.keys_of_rows()
    table = records.collect().with_columns(keys.alias(TRACE))
    roles = replace(records.roles, id=TRACE)
    traced = recipe.run(replace(records, frame=engines.like(records.frame, table), roles=roles), draw)
    codes = code(pl.concat([keys, traced.collect(TRACE)[TRACE]])).codes.astype(np.int64)
    return look_up(codes[len(keys) :], codes[: len(keys)])


@dataclass(frozen=True)
class Broken:
    """A limit that holds for a release, and not for it together with the earlier ones."""

    limit: Limit
    score: Score


def audit(joint: JointView, policy: Policy) -> tuple[str, ...]:
    """Refuse a release that breaks a limit together with the earlier ones; else what to say of it.

    Every limit on classes is measured again on the joint classes, of the people of this release; who left since an
    earlier one is priced. A limit that the earlier releases break by themselves, and this one no further, does not
    refuse. Cost: that of the measures, and a sort of the records for each key and release.
    """
    if not joint.earlier or joint.released.synthetic:
        return _synthetic_notes(joint)
    after, before = joint.records(policy), joint.records(policy, own=False)
    broken, unaudited, worse = [], [], False
    for score_name, text in policy.limits.items():
        scores = _scores(score_name, policy, after, before)
        if scores is None:
            unaudited += [score_name] if _is_risk(score_name, policy) else []
            continue
        limits = [limit for limit in limits_of(score_name, text) if not limit.holds(scores[0])]
        worse = worse or bool(limits)
        broken += [Broken(limit, scores[0]) for limit in limits if _grown(*scores)]
    if broken:
        raise RefusedError(_refusal(broken[0], joint.earlier))
    return tuple(_notes(joint, after, unaudited, worse))


def _synthetic_notes(joint: JointView) -> tuple[str, ...]:
    """Records that stand for nobody have no class in another release."""
    words = "Not audited together with earlier releases of these people: the records are synthetic."
    return (words,) if joint.earlier else ()


def _scores(name: str, policy: Policy, after: Records, before: Records) -> tuple[Score, Score] | None:
    """The score of the joint classes, and of those of the earlier releases alone; None where it is not of classes."""
    measure = scale(name, policy.scenarios)
    if not isinstance(getattr(measure, "inner", measure), CLASS_MEASURES):
        return None
    try:
        return measure.measure(after, after), measure.measure(before, before)
    except EquipoiseError:
        return None


def _is_risk(name: str, policy: Policy) -> bool:
    measure = scale(name, policy.scenarios)
    return family(type(getattr(measure, "inner", measure))) in ("risk", "attacks")


def _grown(after: Score, before: Score) -> bool:
    """Whether a risk, or the number of records that have it, is larger than by the earlier releases alone."""
    return after.value > before.value + TOLERANCE or (after.number or 0.0) > (before.number or 0.0) + TOLERANCE


def _refusal(broken: Broken, earlier: Sequence[EarlierRelease]) -> str:
    score, limit = broken.score, broken.limit
    many = f" for {number(int(score.number))} records" if score.number is not None else ""
    return (
        f"Nothing was released: together with {_listed(earlier)}, {limit.score} is {score.value:.4g}{many}, outside "
        f"the limit {limit.sign} {limit.bound:g}, because their classes can be intersected. Use the levels of the "
        "earlier release, or coarser ones into which they nest; if these are other people, give the data a name of its "
        "own (asset)."
    )


def _listed(earlier: Sequence[EarlierRelease]) -> str:
    words = [one.words for one in earlier]
    return f"the earlier release {words[0]}" if len(words) == 1 else f"the earlier releases {', '.join(words)}"


def _notes(joint: JointView, after: Records, unaudited: Sequence[str], worse: bool) -> Iterator[str]:
    """What was audited, what it gave, and what was not covered."""
    many = len(joint.earlier)
    plural = "release" if many == 1 else "releases"
    alone = risk.Uniques().measure(after, after).value if after.roles.keys else 0.0
    yield (
        f"Audited together with {number(many)} earlier {plural} of these people: {at_most(alone)} of the records are "
        "alone in their class of all of them."
    )
    if worse:
        yield "The earlier releases break a limit of this policy by themselves; this one adds nothing to them."
    if unaudited:
        yield f"Not audited together with them: {', '.join(unaudited)}."
    departures = sum(_departures(one, joint.rows) for one in joint.earlier)
    if departures:
        records = f"{number(departures)} records of earlier releases"
        yield f"Assumes that nobody knows who left: {records} are not in this one."


def at_most(share: float) -> str:
    """A share in tenths of a percent, rounded up: what is reported is never below what it is.

    >>> at_most(0.0151), at_most(0.0), at_most(0.25)
    ('1.6 %', '0 %', '25 %')
    """
    return f"{ceil(round(1000 * share, 6)) / 10:g} %"


def _departures(one: EarlierRelease, rows: Integers) -> int:
    """Records of an earlier release that are not in this one."""
    size = int(one.entry["records"])
    places = one.places[rows]
    if (places >= size).any():
        return 0
    return size - len(np.unique(places[places >= 0]))


def facts_of(joint: JointView, recipe: Recipe, title: str) -> dict[str, Any]:
    """What the register keeps of a release, in words and names: no value."""
    return {
        "kind": "records",
        "title": title,
        "masks": [law.words for law in joint.released.history],
        "keys": list(joint.released.roles.keys),
        "columns": [column for column in joint.display.columns if not column.startswith("__eq_")],
        "changed": list(joint.changed),
        "seed": None if recipe.coarsens else str(recipe.seed),
    }


def alone_with(released: Records) -> tuple[str, ...]:
    """Without a register: that this is taken for the only release, and what a second one would do.

    In public without a number: how many people the original's own categories leave alone is a score of the original.
    """
    words = "Assumes that this is the only release of these people: no register was named."
    if released.roles.keys and not released.synthetic:
        words += " A second one with other categories could leave people alone who are not alone here."
    if any(law.mask == "noise" for law in released.history):
        words += " A second draw of the noise would cut its standard deviation by 29 %."
    return (words,)


def most_left_alone(released: Records, original: Records) -> tuple[str, ...]:
    """For the internal report, the number: who is alone by the keys as they were, at most. O(cells)."""
    keys = tuple(key for key in released.roles.keys if key in original.schema())
    if not keys or released.synthetic:
        return ()
    finest = count(original, keys)
    alone = float(finest.n[finest.members == 1].sum()) / finest.records
    return (f"A second release with other categories could leave up to {at_most(alone)} of the records alone.",)
