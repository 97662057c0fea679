"""Table axes: the values of a column, their groups and the total, as nodes over leaves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from math import prod

import numpy as np
import polars as pl

from equipoise.data.branches import ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import OriginalLevel, as_text
from equipoise.ground.arrays import Floats, Integers

TOTAL = "Total"
MISSING = "(missing)"
MAX_COMPLETE_CELLS = 1_000_000
"""Up to this many cells a table also has its empty cells."""
LEAF_KEY_SEED = 20_000
"""Seed of the random keys that identify sets of leaves: two different sets share a sum with probability 2^-63."""


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """The nodes of a column: its values, the groups of every level of its hierarchy, and the total.

    Nodes with the same label and the same leaves are one node; a node with all leaves is the total. `nodes` has their
    labels, each once; `chains` the branches, each from leaves to total: for every leaf its node at each level. `sign`
    says how each node counts in the one above, 1 or -1, where that is not a plain sum (`signed_relations`). `declared`
    lists labels in the order that the user gave them, for those who read the table.

    >>> values = pl.Series("region", ["n1", "n2", "s1"])
    >>> axis = Axis.of(values, Hierarchy.mapping({"n1": "north", "n2": "north", "s1": "south"}))
    >>> axis.nodes.to_list(), axis.members["node"].to_list()
    (['n1', 'n2', 's1', 'north', 'south', 'Total'], [0, 3, 5, 1, 3, 5, 2, 4, 5])
    >>> [(parent, children.tolist()) for parent, children in axis.relations()]
    [(3, [0, 1]), (4, [2]), (5, [3, 4])]
    """

    name: str
    nodes: pl.Series
    chains: tuple[tuple[Integers, ...], ...]
    sign: tuple[int, ...] = ()
    declared: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: pl.Series, hierarchy: Hierarchy | None = None, total: str = TOTAL) -> "Axis":
        """Axis from the distinct values of a column, in their order, and the label of the total."""
        branches = hierarchy.branches if hierarchy else ()
        levels = [(OriginalLevel(), *branch.levels()) for branch in branches] or [(OriginalLevel(),)]
        keys = np.random.default_rng(LEAF_KEY_SEED).integers(1, 1 << 62, len(values), dtype=np.uint64)
        numbers: dict[tuple[int, str], int] = {}
        labels: list[str] = []
        chains = []
        for chain in levels:
            texts = [as_text(level.label(values)).fill_null(MISSING) for level in chain]
            steps = [_number_nodes(step, keys, numbers, labels, total) for step in (*texts, _everything(values, total))]
            chains.append(tuple(steps))
        return cls(values.name, pl.Series(values.name, _distinct_labels(labels), dtype=pl.String), tuple(chains))

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def leaves(self) -> int:
        return len(self.chains[0][0])

    @property
    def places(self) -> Integers:
        """The node of each leaf."""
        return self.chains[0][0]

    @property
    def total(self) -> int:
        """The node of the total."""
        return int(self.chains[0][-1][0])

    @cached_property
    def signs(self) -> Floats:
        """How each node counts in the one above: 1, or -1 where it is taken off."""
        return np.array(self.sign, dtype=np.float64) if self.sign else np.ones(len(self))

    @cached_property
    def members(self) -> pl.DataFrame:
        """A row per leaf and node above it: `leaf`, `node`, and the `sign` with which the leaf counts in it."""
        rows = []
        for chain in self.chains:
            sign = np.ones(self.leaves)
            for below, node in pairwise((chain[0], *chain)):
                sign = np.where(below == node, sign, sign * self.signs[below])
                rows.append(np.stack([np.arange(self.leaves), node, sign], 1))
        leaf, node, sign = np.unique(np.concatenate(rows), axis=0).T
        return pl.DataFrame({"leaf": leaf.astype(np.int64), "node": node.astype(np.int64), "sign": sign})

    @cached_property
    def mixed(self) -> Integers:
        """The nodes in which some leaf is taken off: they may be negative though no leaf is."""
        return np.unique(self.members.filter(pl.col("sign") < 0)["node"].to_numpy())

    def lifted(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with leaves of this axis, each once for every node above its leaf, amounts with their sign in it."""
        members = self.members.select(__eq_leaf="leaf", __eq_node="node", __eq_sign="sign")
        joined = rows.join(members, left_on=self.name, right_on="__eq_leaf", how="inner", maintain_order="left")
        if self.sign:
            joined = joined.with_columns(pl.col("^__eq_(x|wx)$") * pl.col("__eq_sign"))
        return joined.drop(self.name, "__eq_sign").rename({"__eq_node": self.name})

    def relations(self) -> Iterator[tuple[int, Integers]]:
        """Each node that is a sum of others, with its parts, once for each branch that contains it."""
        relations = set()
        for chain in self.chains:
            for below, above in pairwise(chain):
                pairs = np.unique(np.stack([above, below], 1)[above != below], axis=0)
                cuts = np.flatnonzero(np.diff(pairs[:, 0])) + 1
                for part in np.split(pairs, cuts) if len(pairs) else ():
                    relation = (int(part[0, 0]), tuple(part[:, 1].tolist()))
                    if relation not in relations:
                        relations.add(relation)
                        yield relation[0], part[:, 1]


def declared_order(hierarchy: Hierarchy | None, categories: Sequence[str] = ()) -> tuple[str, ...]:
    """Labels in the order of the rows of a hierarchy, or of the categories of the column.

    An order that is only that of the text says nothing: none is declared then.

    >>> declared_order(Hierarchy.mapping({"small": "few", "large": "many"}))
    ('small', 'large', 'few', 'many')
    """
    rows = [branch.groups for branch in hierarchy.branches if isinstance(branch, ValueMapping)] if hierarchy else []
    levels = [list(map(str, level)) for groups in rows for level in zip(*groups, strict=True) if _chosen(groups)]
    flat = [label for level in (*levels, list(categories)) for label in level]
    return tuple(dict.fromkeys(flat)) if levels or list(categories) != sorted(categories) else ()


def _chosen(groups: Sequence[Sequence[str]]) -> bool:
    """Whether the rows of a hierarchy stand in another order than that of the text."""
    texts = [str(row[0]) for row in groups]
    return texts != sorted(texts)


def completed(cells: pl.DataFrame, axes: Sequence[Axis]) -> pl.DataFrame:
    """Cells by node numbers, with the empty ones added as 0 or false. Larger tables are not completed."""
    if prod(len(axis) for axis in axes) > MAX_COMPLETE_CELLS:
        return cells
    nodes = (pl.DataFrame({axis.name: pl.int_range(len(axis), dtype=pl.Int64, eager=True)}) for axis in axes)
    every = reduce(lambda one, two: one.join(two, how="cross"), nodes)
    absent = every.join(cells, on=every.columns, how="anti")
    zeros = {n: pl.lit(0, dtype=k) for n, k in cells.schema.items() if n not in every.columns and k.is_numeric()}
    zeros |= {n: pl.lit(value=False) for n, k in cells.schema.items() if k == pl.Boolean}
    return pl.concat([cells, absent.with_columns(**zeros)], how="diagonal")


def _everything(values: pl.Series, total: str) -> pl.Series:
    return pl.Series(values.name, [total] * len(values), dtype=pl.String)


def _number_nodes(
    texts: pl.Series, keys: Integers, numbers: dict[tuple[int, str], int], labels: list[str], total: str
) -> Integers:
    """Node of each leaf at one level; a group with the label and the leaves of an earlier node is that node."""
    groups = texts.unique(maintain_order=True)
    if len(groups) == 1 and len(texts) > 1:
        texts = _everything(texts, total)
        groups = texts.head(1)
    place = texts.cast(pl.Enum(groups)).to_physical().to_numpy()
    sums = np.zeros(len(groups), dtype=np.uint64)
    np.add.at(sums, place, keys)
    nodes = np.empty(len(groups), dtype=np.int64)
    for i, (key_sum, label) in enumerate(zip(sums.tolist(), groups.to_list(), strict=True)):
        nodes[i] = numbers.setdefault((key_sum, label), len(labels))
        if nodes[i] == len(labels):
            labels.append(label)
    return nodes[place]


def _distinct_labels(labels: list[str]) -> list[str]:
    """Distinct labels: a group with the label of another node gets a star."""
    unique: set[str] = set()
    names = []
    for label in labels:
        while label in unique:
            label += "*"
        unique.add(label)
        names.append(label)
    return names
