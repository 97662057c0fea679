"""Axes of a ready table: its own codes, some of them groups of others by the hierarchy."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from equipoise.data.branches import Branch, Prefix, ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.tables.axes import TOTAL, Axis
from equipoise.ground.errors import DataError, ParameterError

Chains = dict[str, tuple[str, ...]]
"""For each code its category on every level of a branch: itself up to its own level, then its groups."""


def axis_of(column: str, codes: Sequence[str], total: str | None, hierarchy: Hierarchy | None) -> Axis:
    """The axis of a ready table from the codes it has.

    Codes that the hierarchy puts above others of the table are groups; the rest are leaves, groups of the hierarchy
    whose parts the table does not have among them. A code that the hierarchy lacks is refused.

    >>> tree = Hierarchy.mapping({"n1": "north", "n2": "north", "s1": "south"})
    >>> axis = axis_of("region", ["all", "n1", "n2", "north", "south"], "all", tree)
    >>> axis.nodes.to_list(), axis.leaves
    (['n1', 'n2', 'south', 'north', 'all'], 3)
    """
    values = [code for code in codes if code != total]
    if not values:
        return Axis.of(_series(column, codes), None, total or TOTAL)
    if hierarchy is None:
        axis = Axis.of(_series(column, values), None, total or TOTAL)
    else:
        chains = [chains_of(branch, values, column) for branch in hierarchy.branches]
        leaves = leaves_of(values, chains)
        pairs = zip(hierarchy.branches, chains, strict=True)
        branches = tuple(_cut(branch, chain, leaves, column) for branch, chain in pairs)
        axis = Axis.of(_series(column, leaves), Hierarchy(branches), total or TOTAL)
    nodes = set(axis.nodes.to_list())
    for code in codes:
        if code not in nodes:
            raise DataError(
                f"The hierarchy of {column!r} has {code!r} as another name of its total {total or TOTAL!r}."
            )
    return axis


def leaves_of(codes: Sequence[str], chains: Sequence[Chains]) -> list[str]:
    """The codes that are no group of other codes."""
    groups = {up for chain in chains for code in codes if code in chain for up in chain[code] if up != code}
    return sorted(code for code in codes if code not in groups)


def chains_of(branch: Branch, codes: Sequence[str], column: str) -> Chains:
    """Category of every code of the table on the levels of a branch; only codes that the branch has."""
    if isinstance(branch, Prefix):
        return {code: tuple(code[:length] for length in branch.lengths) for code in codes}
    if not isinstance(branch, ValueMapping):
        raise ParameterError(
            f"The hierarchy of {column!r} must list the codes of a ready table: use Hierarchy.mapping, csv, hrc "
            "or prefix."
        )
    return _listed(branch, codes, column)


def _listed(branch: ValueMapping, codes: Sequence[str], column: str) -> Chains:
    chains: Chains = {}
    groups = {code for row in branch.groups for code in row[1:] if code != row[0]}
    for row in branch.groups:
        for place, code in enumerate(row):
            chain = (code,) * place + row[place + 1 :]
            alike = place == 0 and code in groups and set(row) != {code}
            if chains.setdefault(code, chain) != chain or alike:
                raise ParameterError(
                    f"The hierarchy of {column!r} gives one name to a value and to a group of others: rename one."
                )
    if branch.other is not None:
        depth = len(branch.groups[0]) - 1
        chains |= {code: (branch.other,) * depth for code in codes if code not in chains}
    return chains


def _cut(branch: Branch, chains: Chains, leaves: list[str], column: str) -> Branch:
    """The branch over the leaves that the table has."""
    if not isinstance(branch, ValueMapping):
        return branch
    for leaf in leaves:
        if leaf not in chains:
            raise DataError(f"The hierarchy of {column!r} lacks the code {leaf!r}, which the table has.")
    return replace(branch, groups=tuple((leaf, *chains[leaf]) for leaf in leaves), other=None)


def _series(column: str, labels: Sequence[str]) -> pl.Series:
    return pl.Series(column, sorted(labels), dtype=pl.String)
