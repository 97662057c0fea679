"""Candidates of a first policy: coarsenings along greedy paths, blanks for what is left, masks of numbers."""

from collections.abc import Iterator, Sequence

from equipoise.data.cells import Cells
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.suggest_roles import _quoted
from equipoise.policies.coarsening_path import PathStep, coarsening_path, milestones

SHARES_EXCHANGED = (0.6, 0.4, 0.2, 0.1)
"""Shares of the records in small classes at which a path is left, their key values being exchanged."""
SHARES_LEFT = (0.2, 0.1, 0.05, 0.02)
"""Shares of the records in small classes at which a path of coarsenings is left, the rest being blanked."""
MAX_BLANKED_SHARE = 0.3
"""Records in small classes above which blanking alone is not tried: more than 5 % of the key values would go."""
MAX_ONE_TO_ONE = 10_000
"""Records up to which an intruder who assigns all records at once is tried."""
MAX_LINKED_SHARE = 0.33
"""Share of people whom somebody that knows all their numbers may link: less than one in three."""
NOISE_SCALES, GROUP_SIZES, SWAP_WINDOWS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (3, 5), (0.15,)
"""Strengths that are tried for a file of numbers: shares of the standard deviation, records, shares of the ranks."""


def key_candidates(cells: Cells, least: int, alone: float, *, single: bool) -> Iterator[str]:
    """Coarsenings along three paths, alone where few records are left in small classes and with blanks for them.

    One path takes any key, one leaves numbers at their second level as long as it can, one takes them before all
    categories. `alone` is the share of records that may stay in classes of one. Where records are `single`, of no
    household and no person, the values that would be blanked are also exchanged among them, from finer levels on.
    """
    yield f"\n# Coarsenings that leave few people in classes of fewer than {least} for what they cost, along up to"
    yield "# three paths: one takes any key, one keeps ages and dates fine, one keeps categories whole. What is left is"
    yield "# blanked, value by value: with the fewest blanks, or with most of them in the one key of most categories."
    paths = _paths(cells, least)
    steps = {_words(step): step for path in paths for step in _left_at(path, single=single)}
    for step in steps.values():
        yield from candidate(step.levels, [f'{{ use = "local_suppress", rule = "min-count:{least}" }}'])
        if importance := _importance(step.widest, cells.by):
            mask = f'use = "local_suppress", rule = "min-count:{least}", importance = {_quoted(importance)}'
            yield from candidate(step.levels, [f"{{ {mask} }}"])
    if single:
        yield "\n# Finer levels, where the values in the way are exchanged among records instead of blanked: the"
        yield "# distribution of every key stays as it is, and nobody is recognised more surely than with blanks."
        finer = {_words(step): step for path in paths for step in milestones(path, SHARES_EXCHANGED)[:-1]}
        for step in finer.values():
            yield from candidate(step.levels, [f'{{ use = "local_swap", rule = "min-count:{least}" }}'])
    if least > 2:
        return
    yield "\n# The same without blanks, where fewer records stand alone than the limit allows."
    enough = [step for path in paths for step in path if step.small < alone][:2]
    enough += [path[-1] for path in paths if path[-1].small < alone]
    for levels in dict.fromkeys(filter(None, map(_words, enough))):
        yield from candidate(dict(levels), [])


def _paths(cells: Cells, least: int) -> list[list[PathStep]]:
    dear = tuple(
        key for key in cells.by if (meaning := meaning_of(key)) and meaning.name in ("age", "birth_date", "time")
    )
    paths = [coarsening_path(cells, least)]
    if not dear or set(dear) == set(cells.by):
        return paths
    return [*paths, coarsening_path(cells, least, dear=dear), coarsening_path(cells, least, first=dear)]


def _left_at(path: list[PathStep], *, single: bool) -> list[PathStep]:
    """Where a path is left: not before blanking is possible.

    Where people have several records and few records are in small classes, few people may be: thirds of the path.
    """
    thirds = [] if single or path[0].small > SHARES_LEFT[-1] else path[:: max(1, len(path) // 3)]
    steps = [step for step in milestones(path, SHARES_LEFT) if step.small <= MAX_BLANKED_SHARE or step is path[-1]]
    return [*steps, *thirds]


def _importance(widest: str, keys: Sequence[str]) -> str:
    """Blanks in other keys cost five times as much; none where names have the signs of such a text."""
    if len(keys) < 2 or any(mark in key for key in keys for mark in "=+"):
        return ""
    return "+".join(f"{key}=5" for key in keys if key != widest)


def _words(step: PathStep) -> tuple[tuple[str, str], ...]:
    return tuple(step.levels.items())


def candidate(levels: dict[str, str], then: Sequence[str]) -> Iterator[str]:
    """The lines of one candidate: keys at some levels, then something else."""
    yield "[[candidates]]"
    yield "masks = ["
    for key, level in levels.items():
        yield f'    {{ use = "recode", column = {_quoted(key)}, level = {_quoted(level)} }},'
    yield from (f"    {step}," for step in then)
    yield "]"


def number_limits(numbers: Sequence[str], records: int) -> Iterator[str]:
    """The limit on links by all numbers of a person: the strongest intruder that the size of the file allows."""
    links = ", links='one-to-one'" if records <= MAX_ONE_TO_ONE else ""
    score = f"nearest(variables={tuple(numbers)!r}{links})"
    why = "who knows all numbers of a person finds the record of fewer than one in three"
    yield f"{_quoted(score)} = {{ limit = {_quoted(f'< {MAX_LINKED_SHARE}')}, reason = {_quoted(why)} }}"


def number_candidates(numbers: Sequence[str], weight: str | None) -> Iterator[str]:
    """Three families for a file of numbers: noise that keeps distributions, groups of equal records, swaps."""
    columns = _quoted(list(numbers))
    grouped = _quoted([*([weight] if weight else []), *numbers])
    yield "\n# Three families: noise after which each column has its own values, in another order, and correlations"
    yield "# are nearly as before; records in groups that show their mean; values swapped with others of similar rank."
    noise = (
        f'{{ use = "noise", columns = {columns}, scale = {_quoted(list(NOISE_SCALES))}, preserve = "distributions" }}'
    )
    swap = f'{{ use = "rank_swap", columns = {columns}, window = {_quoted(list(SWAP_WINDOWS))} }}'
    group = f'{{ use = "microaggregate", columns = {grouped}, size = {_quoted(list(GROUP_SIZES))} }}'
    for mask in (noise, group, swap):
        yield from candidate({}, [mask])
