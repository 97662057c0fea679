"""Assessment of a file as it is: its risk and utility scores, and the keys and categories behind its uniques."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from equipoise import risk
from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.files.memory import refuse_work
from equipoise.ground.errors import DataError, RolesError
from equipoise.ground.progress import Progress, tracked
from equipoise.inspection.revealing import NO_COLUMNS, revealing
from equipoise.inspection.worst_records import NO_HELP, NO_RECORDS, helps, worst
from equipoise.methods.method import Mask, Measure, name_of
from equipoise.methods.score import Scores
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.notebook import assessment_html
from equipoise.recipe.recipe import Recipe
from equipoise.utility import Changed, Entropy, Marginals, Moments, VarianceInflation

NO_KEYS = pl.DataFrame(schema={"key": pl.String, "categories": pl.Int64, "uniques": pl.Int64, "without": pl.Int64})
NO_CATEGORIES = pl.DataFrame(
    schema={"key": pl.String, "category": pl.String, "records": pl.Int64, "uniques": pl.Int64, "share": pl.Float64}
)
MAX_CATEGORIES = 50_000
"""A key with more categories than this, and no hierarchy to coarsen it by, is an identifier."""


@dataclass(frozen=True)
class Assessment:
    """Scores of a file, and which keys and categories are behind its uniques.

    `worst` has the records most at risk, by row and id alone; `helps` has what coarsening one key would remove.
    `keys` has a row per key: its `categories`, and the uniques that would remain `without` it. `categories` has a row
    per key and category: `records`, `uniques`, and `share`, the uniques among its records. The categories are data:
    for internal reports only. `revealing` has the other columns by which people are singled out, alone and in pairs.
    """

    records: int
    scores: Scores
    keys: pl.DataFrame = field(repr=False)
    categories: pl.DataFrame = field(repr=False)
    worst: pl.DataFrame = field(default_factory=lambda: NO_RECORDS, repr=False)
    helps: pl.DataFrame = field(default_factory=lambda: NO_HELP, repr=False)
    revealing: pl.DataFrame = field(default_factory=lambda: NO_COLUMNS, repr=False)

    def _repr_html_(self) -> str:
        return assessment_html(self)


def assess(
    records: Records, measures: Iterable[Measure] | None = None, *, progress: Progress | None = None
) -> Assessment:
    """Measure a file against itself, the natural worst case.

    Without measures: uniques, classes of at most two, population uniques where there are weights, attribute disclosure
    for every sensitive column, individual risk where there are weights, household and composition risk where there are
    households, and entropy. Always which columns beside the keys single people out. Cost: that of the measures, and
    O(cells) for each key and each of its levels.
    """
    refuse_unfit(records)
    refuse_work(records, "assess")
    scales = tuple(measures) if measures is not None else standard(records)
    scores = Scores(both_ways(scale, records, records) for scale in tracked(scales, "measuring", progress))
    cells = count(records)
    return replace(
        profile(records), scores=scores, worst=worst(records, cells), helps=helps(cells),
        revealing=revealing(records, records),
    )  # fmt: skip


def profile(records: Records) -> Assessment:
    """The keys and categories behind the uniques; empty where there are no keys."""
    if not records.roles.keys:
        return Assessment(records.height(), Scores(), NO_KEYS, NO_CATEGORIES)
    cells = count(records)
    return Assessment(cells.records, Scores(), by_key(cells), by_category(cells))


def standard(records: Records, recipe: Recipe | None = None) -> tuple[Measure, ...]:
    """The default measures, of a raw file or of the result of a recipe."""
    if recipe is not None and any(name_of(type(mask)) == "pram" for mask in recipe.masks):
        return risk.MatchProbability(), risk.CorrectMatches(), Changed(), VarianceInflation(), Entropy()
    if recipe is not None and (not recipe.coarsens or not records.roles.keys):
        return _of_perturbed(records, recipe)
    cells = count(records)
    weighted = cells.total.sum()
    fraction = cells.records / weighted if records.roles.weight and weighted > cells.records else None
    chosen: list[Measure] = [risk.Uniques(), risk.Uniques(k=2)]
    chosen += [risk.PopulationUniques(float(f"{fraction:.4g}"))] if fraction else []
    chosen += [risk.Individual()] if records.roles.weight else []
    chosen += [risk.Household(), risk.Composition()] if records.roles.household else []
    chosen += [risk.AttributeDisclosure(column) for column in records.roles.sensitive]
    return (*chosen, Entropy())


def _of_perturbed(records: Records, recipe: Recipe) -> tuple[Measure, ...]:
    """Measures for perturbed data: value disclosure and moments of numbers, and changes in the tables of the keys."""
    schema = records.schema()
    masks = [mask for mask in recipe.masks if name_of(type(mask)) != "drop_direct_identifiers"]
    touched = dict.fromkeys(column for mask in masks for column in _columns(mask))
    labels = {column for mask in recipe.masks if name_of(type(mask)) == "recode" for column in _columns(mask)}
    numbers = [c for c in touched or records.roles.numeric if c not in labels]
    numeric = tuple(c for c in numbers if c in schema and schema[c].is_numeric())
    measures: list[Measure] = [risk.ValueDisclosure(numeric), Moments(numeric)] if numeric else []
    columns = tuple(dict.fromkeys((*records.roles.keys, *(c for c in touched if c in schema and c not in numeric))))
    measures += [Marginals(None if columns == records.roles.keys else columns)] if columns else []
    if not measures:
        raise RolesError("No keys were named: say which columns an intruder may know.")
    return tuple(measures)


def _columns(mask: Mask) -> tuple[str, ...]:
    """The columns a mask changes, as its fields name them."""
    fields = (getattr(mask, name, None) for name in ("column", "columns", "protected"))
    return tuple(c for field in fields if field for c in ((field,) if isinstance(field, str) else field))


def refuse_unfit(records: Records, keys_needed: bool = True) -> None:
    """Refuse a file on which no risk can be measured: no key, one record, an empty key, a key that is an identifier."""
    if not records.roles.keys:
        if keys_needed:
            raise RolesError("No keys were named: say which columns an intruder may know.")
        return
    cells = count(records)
    if cells.records < 2:
        raise DataError("The data has one record only: there is nobody to compare it with.")
    for key in records.roles.keys:
        values = cells.values(key)
        if values.null_count() == len(values):
            raise DataError(f"The key {key!r} has no values: every record is missing it. Leave it out of the keys.")
        if len(values) > MAX_CATEGORIES and key not in records.roles.hierarchies:
            raise DataError(
                f"The key {key!r} has {len(values):,} categories, more than {MAX_CATEGORIES:,}: "
                "it is an identifier rather than a key. Give it a hierarchy, another role, or leave it out."
            )


def by_key(cells: Cells) -> pl.DataFrame:
    """For each key: its categories, the uniques with all keys, and those that remain without it. O(keys x cells)."""
    alone = _uniques(cells)
    rows = []
    for key in cells.by:
        rest = tuple(c for c in cells.by if c != key)
        without = _uniques(cells.margin(rest)) if rest else int(cells.records == 1)
        rows.append({"key": key, "categories": len(cells.values(key)), "uniques": alone, "without": without})
    return pl.DataFrame(rows)


def _uniques(cells: Cells) -> int:
    return int(cells.n[cells.alike[0] == 1].sum())


def by_category(cells: Cells) -> pl.DataFrame:
    """For each category of each key: its records, its uniques and their share, most uniques first."""
    parts = []
    for key in cells.by:
        place, values = cells.place(key), cells.values(key)
        alone = cells.n * (cells.alike[0] == 1)
        single = np.bincount(cells.cube.codes[place], weights=alone, minlength=len(values)).astype(np.int64)
        table = pl.DataFrame(
            {"category": values.cast(pl.String).fill_null("(missing)"), "records": cells.counts(key), "uniques": single}
        )
        parts.append(table.with_columns(key=pl.lit(key), share=pl.col("uniques") / pl.col("records")))
    order = ["key", "category", "records", "uniques", "share"]
    return pl.concat(parts).select(order).sort("uniques", "share", descending=True, maintain_order=True)
