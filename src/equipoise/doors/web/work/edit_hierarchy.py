"""Edits of a hierarchy, level by level: a level is added, replaced or removed.

Levels that nest stay one chain; a level that no longer nests in its chain becomes an alternative of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from equipoise.data.branches import NESTING, Branch, Breaks, Dates, Intervals, Prefix, ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import ORIGINAL, ROOT, number_text
from equipoise.ground.errors import ParameterError

ENDS = ("closed", "start", "top", "bottom", "alone")
"""Fields that all intervals of a column share: where they begin and end, and which values stay separate."""


def with_level(tree: Hierarchy | None, new: Branch, replaced: str | None = None) -> Hierarchy:
    """The hierarchy with a new level (a branch of one level), in place of `replaced` where that is given.

    >>> tree = Hierarchy.intervals([5, 10])
    >>> [branch.widths for branch in with_level(tree, Intervals((20,))).branches]
    [(5, 10, 20)]
    >>> [branch.widths for branch in with_level(tree, Intervals((4,)), "5").branches]
    [(10,), (4,)]
    """
    before = [_with_names(branch) for branch in (tree.branches if tree else ())]
    name = new.levels()[0].name
    if isinstance(new, Intervals) and any(replaced in _names(b) for b in before if isinstance(b, Intervals)):
        before = [_same_ends(branch, new) for branch in before]
    remaining = [_without(branch, replaced, new) for branch in before]
    branches_kept = [branch for branch in remaining if branch is not None]
    _check_name(name, branches_kept, new)
    _check_floor(before, new)
    joined = [_join(branch, new) for branch in branches_kept]
    if any(joined):
        branches = [both or branch for both, branch in zip(joined, branches_kept, strict=True)]
    else:
        rooted = any(branch.root for branch in before) and not any(branch.root for branch in branches_kept)
        branches = [*branches_kept, replace(_with_floor(before, branches_kept, new), root=rooted)]
    return Hierarchy(tuple(_distinct(branches)))


def without_level(tree: Hierarchy, name: str) -> Hierarchy | None:
    """The hierarchy without a level; None where it was the last one.

    >>> [level.name for level in without_level(Hierarchy.intervals([5, 10]), "10").levels]
    ['original', '5']
    """
    if name == ORIGINAL or name not in [level.name for level in tree.levels]:
        raise ParameterError("There is no such level to take away.")
    remaining = [_without(_with_names(branch), name, None) for branch in tree.branches]
    chains = [branch for branch in remaining if branch is not None]
    return Hierarchy(tuple(_distinct(chains))) if chains else None


def free_name(proposal: str, tree: Hierarchy | None, replaced: str | None = None) -> str:
    """The proposed name, with a number added if another level has it already.

    >>> free_name("5", Hierarchy.intervals([5, 10]))
    '5 (2)'
    """
    names_in_use = {ROOT, *(level.name for level in tree.levels)} if tree else {ORIGINAL, ROOT}
    names_in_use -= {replaced} if replaced else set()
    names = (proposal, *(f"{proposal} ({number})" for number in range(2, len(names_in_use) + 3)))
    return next(name for name in names if name not in names_in_use)


def _names(branch: Branch) -> list[str]:
    return [level.name for level in branch.levels()]


def _with_names(branch: Branch) -> Branch:
    """The branch with explicit names of its levels and floor, so that both survive edits of its levels."""
    if isinstance(branch, Intervals):
        return branch
    names = [name for name in _names(branch) if not (branch.root and name == ROOT)]
    floor: Any = branch.floor
    if isinstance(floor, int):
        floor = None if floor == 0 else _names(branch)[floor - 1]
    changes: dict[str, Any] = {"floor": floor}
    if isinstance(branch, Breaks | ValueMapping):
        changes["names"] = tuple(names)
    return replace(branch, **changes)


def _same_ends(branch: Branch, new: Intervals) -> Branch:
    ends = {name: getattr(new, name) for name in ENDS}
    return replace(branch, **ends) if isinstance(branch, Intervals) else branch


def _without(branch: Branch, name: str | None, new: Branch | None) -> Branch | None:
    """The branch without a level; its floor moves to the new level if that is coarser."""
    names = _names(branch)
    if name is None or name not in names:
        return branch
    if branch.root and name == ROOT:
        return replace(branch, root=False)
    at = names.index(name)
    if len(names) - branch.root == 1:
        if branch.floor is not None and new is None:
            raise ParameterError(f"The level {name!r} holds the floor of this column: change it instead.")
        return None
    changes: dict[str, Any] = {field: _drop(getattr(branch, field), at) for field in _level_fields(branch)}
    if isinstance(branch, ValueMapping):
        changes["groups"] = tuple(_drop(row, at + 1) for row in branch.groups)
    if isinstance(branch, Breaks) and isinstance(branch.labels, tuple):
        changes["labels"] = _drop(branch.labels, at)
    if not isinstance(branch, Intervals) and branch.floor == name:
        coarser = names[at + 1 : at + 2] or names[at - 1 : at]
        changes["floor"] = _names(new)[0] if new and _above(branch, new, name) else coarser[0]
    return replace(branch, **changes)


def _above(branch: Branch, new: Branch, name: str) -> bool:
    """Whether a new level belongs above a level in its chain."""
    both = _join(branch, new)
    return both is not None and _names(both).index(_names(new)[0]) > _names(both).index(name)


def _level_fields(branch: Branch) -> tuple[str, ...]:
    """The fields that have an entry for each level."""
    kinds = {Intervals: ("widths",), Breaks: ("breaks", "names"), ValueMapping: ("names",), Prefix: ("lengths",)}
    return kinds.get(type(branch), ("parts",))


def _drop(values: Sequence[Any], at: int) -> tuple[Any, ...]:
    return (*values[:at], *values[at + 1 :])


def _join(branch: Branch, new: Branch) -> Branch | None:
    """Both branches as one chain; None where their kinds differ or they do not nest."""
    try:
        if isinstance(branch, Intervals) and isinstance(new, Intervals) and _alike(branch, new, *ENDS, "labels"):
            return replace(branch, widths=tuple(sorted({*branch.widths, *new.widths})))
        if isinstance(branch, Breaks) and isinstance(new, Breaks) and _alike(branch, new, *ENDS[::4], "labels"):
            levels = zip((*branch.breaks, *new.breaks), (*branch.names, *new.names), strict=True)
            breaks, names = zip(*sorted(levels, key=lambda level: -len(level[0])), strict=True)
            return replace(branch, breaks=breaks, names=names)
        if isinstance(branch, ValueMapping) and isinstance(new, ValueMapping) and _alike(branch, new, "other"):
            return _leaves(branch, new)
        if isinstance(branch, Prefix) and isinstance(new, Prefix):
            return replace(branch, lengths=tuple(sorted({*branch.lengths, *new.lengths}, reverse=True)))
        if isinstance(branch, Dates) and isinstance(new, Dates):
            parts = {*branch.parts, *new.parts}
            return replace(branch, parts=tuple(part for part in NESTING if part in parts))
    except ParameterError:
        return None
    return None


def _alike(one: Branch, other: Branch, *names: str) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _leaves(branch: ValueMapping, new: ValueMapping) -> ValueMapping | None:
    groups = {row[0]: row[1] for row in new.groups}
    if {row[0] for row in branch.groups} != set(groups):
        return None
    sizes = [len({row[place] for row in branch.groups}) for place in range(1, len(branch.groups[0]))]
    at = sum(size > len(set(groups.values())) for size in sizes)
    rows = tuple((*row[: at + 1], groups[row[0]], *row[at + 1 :]) for row in branch.groups)
    return replace(branch, groups=rows, names=(*branch.names[:at], *new.names, *branch.names[at:]))


def _check_name(name: str, others: Iterable[Branch], new: Branch) -> None:
    if name in (ORIGINAL, ROOT):
        raise ParameterError(f"A level cannot be called {name!r}: choose another name.")
    same = [level for branch in others for level in branch.levels() if level.name == name]
    if any(level != new.levels()[0] for level in same):
        raise ParameterError(f"There is another level {name!r} already: change that one, or choose another name.")


def _check_floor(before: Iterable[Branch], new: Branch) -> None:
    """Refuse intervals narrower than the finest width that may be released."""
    floor = _floor(before)
    if floor is None or not isinstance(new, Breaks):
        return
    narrow = [b - a for a, b in zip(new.breaks[0], new.breaks[0][1:], strict=False) if b - a < floor]
    if narrow:
        raise ParameterError(
            f"A band is {number_text(min(narrow))} wide, and this column may not be released finer than "
            f"{number_text(floor)}."
        )


def _floor(before: Iterable[Branch]) -> float | None:
    return max((b.floor for b in before if isinstance(b, Intervals) and b.floor is not None), default=None)


def _with_floor(before: Iterable[Branch], others: Iterable[Branch], new: Branch) -> Branch:
    """The new level with the floor of the column, where no other branch has it any more."""
    width = _floor(before)
    if isinstance(new, Intervals) and width is not None:
        return replace(new, floor=width)
    if not any(branch.floor is not None for branch in before) or any(branch.floor is not None for branch in others):
        return new
    if isinstance(new, Intervals):
        return replace(new, floor=new.widths[0])
    return replace(new, floor=_names(new)[0])


def _distinct(branches: Sequence[Branch]) -> list[Branch]:
    """The branches without those whose levels are all in another one."""
    once: list[Branch] = []
    for at, branch in enumerate(branches):
        others = [other for other in (*once, *branches[at + 1 :]) if branch.floor in (None, other.floor)]
        if not any(set(_names(branch)) <= set(_names(other)) for other in others):
            once.append(branch)
    return once
