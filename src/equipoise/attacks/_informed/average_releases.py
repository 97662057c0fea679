"""Average several releases of the same people into one file, as an intruder who has them all would do first."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, EngineError, ParameterError
from equipoise.ground.packed_keys import code


def averaged(releases: Sequence[Records]) -> Records:
    """One file from several releases of the same people, aligned by the id role, or row by row without one.

    Numbers and dates become means, weighted by 1 / noise variance where the law of each release has it; categories
    the most frequent one (the first in order if tied). Independent noise of variances v_1, ..., v_m becomes noise of
    1 / (1/v_1 + ... + 1/v_m), v / m for m equal copies, and the law of the result says so. Every attack accepts the
    result. Columns equal in all releases stay as they are. Cost: O(releases x records x columns).

    >>> one, two = (eq.Records.of(pl.DataFrame({"x": [1, k], "y": ["a", "b"]}), eq.Roles()) for k in (3, 5))
    >>> averaged([one, two]).collect().rows()
    [(1.0, 'a'), (4.0, 'b')]
    """
    if not releases:
        raise ParameterError("Give at least one release to average.")
    tables, head = _align(releases), releases[0]
    shared = [c for c in tables[0].columns if all(c in table.columns for table in tables)]
    columns = [_column([t[c] for t in tables], _weights(releases, c)) for c in shared]
    records = Records.of(pl.DataFrame(columns), head.roles.only(shared))
    return replace(records, history=_history(releases))


def samples(released: Records, original: Records) -> Records:
    """Average the samples of a partly synthetic file, person by person, with the ids of the original.

    The samples hold the same people in the same order: by id if there is one, else by row.
    """
    name = released.roles.sample
    assert name is not None
    table, own = released.collect(), released.roles.id
    table = table.sort(pl.col(own).cast(pl.Int64, strict=False), maintain_order=True) if own else table
    parts = table.partition_by(name, maintain_order=True)
    if any(part.height != original.height() for part in parts):
        raise EngineError("The samples and the original file have different records: they cannot be averaged.")
    roles = replace(released.roles, sample=None)
    if own and original.roles.id:
        ids = original.collect(original.roles.id)[original.roles.id].alias(own)
        parts = [part.with_columns(ids) for part in parts]
    records = [replace(Records.of(p.drop(name), roles), history=released.history) for p in parts]
    return averaged(records)


def _align(releases: Sequence[Records]) -> list[pl.DataFrame]:
    name = releases[0].roles.id
    tables = [records.collect() for records in releases]
    if name:
        if any(name not in table.columns for table in tables):
            raise EngineError(f"A release has no column {name!r}: the releases cannot be aligned.")
        tables = [table.sort(name) for table in tables]
    same = all(t.height == tables[0].height and (not name or t[name].equals(tables[0][name])) for t in tables)
    if not same:
        raise EngineError("The releases hold different records: they cannot be averaged.")
    return tables


def _column(copies: list[pl.Series], weights: Floats) -> pl.Series:
    head = copies[0]
    if all(copy.dtype == head.dtype and copy.equals(head, null_equal=True) for copy in copies):
        return head
    if all(copy.dtype.is_numeric() for copy in copies):
        return pl.Series(head.name, _mean(copies, weights), nan_to_null=True)
    if all(copy.dtype == head.dtype and copy.dtype.is_temporal() for copy in copies):
        means = pl.Series(head.name, _mean([c.to_physical() for c in copies], weights), nan_to_null=True)
        return means.round().cast(head.to_physical().dtype).cast(head.dtype)
    if any(copy.dtype != head.dtype for copy in copies):
        raise DataError(f"Column {head.name!r} is of another type in some release.")
    return _mode(copies)


def _mean(copies: list[pl.Series], weights: Floats) -> Floats:
    """Weighted mean of the copies that have a value; NaN where none has."""
    values = np.stack([copy.cast(pl.Float64).to_numpy() for copy in copies])
    present = ~np.isnan(values)
    weight = weights @ present
    total = weights @ np.where(present, values, 0.0)
    return np.asarray(np.divide(total, weight, out=np.full(len(weight), np.nan), where=weight > 0))


def _mode(copies: list[pl.Series]) -> pl.Series:
    coded = code(pl.concat(copies))
    table: Integers = coded.codes.astype(np.int64).reshape(len(copies), -1)
    best, times = table[0].copy(), np.zeros(table.shape[1], dtype=np.int64)
    for row in table:
        votes = (table == row).sum(axis=0)
        better = (votes > times) | ((votes == times) & (row < best))
        best, times = np.where(better, row, best), np.maximum(votes, times)
    return coded.values.gather(pl.Series(best)).cast(copies[0].dtype).alias(copies[0].name)


def _weights(releases: Sequence[Records], column: str) -> Floats:
    """Weight of each release, 1 / noise variance up to a factor; 1 for all if a law does not state it."""
    laws_by_release = [[law for law in records.history if column in law.columns] for records in releases]
    noise_sd = [laws[0].parameters.get("noise_sd", {}).get(column, 0.0) for laws in laws_by_release if len(laws) == 1]
    if len(noise_sd) < len(releases) or min(noise_sd) <= 0:
        return np.ones(len(releases))
    variances = np.array(noise_sd, dtype=np.float64) ** 2
    return np.asarray(variances.min() / variances)


def _history(releases: Sequence[Records]) -> tuple[Law, ...]:
    """Laws that all releases share, with the remaining noise; for any other law only that it was averaged."""
    histories = [records.history for records in releases]
    if len(releases) == 1:
        return histories[0]
    if len({tuple((law.mask, law.columns) for law in history) for history in histories}) == 1:
        return tuple(_pooled_law(laws) for laws in zip(*histories, strict=True))
    touched = tuple(dict.fromkeys(c for history in histories for law in history for c in law.columns))
    return (_averaged_law(touched, len(releases)),) if touched else ()


def _pooled_law(laws: tuple[Law, ...]) -> Law:
    head, many = laws[0], len(laws)
    if head.coarsens and all(law == head for law in laws):
        return head
    kinds = {law.parameters.get("kind") for law in laws}
    if head.mask != "noise" or len(kinds) > 1 or any(law.parameters.get("preserve") for law in laws):
        return _averaged_law(head.columns, many)
    sizes = [law.parameters["noise_sd"] for law in laws]
    noise_sd = {c: _pooled_sd([size[c] for size in sizes]) for c in head.columns}
    scale = _pooled_sd([law.parameters["scale"] for law in laws])
    pooled = {"scale": scale, "noise_sd": noise_sd, "copies": many}
    return replace(head, words=f"{many} releases averaged: {head.words}", parameters={**head.parameters, **pooled})


def _pooled_sd(sizes: list[float]) -> float:
    return float(1 / np.sqrt(sum(1 / size**2 for size in sizes))) if all(sizes) else 0.0


def _averaged_law(columns: tuple[str, ...], many: int) -> Law:
    return Law("averaged", columns, f"{', '.join(columns)} averaged over {many} releases", {"copies": many})
