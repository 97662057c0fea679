"""Assumptions behind the risks of a release: what an intruder is taken not to know, or not to be able to tell.

And what a release is short of: limits that a stronger attack passes by, columns of which nothing is left.

They stand in the headline of both reports, in the evidence and on the screen: a limit that holds only if somebody does
not know something is not simply met.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.attacks import Informed, Linkage, Nearest
from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.blanked_keys import with_blanks
from equipoise.data.cells import count
from equipoise.data.numeric_columns import floats
from equipoise.data.records import Records, collect_one
from equipoise.data.repeated_values import unit_columns
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.revealing import NO_COLUMNS, enough_columns
from equipoise.methods.method import Measure, label
from equipoise.methods.score import Scores
from equipoise.policies.checks import suited
from equipoise.policies.policy import Policy
from equipoise.policies.revealed_columns import assumed_unknown, undeclared
from equipoise.policies.scoped_measures import Wanted
from equipoise.presentation.numbers import brief, listed
from equipoise.recipe.catalogue import parse
from equipoise.risk import (
    Composition,
    Household,
    Individual,
    Journalist,
    LogLinear,
    Marketer,
    Recognisable,
)

MAX_OTHER_COLUMNS = 2
"""Columns beside the keys that are taken to be known together."""
MIN_SHARE_LEFT, BLANK = 0.25, "__eq_blank"
"""Share of a column's values below which little is left of it; what the name of its share of blanks ends in."""
GIANTS, NEAR_SHARE, MIN_TOLD_SHARE, MIN_SHARING = 10, 0.1, 0.5, 3
"""Largest values that are looked at, what is near them, the share of them that must be said; who hides a value."""
MAX_LINKED, MAX_ASSIGNED = 250_000, 10_000
"""Records up to which stronger attacks than those limited are tried, and among them one-to-one assignment."""


def assumptions(
    released: Records, policy: Policy | None = None, *, revealing: pl.DataFrame = NO_COLUMNS
) -> tuple[str, ...]:
    """What the scores of a release assume, each as a sentence; the policy says which risks are limited. O(cells).

    `revealing` has the columns that single people out: where the policy says nothing of them, nobody may know them.

    >>> import equipoise as eq, polars as pl
    >>> assumptions(eq.read(pl.DataFrame({"age": [30, None]}), eq.Roles("age", missing="any")))
    ('Assumes that nobody can tell why a key is missing: a blank could be anything.',)
    """
    return tuple(_assumptions(released, policy or Policy(), revealing))


def _assumptions(released: Records, policy: Policy, revealing: pl.DataFrame) -> Iterator[str]:
    keys = released.roles.keys
    unknown = [c for c in assumed_unknown(policy) if c in released.schema()]
    unknown += enough_columns(undeclared(revealing, policy))
    if unknown:
        yield f"Assumes that nobody knows {listed(unknown)}."
    if columns := _columns_words(released):
        yield f"Assumes that an intruder knows {columns}."
    if policy.keep_order:
        yield "Assumes that nobody knows the order of the records, which was kept."
    yield from _unknown_participants(released.roles, policy)
    yield from _unknown_records(released.roles)
    yield from _unknown_members(released.roles, policy)
    yield from _unread_law(released, policy)
    if with_blanks(released) is not released and _columns_words(released):
        yield "Assumes that nobody tells from other columns which key values were exchanged among records."
    if keys and any(axis.null_count() for axis in count(released).cube.axes):
        yield from _unread_blanks(released)


def shortcomings(released: Records, original: Records, scores: Scores, policy: Policy) -> tuple[str, ...]:
    """That nothing was changed, columns of which nothing is left, giants, limits that a stronger intruder passes by."""
    return (
        *_unchanged(released, original),
        *_emptied_columns(released, original),
        *_known_giants(released, original, scores),
        *_stronger_links(released, original, scores, policy),
    )


def _unchanged(released: Records, original: Records) -> Iterator[str]:
    """A release of the file as it came is one in name only, also after masks that found nothing to do."""
    touched = dict.fromkeys(c for law in released.history for c in law.columns)
    columns = tuple(c for c in touched if c in original.schema() and c in released.schema())
    if released.synthetic or len(columns) < len(touched) or released.height() < original.height():
        return
    with suppress(EquipoiseError):
        pair = aligned(released, original, columns) if columns else None
        if pair is None or (pair[0].schema == pair[1].schema and pair[0].equals(pair[1])):
            yield "Nothing was changed: every value that is released is as it was collected."


def _emptied_columns(released: Records, original: Records) -> Iterator[str]:
    touched = {column for law in released.history for column in law.columns}
    columns = [c for c in original.schema() if c in touched and c in released.schema()]
    if released.synthetic or not columns or original.height() < 2:
        return
    counts = [nw.col(column).n_unique() for column in columns]
    shares = [nw.col(column).is_null().cast(nw.Float64).mean().alias(column + BLANK) for column in columns]
    before, after = (collect_one(data.frame.select(*counts, *shares)) for data in (original, released))
    empty = [c for c in columns if after[c] <= 1 < before[c]]
    if empty:
        yield f"Nothing is left of {listed(empty)}: masking made all values of a column blank or the same."
    few = [c for c in columns if 1 - (after[c + BLANK] or 0) < MIN_SHARE_LEFT * (1 - (before[c + BLANK] or 0))]
    if few := [c for c in few if c not in empty]:
        yield f"Little is left of {listed(few)}: masking made more than three in four values of a column blank."


def _known_giants(released: Records, original: Records, scores: Scores) -> Iterator[str]:
    """Changed numbers whose largest values are told, though a share of all values, or of people, hides them."""
    schema, roles = released.schema(), original.roles
    touched = dict.fromkeys(c for law in released.history for c in law.columns if c != roles.weight)
    changed = [c for c, kind in original.schema().items() if c in touched and kind.is_numeric() and c in schema]
    columns = [c for c in changed if schema[c].is_numeric() and c not in (*roles.keys, *unit_columns(original))]
    if released.synthetic or not columns:
        return
    reported = max((score.value for score in scores if score.name.startswith("known_within")), default=0.0)
    with suppress(EquipoiseError):
        new, old = aligned(released, released_people(released, original), tuple(columns))
        shares = {c: _share_of_giants_told(floats(new, (c,))[:, 0], floats(old, (c,))[:, 0]) for c in columns}
        if readable := [c for c, share in shares.items() if share >= MIN_TOLD_SHARE and share > reported]:
            yield (
                f"Assumes that nobody knows who is largest in {listed(readable)}: of the ten largest values half or "
                "more are told to within 10 %, by their records or their ranks."
            )


def _share_of_giants_told(masked: Floats, true: Floats) -> float:
    """Of the values largest in size, those that few share and that the person's record or the same rank tells."""
    giants = np.argsort(-np.abs(np.nan_to_num(true)), kind="stable")[:GIANTS]
    truth, ranked = true[giants], np.sort(np.abs(np.nan_to_num(masked)))[::-1][:GIANTS]
    near = np.abs(masked[giants] - truth) <= NEAR_SHARE * np.abs(truth)
    few = np.array([(true == value).sum() < MIN_SHARING for value in truth], dtype=bool)
    return float((few & (near | (ranked == np.abs(truth)))).sum() / GIANTS)


def _stronger_links(released: Records, original: Records, scores: Scores, policy: Policy) -> Iterator[str]:
    """Limits on links by one attack, where an intruder who has read the laws, or assigns all records, links more."""
    limited = [m for m in policy.measures() if isinstance(getattr(m, "inner", m), Nearest | Linkage)]
    if not limited or released.synthetic or not released.history or original.height() > MAX_LINKED:
        return
    for measure in limited:
        name = getattr(measure, "known_as", None) or label(measure)
        score, reach = scores[name], _strongest_link(measure, released, original)
        if reach > score.value:
            holds = all(limit.holds(replace(score, value=reach)) for limit in policy.parsed if limit.score == name)
            yield (
                "Assumes that nobody has read how the file was masked, nor links all records at once: such an intruder "
                f"finds more people than {brief(name)!r} says, {'still within' if holds else 'and more than'} its limit"
                f"{'' if holds else ' allows'}."
            )


def _strongest_link(measure: Any, released: Records, original: Records) -> float:
    """The largest share that stronger attacks with the same knowledge link; one that these files do not allow is 0."""
    inner, roles, schema = getattr(measure, "inner", measure), original.roles, original.schema()
    knowledge: dict[str, Any] = {"variables": inner.variables, "known": getattr(inner, "known", None)}
    columns = knowledge["known"] or knowledge["variables"] or (*roles.keys, *roles.numeric)
    attacks: list[Measure] = [Informed(**knowledge)]
    if original.height() <= MAX_ASSIGNED and any(schema[c].is_numeric() for c in columns if c in schema):
        attacks += [Nearest(metric=metric, links="one-to-one", **knowledge) for metric in ("euclidean", "mahalanobis")]
    reach = 0.0
    for attack in attacks:
        with suppress(EquipoiseError):
            scoped = attack if inner is measure else replace(measure, inner=attack)
            reach = max(reach, scoped.measure(released, original).value)
    return reach


def _unread_blanks(released: Records) -> Iterator[str]:
    """Where keys are missing: what the rest of the row, or of the household, is taken not to say of them."""
    roles = released.roles
    sources = [
        *(["other columns"] if _columns_words(released) else []),
        *(["other members"] if roles.household else []),
    ]
    if sources:
        yield f"Assumes that nobody guesses a blank key from {' or '.join(sources)}."
    if roles.missing == "any":
        yield "Assumes that nobody can tell why a key is missing: a blank could be anything."


def _columns_words(released: Records) -> str:
    """How many columns an intruder may know, where more are released."""
    keys = released.roles.keys
    others = [c for c in released.schema() if c not in (*keys, released.roles.id, *released.roles.direct)]
    if not keys:
        return "two columns, not more" if len(others) > MAX_OTHER_COLUMNS else ""
    if len(others) > MAX_OTHER_COLUMNS:
        return "the keys or two of the other columns, not both and not more"
    return "the keys or the other columns, not both" if others else ""


def _unknown_participants(roles: Roles, policy: Policy) -> Iterator[str]:
    """Limits on risks in a population, among whose people those in the file are taken to be hidden."""
    limited = [m for m in map(_measure, policy.limits) if isinstance(m, Measure) and _counts_population(m, roles)]
    if names := dict.fromkeys(label(measure).partition("(")[0] for measure in limited):
        words = f"the limit on {listed(names)} counts everybody in the population"
        yield f"Assumes that nobody knows who is in the file: {words}."


def _counts_population(measure: Measure, roles: Roles) -> bool:
    if isinstance(measure, Individual | Household | Journalist | LogLinear) and roles.weight:
        return True
    if isinstance(measure, Journalist | Marketer) and measure.population is not None:
        return True
    return (getattr(measure, "fraction", None) or 1.0) < 1


def _unknown_records(roles: Roles) -> Iterator[str]:
    """Words of the columns where they are words: one stay of a patient, else one record of a person."""
    if roles.person:
        record, person = _noun(roles.id, "person") or "record", _noun(roles.person, "person") or "person"
        yield f"Assumes that only one {record} of a {person} is known, not how many there are."
        yield f"Assumes that every {person} who fits is as likely: who guesses the one who fits most often finds more."


def _unread_law(released: Records, policy: Policy) -> Iterator[str]:
    """After a random mask on the keys, what no limit binds: the law of the mask, and the columns beside the keys.

    Who stood out and was swapped is looked for among the partners: of the measures only `Informed` does so.
    """
    moved = with_blanks(released).randomised & {*released.roles.keys}
    if not moved:
        return
    limited = [measure for measure in map(_measure, policy.limits) if isinstance(measure, Measure)]
    swapped = any(law.mask == "swap" for law in released.history if moved.intersection(law.columns))
    if not any(isinstance(m, Informed) if swapped else suited(m) for m in limited):
        yield "Assumes that nobody knows how keys were changed at random: no limit binds the probability of a match."
    elif not any(isinstance(measure, Recognisable) for measure in limited) and _beside(released, moved):
        yield "Assumes that nobody reads other columns beside keys changed at random: recognisable is not limited."


def _beside(released: Records, moved: frozenset[str]) -> bool:
    """Whether columns are released that neither moved nor were held by the mask."""
    roles = released.roles
    held = {column for law in released.history for column in law.parameters.get("beside", ())}
    return bool({*released.schema()} - {*roles.keys, roles.id, *roles.direct} - moved - held)


def _noun(column: str | None, role: str) -> str | None:
    """The name of a column that is a word for what has this role."""
    meaning = meaning_of(column) if column and column.isalpha() else None
    return column.lower() if column and meaning and meaning.role == role else None


def _unknown_members(roles: Roles, policy: Policy) -> Iterator[str]:
    """Unless a limit covers the whole household: how many of its members may be known."""
    limits = [m for m in map(_measure, policy.limits) if isinstance(m, Composition)]
    limited = [limit.known for limit in limits]
    if not roles.household or "all" in limited:
        return
    most = max([1, *(known for known in limited if isinstance(known, int))])
    size = "" if any(limit.size_known for limit in limits) else ", nor its size"
    unit = _noun(roles.household, "household") or "household"
    members = f"only one member of a {unit} is" if most == 1 else f"at most {most} members of a {unit} are"
    yield f"Assumes that {members} known, not the whole {unit}{size}."


def _measure(score: str) -> object:
    try:
        return parse(Wanted.of(score).measure, "measure")
    except EquipoiseError:
        return None
