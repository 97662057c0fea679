"""Coarsen each record only as far as its class needs."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.data.cells import Cells, count
from equipoise.data.equivalence_classes import Classes
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.labels import Code, Labels
from equipoise.data.levels import ORIGINAL, as_text, leaf_text
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.data.roles import Roles
from equipoise.data.row_draws import all_in_memory
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import InfeasibleError, ParameterError, RolesError, require_columns
from equipoise.ground.packed_keys import group
from equipoise.ground.randomness import Draws
from equipoise.masks._local_recoding.clusters import Items, islands, local_classes
from equipoise.masks._local_recoding.merge_cost import Boxes, Span, Spans
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import check_fields
from equipoise.methods.protection_levels import Both, Either
from equipoise.methods.sensitive_values import merging, sensitive_of


@dataclass(frozen=True, slots=True)
class LocalRecode:
    """Put records into classes that satisfy the `rule`, and release of each key the lowest category its class shares.

    Records with the same value may be released at different levels, each only as coarse as its class needs; nothing is
    suppressed. With `loss` "granularity" a record loses for each key (leaves under the released category - 1) / (leaves
    - 1), as in losses.Granularity; with "entropy" log2 of the records in the category, in bits. The mean over records
    and keys is made small: the file is cut in two, again and again, then in up to `rounds` rounds records move, change
    places and found new classes, and neighbouring classes are pooled and cut anew. A large cell lends the records it
    can spare; who of several alike is lent is drawn from the secret seed. The rule is `min_count`, alone or with rules
    about sensitive values that stay satisfied when classes merge (`MinCount(5) | Diversity("ill", 2)`): classes they
    call unsafe are joined with others nearby, which is coarser than need be.

    Keys without a hierarchy, and missing values, are never changed: a class has one value of them. Of a hierarchy with
    several branches the one of most levels is used. A column released at several levels is text; where the label of a
    category is also that of a finer one, its level stands behind it: "30 (10)".

    Source: Xu et al. (2006), *Utility-based anonymization using local recoding*; the loss is Iyengar's (2002). The
    least loss is NP-hard to find (Meyerson and Williams 2004): this is a local minimum; on small files it is never
    above that of the best coarsening of whole columns.
    Does not guard against attribute disclosure within a class, unless the rule asks for it, nor against who reads the
    finer category that another member of the household shows (risks of classes count it; `LocalSuppress` blanks all
    members alike), or knows several records of a person: a file in which the role `person` repeats is refused. Tables
    by a locally recoded key overlap ("30-34" beside "30-39"): statistics need care. Cost: O(keys^2 x records x log
    records), then O(keys x least x records) for each round; with 9 keys and hardly any records alike 30,000 in 5 s of
    CPU, 100,000 in 16, 1,000,000 in 160.

    >>> ages = eq.Hierarchy.intervals([5, 10], root=True)
    >>> people = pl.DataFrame({"age": [21, 21, 31, 34, 36, 38], "sex": ["f", "f", "m", "m", "m", "m"]})
    >>> records = eq.read(people, eq.Roles(["age", "sex"], hierarchies={"age": ages}))
    >>> LocalRecode(eq.rules.MinCount(2)).apply(records, Draws(1)).collect()["age"].to_list()
    ['21', '21', '30-34', '30-34', '35-39', '35-39']
    """

    rule: Rule
    loss: Literal["granularity", "entropy"] = "granularity"
    keys: tuple[str, ...] = ()
    rounds: int = 30

    def __post_init__(self) -> None:
        check_fields(self, rounds=0)
        if not merging(self.rule) or not _on_classes(self.rule):
            raise ParameterError(
                f"{label(self.rule)} need not hold for classes that were merged from safe ones: "
                "use min_count, or join it with | to rules such as diversity."
            )

    def apply(self, data: Records, draws: Draws) -> Records:
        keys, sensitive = self._columns(data)
        cells = count(data, (*keys, *sensitive))
        _refuse_repeated(cells, data.roles.person)
        spans, codes = _spans(cells, keys, data.roles, self.loss)
        items, labels, boxes = self._classes(cells, spans, codes, sensitive)
        table = all_in_memory(data)
        own = _by_record(cell_of(table, cells), draws.uniform(data.keys_of_rows()), items, labels)
        columns = {key: _released(span, low, high) for key, span, low, high in zip(keys, spans, *boxes, strict=True)}
        changed = {key: column for key, column in columns.items() if column is not None}
        table = table.with_columns(column.gather(pl.Series(own)).alias(key) for key, column in changed.items())
        released = data.with_frame(table, self.law(keys))
        roles, labels_of_levels = released.roles, released.labels
        for key, span, low, high in zip(keys, spans, *boxes, strict=True):
            if key in changed:
                labels_of_levels = _labels_of_levels(
                    labels_of_levels, cells.values(key), span, np.unique(span.rung(low, high)), roles.hierarchies[key]
                )
                roles = roles.without_hierarchy(key)
        return replace(released, roles=roles, labels=labels_of_levels)

    def words(self) -> str:
        return f"each record as coarse as its class needs by {label(self.rule)}"

    def law(self, keys: tuple[str, ...]) -> Law:
        text = f"{', '.join(keys)} coarsened record by record, each as far as its class needs by {label(self.rule)}"
        return Law("local_recode", keys, text, {"rule": label(self.rule), "loss": self.loss, "keys": list(keys)})

    def _columns(self, data: Records) -> tuple[tuple[str, ...], tuple[str, ...]]:
        keys, sensitive = self.keys or data.roles.keys, sensitive_of([self.rule])
        if not keys:
            raise RolesError("There are no keys to coarsen: name them in the roles.")
        require_columns((*keys, *sensitive), data.schema())
        if both := [column for column in sensitive if column in keys]:
            raise RolesError(f"Column {both[0]!r} is a key and what the rule protects: leave it out of the keys.")
        return keys, sensitive

    def _classes(
        self, cells: Cells, spans: Spans, codes: Integers, sensitive: tuple[str, ...]
    ) -> tuple[Items, Integers, Boxes]:
        """The items of the cells, their classes and the boxes of these; refused where the rule cannot be satisfied."""
        least = _least(self.rule, cells.records)
        apart = islands(spans, codes)
        small = np.bincount(apart, weights=cells.n)[apart] < least
        _refuse(int(cells.n[small].sum()))
        items = Items.of(cells.n, least)
        check = None if not sensitive else _Check(self.rule, cells, items, sensitive)
        labels, boxes = local_classes(spans, codes, items, least, self.rounds, check)
        if check is not None:
            size = np.bincount(labels, weights=items.weights).astype(np.int64)
            _refuse(int(size[check(labels, size)].sum()))
        return items, labels, boxes


@dataclass(frozen=True, eq=False, repr=False)
class _Check:
    """Which classes a rule calls unsafe."""

    rule: Any
    cells: Cells
    items: Items
    sensitive: tuple[str, ...]

    def __call__(self, labels: Integers, size: Integers) -> Integers:
        places = [self.cells.place(column) for column in self.sensitive]
        codes = [self.cells.cube.codes[place][self.items.cell].astype(np.int64) for place in places]
        ids, first = group([labels, *codes], [len(size), *(self.cells.cube.sizes[place] for place in places)])
        rows = np.bincount(ids, weights=self.items.weights).astype(np.int64)
        sensitive_codes = {column: code[first] for column, code in zip(self.sensitive, codes, strict=True)}
        values = {column: self.cells.values(column) for column in self.sensitive}
        return _unsafe(
            self.rule, Classes(size, labels[first], rows, sensitive_codes, values, dict(self.cells.hierarchies))
        )


def _unsafe(rule: Any, classes: Classes) -> Integers:
    if isinstance(rule, Either | Both):
        parts = [_unsafe(part, classes) for part in rule.rules]
        return np.any(parts, axis=0) if isinstance(rule, Either) else np.all(parts, axis=0)
    return rule.unsafe(classes)


def _on_classes(rule: Any) -> bool:
    return all(map(_on_classes, rule.rules)) if isinstance(rule, Either | Both) else hasattr(rule, "unsafe")


def _least(rule: Any, records: int) -> int:
    """The records that every class needs, whatever else the rule asks for: the smallest size it calls safe."""
    if sensitive_of([rule]):
        return max(_least(part, records) for part in rule.rules) if isinstance(rule, Either) else 1
    sizes = np.arange(1, records + 1)
    safe = np.flatnonzero(~_unsafe(rule, Classes(sizes, sizes - 1, sizes)))
    return int(safe[0]) + 1 if len(safe) else records + 1


def _refuse_repeated(cells: Cells, person: str | None) -> None:
    """Levels that differ between the records of a person say more together than each of them."""
    if cells.people is not None and len(np.unique(cells.people.persons)) < cells.records:
        raise RolesError(
            f"Local recoding counts records, and {person!r} has people with several: use masks.LocalSuppress, coarsen "
            "whole columns, or leave out the role person."
        )


def _refuse(records: int) -> None:
    if records:
        raise InfeasibleError(
            f"{records:,} record{'s are' if records > 1 else ' is'} in classes that do not satisfy the rule and that "
            "no level joins with others: give hierarchies a coarser level (root=True), or leave out a key."
        )


def _spans(cells: Cells, keys: tuple[str, ...], roles: Roles, loss: Any) -> tuple[Spans, Integers]:
    """The span of each key, and the place of every cell on it."""
    spans, codes = [], []
    for key in keys:
        ladder, place = CodedLevels.of(key, cells.values(key), cells.counts(key), roles.hierarchies.get(key))
        span, line = Span.of(ladder, loss, _nested(roles.hierarchies.get(key)))
        spans.append(span)
        codes.append(line[place[cells.cube.codes[cells.place(key)]]])
    return tuple(spans), np.array(codes)


def _nested(tree: Hierarchy | None) -> tuple[str, ...]:
    """The levels of the branch that has most: those of different branches need not nest."""
    if tree is None:
        return ()
    return (ORIGINAL, *(level.name for level in max(tree.branches, key=lambda b: len(b.levels())).levels()))


def _by_record(cell: Integers, uniform: Any, items: Items, labels: Integers) -> Integers:
    """The class of each record: those of a cell, in the order of their draws, take the classes of its items."""
    order = np.lexsort((labels, items.cell))
    classes = np.empty(len(cell), dtype=np.int64)
    classes[np.lexsort((uniform, cell))] = np.repeat(labels[order], items.weights[order])
    return classes


def _released(span: Span, low: Integers, high: Integers) -> pl.Series | None:
    """The released category of each class; None where all are as they were."""
    rungs = span.rung(low, high)
    used = np.unique(rungs).tolist()
    if [span.names[rung] for rung in used] == [ORIGINAL]:
        return None
    if len(used) == 1:
        return span.texts[used[0]].gather(pl.Series(low))
    texts = pl.concat(_distinct(span, used))
    return texts.gather(pl.Series(np.searchsorted(used, rungs) * span.size + low))


def _distinct(span: Span, used: list[int]) -> list[pl.Series]:
    """The labels of some rungs as text, no two categories of different values with the same."""
    met: dict[str | None, set[tuple[Any, ...]]] = {}
    labels = []
    for rung in used:
        texts, step = as_text(span.texts[rung]), span.steps[rung]
        first, last = np.searchsorted(step, step), np.searchsorted(step, step, side="right")
        coded = span.names[rung] != ORIGINAL and span.texts[rung].dtype.is_numeric()
        new = []
        for text, what in zip(texts.to_list(), zip(first, last, span.worth[rung], strict=True), strict=True):
            clash = text is not None and (coded or met.get(text, {what}) != {what})
            new.append(f"{text} ({span.names[rung]})" if clash else text)
            if not clash:
                met[text] = {what}
        labels.append(pl.Series(texts.name, new, dtype=pl.String))
    return labels


def _labels_of_levels(labels: Labels, old: pl.Series, span: Span, used: Integers, tree: Hierarchy) -> Labels:
    """The labels of a column released at several levels: those of every level that is used."""
    if not labels:
        return labels
    original = labels.of(span.key)
    values: dict[Code, str] = {}
    for rung in used.tolist():
        level = tree.level(span.names[rung])
        recoded = labels.recoded(span.key, old, level.label(old), level.label).of(span.key)
        values |= {leaf_text(code): text for code, text in recoded.values if not original.is_missing(code)}
    missing = tuple((code, text) for code, text in original.values if original.is_missing(code))
    measure = "ordinal" if original.measure == "scale" else original.measure
    new = replace(original, values=(*values.items(), *missing), format=None, width=None, measure=measure)
    return labels.having(span.key, new)
