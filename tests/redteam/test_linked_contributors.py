"""Contributors, holdings and coalitions as intruders into linked tables, each by name, by SciPy's own linear programs.

Each of them has every published number of all tables, and knows his own records. Unknown is what the classes of records
add up to that all tables treat alike; a class that is his alone he knows, others he knows to be at least his part.
Nothing of the project's own is used for the attack: cells, levels and knowledge are made from the records by hand.
"""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from tests.redteam.test_linked_tables import COUNT, P, Plan, cells_of, in_another_file, numbers_of, people, plans

import equipoise as eq

SEEDS = range(500, 700)
MAX_PAIRS = 30
"""Coalitions of two that are tried of each programme, drawn at random."""
LONE, SHARED, COALITION = "alone", "shares cells", "together"
"""Words by which a certificate names each kind."""
Published = dict[tuple[str, ...], float | None]


def programme(seed: int) -> tuple[pl.DataFrame, list[Plan], str | None, int]:
    """Records, tables, the column of holdings where there is one, and the size of coalitions that are asked about."""
    frame, groups = people(seed)
    rng = np.random.default_rng(seed + 90_000)
    frame = frame.head(int(rng.integers(30, 70)))
    owner = rng.zipf(1.6, frame.height) % max(6, frame.height // 4)
    frame = frame.with_columns(firm=pl.Series(owner).cast(pl.String), id=pl.Series(rng.permutation(frame.height)))
    trees = {k: {a: b for a, b in tree.items() if a in set(frame[k.split(">")[0]])} for k, tree in groups.items()}
    return frame, plans(seed, trees), "firm" if seed % 3 else None, 2 if seed % 4 == 1 else 1


@dataclass
class Attack:
    """Everything that is public, and who has what in each class of records."""

    frame: pl.DataFrame
    drawn: list[Plan]
    published: list[Published]
    holding: str | None
    named: list[bool]

    def __post_init__(self) -> None:
        self.counts = self.drawn[0].value is None
        size = self.frame.height
        self.amounts = np.ones(size) if self.counts else self.frame["turnover"].to_numpy()
        owners = self.frame[self.holding].to_list() if self.holding else list(range(size))
        self.owner = np.unique(owners, return_inverse=True)[1]
        self.cells = [cells_of(self.frame, plan) for plan in self.drawn]
        sets = {members for table in self.cells for members in table.values()}
        signature = [tuple(i for i, members in enumerate(sets) if row in members) for row in range(size)]
        self.kind = np.array([sorted(set(signature)).index(one) for one in signature])
        self.kinds = int(self.kind.max()) + 1
        rows = [(m, self.amounts[[*m]].sum()) for t, n in zip(self.cells, self.published, strict=True)
                for c, m in t.items() if n[c] is not None]  # fmt: skip
        self.matrix = np.array([np.bincount(self.kind[[*m]], minlength=self.kinds) > 0 for m, _ in rows], dtype=float)
        self.totals = np.array([total for _, total in rows])
        self.value = np.bincount(self.kind, self.amounts, self.kinds)
        self.part = np.zeros((int(self.owner.max()) + 1, self.kinds))
        np.add.at(self.part, (self.owner, self.kind), self.amounts)
        self.inside = np.zeros(self.part.shape, dtype=bool)
        self.inside[self.owner, self.kind] = True

    def sensitive(self) -> dict[frozenset[int], float]:
        """The level of every set of records that is a sensitive cell of some table, by the rule's own definition.

        Rules count holdings where the table was made with them.
        """
        levels: dict[frozenset[int], float] = {}
        for table, held in zip(self.cells, self.named, strict=True):
            for members in table.values():
                owner = self.owner[[*members]] if held else np.arange(len(members))
                parts = np.bincount(owner, self.amounts[[*members]])
                parts, total = np.sort(parts[parts > 0])[::-1], float(self.amounts[[*members]].sum())
                if self.counts:
                    level = float(max(COUNT - total, COUNT - len(parts)))
                else:
                    level = P * parts[0] - (total - parts[:2].sum())
                if level > 1e-9 * total:
                    levels[members] = max(level, 1e-4 * total, levels.get(members, 0.0))
        return levels

    def reached(self, members: frozenset[int], level: float, who: tuple[int, ...]) -> float | None:
        """The share of its level that a cell keeps against these people; None where it is theirs alone."""
        mine = np.isin(self.owner[[*members]], who)
        if mine.all():
            return None
        theirs = self.part[[*who]].sum(axis=0)
        others = np.delete(self.inside, who, axis=0).any(axis=0)
        bounds = [(part if other else x, None if other else x)
                  for x, part, other in zip(self.value, theirs, others, strict=True)]  # fmt: skip
        goal = (np.bincount(self.kind[[*members]], minlength=self.kinds) > 0).astype(float)
        low, high = (linprog(s * goal, A_eq=self.matrix, b_eq=self.totals, bounds=bounds, method="highs")
                     for s in (1, -1))  # fmt: skip
        assert low.status == 0
        assert high.status in (0, 3)
        value, own = float(self.amounts[[*members]].sum()), float(self.amounts[[*members]][mine].sum())
        rise, fall = np.inf if high.status == 3 else -high.fun - value, value - low.fun
        below = min(level, value, value - own)
        return float(min(1.0, rise / level, fall / below if below > 1e-6 * level else 1.0))

    def failures(self, kinds: set[str], size: int) -> list[str]:
        """Sensitive cells inside their level for somebody of the kinds that are said to be covered.

        And those that anybody knows exactly, for these are always refused.
        """
        hidden = {m for t, n in zip(self.cells, self.published, strict=True) for c, m in t.items() if n[c] is None}
        lone = {int(self.owner[next(iter(m))]) for m in hidden if len(set(self.owner[[*m]])) == 1}
        alone = np.array([sum(col) == 1 for col in self.inside.T])
        knows = sorted({int(np.flatnonzero(col)[0]) for col, one in zip(self.inside.T, alone, strict=True) if one})
        pairs = list(combinations(knows, 2)) if COALITION in kinds and size == 2 else []
        pairs = np.random.default_rng(len(pairs)).permutation(np.array(pairs or np.zeros((0, 2), int)))[:MAX_PAIRS]
        found: list[str] = []
        for members, level in self.sensitive().items():
            for one in [(), *((i,) for i in range(len(self.part)))]:
                kind = "outsider" if not one else LONE if one[0] in lone else SHARED
                kept = self.reached(members, level, one)
                if kept is not None and (kept < 1 - 1e-4 if kind in kinds else kept < 1e-9):
                    found.append(f"{kind} {one}: {sorted(members)} keeps {kept:.3f} of {level:.4f}")
            for pair in map(tuple, pairs.tolist()):
                kept = self.reached(members, level, pair)
                if kept is not None and kept < 1 - 1e-4:
                    found.append(f"coalition {pair}: {sorted(members)} keeps {kept:.3f} of {level:.4f}")
        return found


def covered(phrases: tuple[str, ...]) -> set[str]:
    """The kinds that a certificate says keep the full levels."""
    names = {word for word in (LONE, SHARED) for who in phrases if word in who and COALITION not in who}
    return {"outsider", *names, *([COALITION] if any(COALITION in who for who in phrases) else [])}


def attack_together(seed: int) -> tuple[set[str], list[str]]:
    """Protect the drawn tables at once, each second one from another file; what everybody finds."""
    frame, drawn, holding, size = programme(seed)
    files = [eq.Records.of(one, eq.Roles()) for one in (frame, in_another_file(frame, seed))]
    tables = []
    for i, plan in enumerate(drawn):
        options = plan.options()
        tables.append(eq.table(files[i % 2], options.pop("by"), holding=holding, **options))
    try:
        linked = eq.protect_tables(tables, eq.tables.Suppress(_rule(drawn), coalition=size))
    except (eq.RefusedError, eq.InfeasibleError):
        return set(), []
    attack = Attack(frame, drawn, [numbers_of(table) for table in linked], holding, [bool(holding)] * len(drawn))
    kinds = covered(linked.attackers.against)
    return kinds, attack.failures(kinds, size)


def attack_in_order(seed: int, folder: Path) -> tuple[set[str], list[str]]:
    """Release the drawn tables one after the other with a register, from files in another order; what everybody finds.

    Holdings are named for the first table alone in every second case: they are the same in the others.
    """
    frame, drawn, holding, size = programme(seed)
    released: list[Plan] = []
    published: list[Published] = []
    held_by: list[bool] = []
    kinds: set[str] = set()
    for number, plan in enumerate(drawn):
        file = frame if number % 2 == 0 else in_another_file(frame, seed + number)
        named = holding if seed % 2 or not released else None
        method: Any = eq.tables.Suppress(_rule(drawn), coalition=size)
        try:
            made = eq.tabulate(
                eq.Records.of(file, eq.Roles(id="id")), **plan.options(), method=method, holding=named,
                register=folder / f"{seed}.json", out=folder / f"{seed}-{number}",
            )  # fmt: skip
        except (eq.RefusedError, eq.InfeasibleError):
            continue
        released.append(plan)
        published.append(numbers_of(made.table))
        held_by.append(named is not None)
        said = made.attackers.against
        kinds = covered(tuple(who for who in said if "earlier" in who) if len(released) > 1 else said)
    if len(released) < 2:
        return set(), []
    return kinds, Attack(frame, released, published, holding, held_by).failures(kinds, size)


def _rule(drawn: list[Plan]) -> Any:
    return eq.rules.MinCount(COUNT) if drawn[0].value is None else eq.rules.PPercent(P)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=40)
def test_tables_that_are_protected_together(seed: int) -> None:
    _, failures = attack_together(seed)
    assert not failures


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=40)
def test_tables_that_are_released_in_order(seed: int, tmp_path: Path) -> None:
    _, failures = attack_in_order(seed, tmp_path)
    assert not failures


def test_coalitions_pool_what_they_have_in_cells_with_others() -> None:
    """Two holdings know together what is theirs of a class that a third is in: a programme that once forgot it."""
    kinds, failures = attack_together(517)
    assert kinds
    assert not failures
