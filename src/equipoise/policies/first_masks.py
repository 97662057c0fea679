"""Masks that a first policy proposes for columns beside the keys by which people are singled out."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Literal

import polars as pl

from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.known_keys import replicate_weights
from equipoise.inspection.revealing import MAX_REVEALED_SHARE, enough_columns, revealing, without
from equipoise.masks import CoarsenWeights, DropDirectIdentifiers, Noise, RankSwap, Recode, Renumber
from equipoise.methods.method import Mask
from equipoise.recipe.recipe import Recipe
from equipoise.risk import RevealingColumns
from equipoise.utility import Overlap

MAX_WEIGHTS, RECORDS_BY_WEIGHT, WEIGHT_GROUPS = 10, 200, (10, 5, 3, 2)
"""Different weights at most, the records for each in a small file, and what is tried where these show a key."""
NOISE_SCALES, SWAP_WINDOWS = (0.1, 0.2, 0.4, 0.8, 1.5), (0.02, 0.05, 0.1, 0.2, 0.4)
"""Shares of the standard deviation, and of the ranks, that are tried until few people are found by their numbers."""
LUCK_MARGIN = 1.5
"""How much more than what is safe one draw of a stronger mask may leave by chance."""
MAX_COMPARED = 5
"""Numbers by whose estimates families of masks are compared."""
SAFE_SHARE = 0.7 * MAX_REVEALED_SHARE
"""The share of people that the proposed noise may leave: another draw leaves a little more or less."""


def share_left(records: Records, masks: tuple[Mask, ...], *, enough: float) -> float:
    """The share of people that columns beside the keys single out after these masks, in one draw.

    Where a column alone does so for more than `enough` of them, pairs with it are not counted.
    """
    released = Recipe(masks, seed=0).run(records)
    shares = RevealingColumns().table(released, records, alone=enough)[0]["share"]
    return float(shares[0]) if len(shares) else 0.0


def masks_beside_keys(records: Records, columns: tuple[str, ...]) -> tuple[Mask, ...]:
    """New numbers for groups, coarser weights, noise on numbers and coarser or withheld categories, as far as needed.

    `columns` single people out as they are. In a file without keys the numbers are what its candidates change. Each is
    proposed only where people are singled out without it. Cost: a few times that of `RevealingColumns`.
    """
    masks: tuple[Mask, ...] = tuple(_first(records, columns))
    remaining = cache(lambda masks: _left(records, masks))
    numbers = _numbers(remaining(masks), records)
    if numbers and records.roles.keys:
        masks += (_mask_of_numbers(records, masks, numbers),)
    if records.roles.weight in enough_columns(remaining(masks)):
        masks = _with_coarser_weights(records, masks)
    return masks + tuple(_of_categories(enough_columns(remaining(masks)), records.roles))


def _with_coarser_weights(records: Records, masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
    """The masks with weights in as many groups as may be: the first number after which they lead to few people."""
    rest = tuple(mask for mask in masks if not isinstance(mask, CoarsenWeights))
    choices = [(*rest, CoarsenWeights(groups, keep=records.roles.domain)) for groups in WEIGHT_GROUPS]
    weight = [str(records.roles.weight)]
    return next((some for some in choices if not _touching(_left(records, some), weight)), choices[-1])


def _first(records: Records, columns: tuple[str, ...]) -> Iterator[Mask]:
    roles = records.roles
    if roles.household or roles.person:
        yield Renumber()
    if roles.weight and roles.weight in columns:
        groups = min(MAX_WEIGHTS, max(2, records.height() // RECORDS_BY_WEIGHT))
        yield CoarsenWeights(groups, keep=roles.domain)


def _left(records: Records, masks: tuple[Mask, ...]) -> pl.DataFrame:
    """What still singles people out after these masks and with coarse keys; none where they cannot be run."""
    try:
        return _left_after(records, masks)
    except EquipoiseError:
        return revealing(records, records)


def _left_after(records: Records, masks: tuple[Mask, ...]) -> pl.DataFrame:
    released = Recipe((*_coarsest(records.roles), *masks), seed=0).run(records)
    return revealing(released, records, above=SAFE_SHARE)


def _coarsest(roles: Roles) -> Iterator[Mask]:
    """Every key as coarse as it gets: a column that follows from a key shows what its coarser level should hide."""
    for key in roles.keys:
        levels = roles.hierarchies[key].allowed if key in roles.hierarchies else ()
        if levels and levels[-1].name != ORIGINAL:
            yield Recode(key, levels[-1].name)


def _numbers(table: pl.DataFrame, records: Records) -> list[str]:
    schema, weight = records.schema(), records.roles.weight
    columns = dict.fromkeys(name for row in table.select("column", "beside").iter_rows() for name in row if name)
    others = {weight, *_group_numbers(records.roles), *replicate_weights(schema)}
    return [c for c in columns if schema[c].is_numeric() and c not in others]


def _group_numbers(roles: Roles) -> Iterable[str]:
    return filter(None, (roles.household, roles.person, roles.sample))


def _mask_of_numbers(records: Records, masks: tuple[Mask, ...], columns: list[str]) -> Mask:
    """Of each family the weakest mask after which these numbers single out few people; of those what keeps most.

    Where none is enough, as in files of few firms, few people are those that the strongest swap leaves, pairs of
    columns counted too. Families: swaps of values of similar rank, noise that keeps distributions and covariances,
    noise in proportion. One that cannot be run on these columns takes no part: the widest swap stands where none can.
    """
    tried = (list(_shares_left(records, masks, family, columns)) for family in _families(records, columns))
    families = [family for family in tried if family]
    if not families:
        return RankSwap(tuple(columns), SWAP_WINDOWS[-1])
    safe = SAFE_SHARE
    if not any(share <= SAFE_SHARE for family in families for _, share in family):
        families = [
            [(mask, share_left(records, (*masks, mask), enough=1.0)) for mask, _ in family] for family in families
        ]
        safe = families[0][-1][1]
    weakest = [mask for family in families for mask in _weakest(family, safe)] or [families[0][-1][0]]
    return max(weakest, key=lambda mask: _mean_overlap(records, mask, columns))


def _weakest(family: list[tuple[Mask, float]], safe: float) -> list[Mask]:
    """The weakest safe mask of a family, if stronger ones are about as safe: else a lucky draw would decide."""
    steady = (all(share <= LUCK_MARGIN * safe for _, share in family[place:]) for place in range(len(family)))
    return [mask for (mask, share), stays in zip(family, steady, strict=True) if share <= safe and stays][:1]


def _families(records: Records, columns: list[str]) -> Iterator[list[Mask]]:
    names = tuple(columns)
    yield [RankSwap(names, window) for window in SWAP_WINDOWS]
    positive = not records.collect(*columns).select(pl.any_horizontal((pl.col(columns) < 0).any())).item()
    if positive:
        yield [Noise(names, scale, "multiplicative", bounds="sign") for scale in NOISE_SCALES]
    enough = records.height() >= 10 * len(columns)
    if enough or not positive:
        preserve: Literal["distributions"] | None = "distributions" if enough else None
        yield [Noise(names, scale, "independent", preserve=preserve) for scale in NOISE_SCALES]


def _shares_left(
    records: Records, masks: tuple[Mask, ...], family: list[Mask], columns: list[str]
) -> Iterator[tuple[Mask, float]]:
    """Each mask up to the weakest that is enough, and the share of people that these numbers single out after it.

    It ends at a mask that cannot be run, as noise that preserves a household's column beside a person's.
    """
    for mask in family:
        try:
            table = _left_after(records, (*masks, mask))
        except EquipoiseError:
            return
        rest = without(table, columns)
        share = table.join(rest, on=table.columns, how="anti", nulls_equal=True)["share"].max()
        yield mask, float(share or 0.0)  # type: ignore[arg-type]
        if not share:
            return


def _mean_overlap(records: Records, mask: Mask, columns: list[str]) -> float:
    """The overlap of intervals of means, medians and correlations of some of the columns; 0 where it cannot be run."""
    names = [column for column in columns if column.replace("_", "").replace(".", "").isalnum()][:MAX_COMPARED]
    queries = [f"{kind}:{name}{end}" for name in names for kind, end in (("mean", ""), ("quantile", ",0.5"))]
    pairs = [f"correlation:{one},{two}" for one, two in combinations(names, 2)]
    try:
        return Overlap((*queries, *pairs)).measure(Recipe((mask,), seed=0).run(records), records).value
    except EquipoiseError:
        return 0.0


def _touching(table: pl.DataFrame, columns: list[str]) -> bool:
    """Whether one of these columns takes part in a row."""
    return without(table, columns).height < table.height


def _of_categories(columns: tuple[str, ...], roles: Roles) -> Iterator[Mask]:
    """The coarsest level of a hierarchy; columns without a role are withheld."""
    trees = {c: [level.name for level in roles.hierarchies[c].allowed] for c in columns if c in roles.hierarchies}
    yield from (Recode(column, names[-1]) for column, names in trees.items() if names[-1] != ORIGINAL)
    used = {*roles.sensitive, *roles.numeric, *roles.domain, roles.weight, *_group_numbers(roles)}
    if rest := tuple(column for column in columns if column not in trees and column not in used):
        yield DropDirectIdentifiers(rest)
