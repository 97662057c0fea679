"""Signed relations between items: balance = credit - debit, as the axis of a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.data.branches import ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.roles import names
from equipoise.data.tables.axes import Axis
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans
from equipoise.ground.errors import ParameterError

ITEM = "item"
"""Column of the items of a relation between columns."""
HOLDER_IS_RECORD = "holder_is_record"
"""Column of a table whose holders are records, each with several items, and no holdings of several."""
SIGN = re.compile(r"\s+([+-])\s+")


@dataclass(frozen=True)
class SignedRelations:
    """Items that are sums and differences of others, up to one that all of them make up.

    `parts` has for each item that is made up its parts and their signs.

    >>> tree = SignedRelations.of(["profit = sales - costs", "costs = wages + goods"])
    >>> tree.root, tree.leaves
    ('profit', ('sales', 'wages', 'goods'))
    >>> axis = tree.axis("item")
    >>> [(axis.nodes[p], axis.nodes.gather(c).to_list(), axis.signs[c].tolist()) for p, c in axis.relations()]
    [('costs', ['wages', 'goods'], [1.0, 1.0]), ('profit', ['sales', 'costs'], [1.0, -1.0])]
    """

    parts: Mapping[str, tuple[tuple[str, int], ...]]

    @classmethod
    def of(cls, texts: str | Sequence[str]) -> "SignedRelations | None":
        """From texts like "balance = credit - debit", signs between spaces; None where there is none."""
        parts: dict[str, tuple[tuple[str, int], ...]] = {}
        for text in names(texts, "relation"):
            head, equal, sum_ = text.partition("=")
            first, *others = SIGN.split(f" {sum_.strip()}")
            signs, items = ["+", *others[::2]], [first, *others[1::2]]
            signs, items = (signs[1:], items[1:]) if not first.strip() else (signs, items)
            terms = tuple((name.strip(), 1 if sign == "+" else -1) for sign, name in zip(signs, items, strict=True))
            item = head.strip()
            if not equal or not item or len(terms) < 2 or not all(name for name, _ in terms):
                raise ParameterError(f"A relation is written 'balance = credit - debit', not {text!r}.")
            if item in parts or len({item, *(name for name, _ in terms)}) <= len(terms):
                raise ParameterError(f"The relation {text!r} says an item twice, or one that another relation says.")
            parts[item] = terms
        if not parts:
            return None
        tree = cls(parts)
        tree._refuse_no_tree()
        return tree

    def _refuse_no_tree(self) -> None:
        below = [name for terms in self.parts.values() for name, _ in terms]
        roots = [item for item in self.parts if item not in below]
        if len(roots) != 1 or len(set(below)) < len(below) or len(self._paths) < len(set(below) - set(self.parts)):
            raise ParameterError("Relations must make up one item, each other item being part of one: a tree.")

    @property
    def root(self) -> str:
        below = {name for terms in self.parts.values() for name, _ in terms}
        return next(item for item in self.parts if item not in below)

    @property
    def leaves(self) -> tuple[str, ...]:
        return tuple(self._paths)

    @cached_property
    def _paths(self) -> dict[str, tuple[str, ...]]:
        """For each leaf what it is part of, from the root down."""
        paths: dict[str, tuple[str, ...]] = {}
        waiting: list[tuple[str, tuple[str, ...]]] = [(self.root, ())]
        while waiting:
            item, path = waiting.pop(0)
            if item in self.parts and item not in path:
                waiting = [*((name, (*path, item)) for name, _ in self.parts[item]), *waiting]
            else:
                paths[item] = path
        return paths

    def axis(self, column: str) -> Axis:
        """The axis whose leaves are the items that are given, and whose total is the one that all make up."""
        depth = max(map(len, self._paths.values()))
        rows = [(leaf, *_upwards(leaf, path[1:], depth - 1)) for leaf, path in self._paths.items()]
        tree = Hierarchy((ValueMapping(tuple(rows)),)) if depth > 1 else None
        axis = Axis.of(pl.Series(column, self.leaves, dtype=pl.String), tree, self.root)
        sign = {name: sign for terms in self.parts.values() for name, sign in terms}
        return replace(axis, sign=tuple(sign.get(label, 1) for label in axis.nodes.to_list()))


def _upwards(leaf: str, groups: tuple[str, ...], depth: int) -> tuple[str, ...]:
    """The groups above a leaf, the nearest first, itself where it has fewer."""
    return (leaf,) * (depth - len(groups)) + groups[::-1]


def mixed_cells(table: Table) -> Booleans:
    """Cells in which a signed relation takes something off."""
    nodes = zip(table.axes, table.nodes, strict=True)
    return np.any([np.isin(places, axis.mixed) for axis, places in nodes], axis=0)


def with_signs(counted: Table, negative: bool) -> Table:
    """The table without `gross` where nothing can be below 0; else with marks of the cells that can."""
    mixed = mixed_cells(counted) | negative
    if not mixed.any():
        return replace(counted, more=counted.more.drop("gross"))
    return replace(counted, more=counted.more.with_columns(signed=pl.Series(mixed & (counted.n > 0))))


def counted_once(cells: pl.DataFrame, items: Axis) -> pl.DataFrame:
    """Every record counted once in a cell of several items: it is in all of them."""
    parts = items.members.group_by("node").agg(pl.len().alias("__eq_items"))
    joined = cells.join(parts, left_on=items.name, right_on="node", maintain_order="left")
    once = {"__eq_n": pl.col("__eq_n") // pl.col("__eq_items"), "__eq_w": pl.col("__eq_w") / pl.col("__eq_items")}
    return joined.with_columns(**once).drop("__eq_items")
