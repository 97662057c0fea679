"""Masks that a first policy proposes for columns beside the keys by which people are singled out."""

from collections.abc import Iterable, Iterator

import polars as pl

from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.revealing import MAX_REVEALED_SHARE, enough_columns, revealing, without
from equipoise.masks import CoarsenWeights, DropDirectIdentifiers, Noise, Recode, Renumber
from equipoise.masks.noise import Kind
from equipoise.methods.method import Mask
from equipoise.recipe.recipe import Recipe
from equipoise.risk import RevealingColumns

MAX_WEIGHTS, RECORDS_BY_WEIGHT = 10, 200
"""Different weights at most, and the records for each of them in a small file."""
NOISE_SCALES = (0.1, 0.2, 0.4, 0.8, 1.5)
"""Shares of the standard deviation that are tried, until few people are found by their numbers."""
SAFE_SHARE = 0.7 * MAX_REVEALED_SHARE
"""The share of people that the proposed noise may leave: another draw leaves a little more or less."""


def share_left(records: Records, masks: tuple[Mask, ...]) -> float:
    """The share of people that columns beside the keys single out after these masks, in one draw."""
    released = Recipe(masks, seed=0).run(records)
    return RevealingColumns().measure(released, records).value


def masks_beside_keys(records: Records) -> tuple[Mask, ...]:
    """New numbers for groups, coarser weights, noise on numbers and coarser or withheld categories, as far as needed.

    In a file without keys the numbers are what its candidates change. Each is proposed only where people are singled
    out without it. Cost: a few times that of `RevealingColumns`.
    """
    masks: tuple[Mask, ...] = tuple(_first(records))
    rest = _left(records, masks)
    numbers = _numbers(rest, records)
    if numbers and records.roles.keys:
        masks += (_weakest_noise(records, masks, numbers),)
        rest = _left(records, masks)
    return masks + tuple(_of_categories(enough_columns(rest), records.roles))


def _first(records: Records) -> Iterator[Mask]:
    roles = records.roles
    if roles.household or roles.person:
        yield Renumber()
    if roles.weight and roles.weight in enough_columns(revealing(records, records)):
        groups = min(MAX_WEIGHTS, max(2, records.height() // RECORDS_BY_WEIGHT))
        yield CoarsenWeights(groups, keep=roles.domain)


def _left(records: Records, masks: tuple[Mask, ...]) -> pl.DataFrame:
    """What still singles people out after these masks; none where they cannot be run."""
    try:
        return revealing(Recipe(masks, seed=0).run(records), records, above=SAFE_SHARE)
    except EquipoiseError:
        return revealing(records, records)


def _numbers(table: pl.DataFrame, records: Records) -> list[str]:
    schema, weight = records.schema(), records.roles.weight
    columns = dict.fromkeys(name for row in table.select("column", "beside").iter_rows() for name in row if name)
    return [c for c in columns if schema[c].is_numeric() and c not in (weight, *_group_numbers(records.roles))]


def _group_numbers(roles: Roles) -> Iterable[str]:
    return filter(None, (roles.household, roles.person, roles.sample))


def _weakest_noise(records: Records, masks: tuple[Mask, ...], columns: list[str]) -> Noise:
    """The weakest noise after which these numbers single out few people, or the strongest that is tried."""
    positive = not records.collect(*columns).select(pl.any_horizontal((pl.col(columns) < 0).any())).item()
    kind: Kind = "multiplicative" if positive else "independent"
    noises = [Noise(tuple(columns), s, kind, bounds="sign" if positive else None) for s in NOISE_SCALES]
    enough = (n for n in noises if not _touching(_left(records, (*masks, n)), columns))
    return next(enough, noises[-1])


def _touching(table: pl.DataFrame, columns: list[str]) -> bool:
    """Whether one of these columns takes part in a row."""
    return without(table, columns).height < table.height


def _of_categories(columns: tuple[str, ...], roles: Roles) -> Iterator[Mask]:
    """The coarsest level of columns with a hierarchy; columns without a role are withheld."""
    trees = {c: [level.name for level in roles.hierarchies[c].allowed] for c in columns if c in roles.hierarchies}
    yield from (Recode(column, names[-1]) for column, names in trees.items() if names[-1] != ORIGINAL)
    used = {*roles.sensitive, *roles.numeric, *roles.domain, roles.weight, *_group_numbers(roles)}
    if rest := tuple(column for column in columns if column not in trees and column not in used):
        yield DropDirectIdentifiers(rest)
