"""Assumptions behind the risks of a release: what an intruder is taken not to know, or not to be able to tell.

They stand in the headline of both reports, in the evidence and on the screen: a limit that holds only if somebody does
not know something is not simply met.
"""

from collections.abc import Iterator

import polars as pl

from equipoise.data.cells import count
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.revealing import NO_COLUMNS, enough_columns
from equipoise.methods.method import Measure
from equipoise.policies.checks import suited
from equipoise.policies.policy import Policy
from equipoise.policies.revealed_columns import assumed_unknown, undeclared
from equipoise.policies.scoped_measures import Wanted
from equipoise.presentation.numbers import listed
from equipoise.recipe.catalogue import parse
from equipoise.risk import Composition, Recognisable

MAX_OTHER_COLUMNS = 2
"""Columns beside the keys that are taken to be known together."""


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
    yield from _unknown_records(released.roles)
    yield from _unknown_members(released.roles, policy)
    yield from _unread_law(released, policy)
    if keys and any(axis.null_count() for axis in count(released).cube.axes):
        yield from _unread_blanks(released)


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


def _unknown_records(roles: Roles) -> Iterator[str]:
    """Words of the columns where they are words: one stay of a patient, else one record of a person."""
    if roles.person:
        record, person = _noun(roles.id, "person") or "record", _noun(roles.person, "person") or "person"
        yield f"Assumes that only one {record} of a {person} is known, not how many there are."


def _unread_law(released: Records, policy: Policy) -> Iterator[str]:
    """After a random mask on the keys, what no limit binds: the law of the mask, and the columns beside the keys."""
    moved = released.randomised & {*released.roles.keys}
    if not moved:
        return
    limited = [measure for measure in map(_measure, policy.limits) if isinstance(measure, Measure)]
    if not any(suited(measure) for measure in limited):
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
