"""Categories of a release: those that no released record has are in no type and no label of it."""

from dataclasses import replace

import narwhals as nw
import polars as pl

from equipoise.data import engines
from equipoise.data.labels import Column, Labels
from equipoise.data.levels import as_text, number_text
from equipoise.data.records import Records


def without_absent(records: Records) -> Records:
    """Records whose Enum types and value labels name only what some record has.

    A category that only suppressed or sampled-out people had would else be told by the type of its column. Order is
    kept; missing codes are labelled where a record has one. Cost: one pass for each column with an Enum or labels.
    """
    schema = records.schema()
    enums = [name for name, kind in schema.items() if isinstance(kind, nw.Enum)]
    labelled = [name for name, label in records.labels.columns.items() if label.values and name in schema]
    values = {name: _values(records, name) for name in dict.fromkeys((*enums, *labelled))}
    labels = records.labels
    for name in labelled:
        labels = labels.having(name, _present(labels.of(name), values[name], _codes(labels, records, name)))
    frame = _trimmed(records.frame, {name: values[name] for name in enums})
    return replace(records, frame=frame, labels=labels)


def _values(records: Records, name: str) -> pl.Series:
    return engines.collect(records.frame.select(name).unique())[name].drop_nulls()


def _codes(labels: Labels, records: Records, name: str) -> set[str]:
    """Missing codes that stand where a released value is missing."""
    if labels.gaps is None or name not in labels.gaps.columns:
        return set()
    missing = records.collect(name)[name].is_null()
    if len(missing) != labels.gaps.height:
        return set()
    return set(as_text(labels.gaps[name].filter(missing).drop_nulls().unique()).to_list())


def _present(label: Column, values: pl.Series, codes: set[str]) -> Column:
    texts = set(as_text(values).to_list()) | codes
    return replace(label, values=tuple(pair for pair in label.values if _text(pair[0]) in texts))


def _text(code: float | str) -> str:
    return number_text(code) if isinstance(code, float) else str(code)


def _trimmed(frame: engines.Frame, values: dict[str, pl.Series]) -> engines.Frame:
    if not values:
        return frame
    if not frame.implementation.is_polars():
        return frame.with_columns(nw.col(name).cast(nw.String()) for name in values)
    kinds = {name: pl.Enum(present.sort().cast(pl.String)) for name, present in values.items()}
    return nw.from_native(frame.to_native().with_columns(pl.col(name).cast(kind) for name, kind in kinds.items()))
