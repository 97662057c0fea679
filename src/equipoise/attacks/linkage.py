"""An intruder who links the released file to a register by how well pairs of records agree."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.core.codes import Floats, Integers
from equipoise.core.errors import EngineError, ParameterError, RolesError
from equipoise.core.method import label
from equipoise.core.numeric import share
from equipoise.core.patterns import (
    APART,
    CLERICAL,
    DECISIONS,
    LINK,
    Agreement,
    Crossed,
    agreements,
    crossed,
    decide,
    estimate,
    exactly,
    inside,
    known,
)
from equipoise.core.records import Records
from equipoise.core.roles import names
from equipoise.core.score import Score, not_applicable

RECORDS = 100_000
"""Records of a file up to which the assignment is solved; beyond, cells are assigned to cells."""
CANDIDATES = 1_000_000
"""Candidate pairs among which it is solved."""
DENSE = 1_000_000
"""Places of a component of candidates up to which its assignment is solved as a full matrix."""
TIES = 3
"""Assignments that are averaged, ties broken at random in each; one will do for more records than `MANY`."""
MANY = 10_000
SEED = 1969
"""Public seed of the tie-breaking: the measure is the same every time."""

NOISE = 1e-9
"""Ties are broken by random numbers up to this, small against any difference of weights."""

Knows = Literal["patterns", "truth"]


@dataclass(frozen=True, slots=True)
class Linkage:
    """Share of people whose released record is paired with them by probabilistic record linkage.

    The original is the intruder's file. Each of the n x n pairs agrees on some variables, its pattern; missing agrees
    with nothing. With m_i and u_i the probability that a match and another pair agree on variable i, a pattern weighs
    w = sum over i of log2(m_i / u_i) where they agree, log2((1 - m_i) / (1 - u_i)) where not. From the largest weight
    down patterns are links while their probability among non-matches stays within `false_match`; from the smallest up
    non-links while that among matches stays within `false_nonmatch`; the clerical zone lies between. m and u are
    estimated by EM from the number of pairs of each pattern, all an intruder has (`knows="patterns"`), or taken from
    the true pairs, the strongest intruder of this kind (`knows="truth"`, never m below u).

    Links and clerical pairs are then paired one to one so that the sum of weights is largest: linear sum assignment,
    split by connected components, ties broken at random (mean of 3 up to 10,000 people). It takes files of up to
    100,000 records and, the heaviest patterns first, up to 1,000,000 candidate pairs; what is left after it, and larger
    files, are paired cells to cells from the largest weight down, groups sharing their partners equally, which finds a
    few percent fewer; the notes say how. Records of a cell are exchangeable: if f of its a records are paired with
    records of a cell of b, each of the a x b pairs is made with probability f / (a b). `by_record()` gives for each
    person in both files the probability that their pair is made, the detail the same by pattern of the true pair; the
    baseline is pairing at random; the interval is Wilson's, 95 %. True pairs are known by the id role, or by the row.

    Source: Fellegi and Sunter (1969); Jaro (1989); Domingo-Ferrer and Torra (2004), section 2.2. Misleads when
    variables depend on each other, which EM takes for matches; when a mask moves most values, however little (that is
    what `Nearest` sees); and when the intruder knows the mask. Cost: 2^v roll-ups of the cells for v
    variables (at most 12), never the pairs; then 1,000,000 candidates at most, and again up to 2^v groupings of cells.

    >>> from equipoise.core.roles import Roles
    >>> table = pl.DataFrame({"sex": ["f", "m", "f", "m"], "age": [30, 30, 41, 52], "town": ["a", "b", "b", "c"]})
    >>> records = Records.of(table, Roles(["sex", "age", "town"]))
    >>> Linkage().measure(records, records).value
    1.0
    """

    variables: tuple[str, ...] | None = None
    false_match: float = 0.01
    false_nonmatch: float = 0.01
    knows: Knows = "patterns"

    def __post_init__(self) -> None:
        if self.variables is not None:
            object.__setattr__(self, "variables", names(self.variables, "variables"))
            if not self.variables:
                raise ParameterError("variables names no column: leave it out to compare the keys.")
        share(self.false_match, "false_match", open_=True)
        share(self.false_nonmatch, "false_nonmatch", open_=True)
        if self.knows not in get_args(Knows):
            raise ParameterError(f"knows must be one of {', '.join(get_args(Knows))}, got {type(self.knows).__name__}.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        study = self._study(released, original)
        risk, how = _paired(study)
        people = len(risk)
        value = float(risk.mean())
        return Score(
            label(self),
            value,
            "lower",
            interval=_wilson(value, people),
            baseline=1 / max(len(study.files.one), len(study.files.two)),
            number=float(risk.sum()),
            unit="share of records",
            notes=(*_notes(study), how),
            cells=lambda: _detail(study, risk),
            records=lambda: study.people.with_columns(risk=pl.Series(risk)),
        )

    def patterns(self, released: Records, original: Records) -> pl.DataFrame:
        """Each pattern that pairs have ("101": first and third agree), the largest weight first.

        `pairs` of all, `m` and `u` the model's probability among matches and others, `weight`, and the `decision`.
        """
        study = self._study(released, original)
        return _table(study).filter(pl.col("pairs") > 0)

    def agreement(self, released: Records, original: Records) -> pl.DataFrame:
        """m and u of each variable, counted on the true pairs and estimated by EM."""
        study = self._study(released, original)
        truth, guess = study.truth, study.guess
        return pl.DataFrame(
            {"variable": study.names, "m_true": truth.m, "u_true": truth.u, "m_em": guess.m, "u_em": guess.u}
        )

    def _study(self, released: Records, original: Records) -> "_Study":
        columns = self.variables or original.roles.keys
        if not columns:
            raise RolesError("No variables were named, and no column has the role key.")
        for side in (original, released):
            for column in columns:
                if column not in (schema := side.schema()):
                    raise RolesError.missing(column, list(schema))
        here, there = _rows(original, columns), _rows(released, columns)
        files = crossed(here.select(columns), there.select(columns))
        return _Study(self, columns, files, agreements(files), *_truth(here, there, original.roles.id))


@dataclass(frozen=True, eq=False, repr=False)
class _Study:
    """The two files, their patterns, who is who (rows of both files), and what an intruder makes of it."""

    method: Linkage
    names: tuple[str, ...]
    files: Crossed
    at_least: Integers
    people: pl.DataFrame
    first: Integers
    second: Integers

    @cached_property
    def pairs(self) -> Integers:
        """All pairs by pattern."""
        return exactly(self.at_least)

    @cached_property
    def matches(self) -> Integers:
        """The pattern of each true pair."""
        return self.files.pattern(self.first, self.second)

    @cached_property
    def truth(self) -> Agreement:
        return known(self.at_least, self.matches)

    @cached_property
    def guess(self) -> Agreement:
        return estimate(self.pairs, len(self.files.one), len(self.files.two))

    @cached_property
    def rates(self) -> Agreement:
        """The m and u that the intruder goes by: agreement never speaks against a match."""
        if self.method.knows == "patterns":
            return self.guess
        m, u = self.truth.m, self.truth.u
        return replace(self.truth, m=inside(np.maximum(m, u)), u=inside(u))

    @cached_property
    def weights(self) -> Floats:
        return self.rates.weights()

    @cached_property
    def decisions(self) -> Integers:
        return decide(self.rates, self.method.false_match, self.method.false_nonmatch)

    @cached_property
    def order(self) -> list[int]:
        """The patterns of candidate pairs, the largest weight first; of equal ones that which agrees on more."""
        agree = np.bitwise_count(np.arange(len(self.pairs)))
        down = np.lexsort((np.arange(len(self.pairs)), -agree.astype(np.int64), -self.weights))
        return [int(s) for s in down if self.decisions[s] != APART]

    @cached_property
    def head(self) -> tuple[int, list[int]]:
        """How many patterns, from the largest weight down, the assignment can take, and the least sets among them.

        Whatever agrees on a least set is a candidate, so the pairs that agree on them are all that is looked at.
        """
        least: list[int] = []
        if max(len(self.files.one), len(self.files.two)) > RECORDS:
            return 0, least
        for taken, s in enumerate(self.order):
            wider = [t for t in least if t & s != s] + [s]
            if sum(int(self.at_least[t]) for t in wider) > CANDIDATES:
                return taken, least
            least = wider
        return len(self.order), least


def _rows(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    """The columns compared, and the id where there is one; a frame without row order needs it."""
    name = records.roles.id
    if not name and not records.frame.implementation.is_polars():
        raise EngineError("Files on this engine have no row order: name an id role to compare them record by record.")
    return records.collect(*dict.fromkeys((*columns, *((name,) if name else ()))))


def _truth(here: pl.DataFrame, there: pl.DataFrame, name: str | None) -> tuple[pl.DataFrame, Integers, Integers]:
    """The people in both files, in the order of the first, and their rows in both."""
    if not name or name not in there.columns:
        if here.height != there.height:
            raise EngineError("The released and the original file have different records: align them by an id role.")
        people = pl.DataFrame({"record": pl.int_range(here.height, dtype=pl.UInt32, eager=True)})
        return people, np.arange(here.height), np.arange(here.height)
    for side in (here, there):
        if side[name].null_count() or side[name].n_unique() < side.height:
            raise RolesError(f"The id column {name!r} has missing or repeated values: ids must be unique.")
    if here.schema[name] != there.schema[name]:
        raise RolesError(f"The id column {name!r} has another type in the released file.")
    rows = here.select(name).with_row_index("__first")
    both = rows.join(there.select(name).with_row_index("__second"), on=name, how="inner", maintain_order="left")
    if not both.height:
        raise EngineError("No record of the original file is in the released file: their ids have nothing in common.")
    return both.select(name), both["__first"].to_numpy(), both["__second"].to_numpy()


def _paired(study: _Study) -> tuple[Floats, str]:
    """For each person the probability that the right pair is made, and how pairs were made."""
    files, (taken, _) = study.files, study.head
    a, b = files.one[study.first], files.two[study.second]
    if taken:
        flow = _assigned(study)
        rest = ", of lighter ones cells to cells" if taken < len(study.order) else ""
        how = f"Pairs of the {taken:,} heaviest patterns were made by linear sum assignment{rest}."
    else:
        here, there = files.here.astype(np.float64), files.there.astype(np.float64)
        flow, how = _shared(study, here, there, study.order), "Cells were assigned to cells, the heaviest first."
    return np.minimum(flow / (files.here[a] * files.there[b]), 1.0), how


# --- cells assigned to cells: any size ----------------------------------------------------------------------------


def _shared(study: _Study, here: Floats, there: Floats, patterns: list[int]) -> Floats:
    """Expected number of pairs made between the cell of each person and the cell of their released record.

    `here` and `there` are the records of each cell that are still alone, and change. Weights never fall when a pair
    agrees on more (m >= u). So when pattern S has its turn, no two records are left that agree on more than S: all that
    are left of a group with equal values of S agree on exactly S, and are paired at random, `left here x left there /
    larger of the group's sums`. Expected numbers stand for those left over. A grouping of cells for each pattern.
    """
    files, matches = study.files, study.matches
    a, b = files.one[study.first], files.two[study.second]
    ordered = np.argsort(matches, kind="stable")
    ends = np.searchsorted(matches[ordered], np.arange(len(study.pairs) + 1))
    flow, sums, left = np.zeros(len(a)), np.zeros(len(here)), np.arange(len(here))
    for pattern in patterns:
        if not here.any() or not there.any():
            break
        left = left[(here[left] > 0) | (there[left] > 0)]
        ids, size = files.groups(pattern, left)
        ours, theirs = np.bincount(ids, here[left], size), np.bincount(ids, there[left], size)
        largest = np.maximum(ours, theirs)
        sums[left] = largest[ids]
        people = ordered[ends[pattern] : ends[pattern + 1]]
        people = people[(here[a[people]] > 0) & (there[b[people]] > 0)]
        flow[people] = here[a[people]] * there[b[people]] / sums[a[people]]
        here[left] *= 1 - (theirs / largest)[ids]
        there[left] *= 1 - (ours / largest)[ids]
    return flow


# --- linear sum assignment: up to CANDIDATES pairs ------------------------------------------------------------------


def _assigned(study: _Study) -> Floats:
    """Pairs made between the cell of each person and that of their released record, by the best assignment.

    Mean over several ways to break ties. The assignment leaves no two candidates alone, so what is left over can be
    shared by the lighter patterns.
    """
    files, (taken, _) = study.files, study.head
    a, b, weight = _candidates(study)
    parts = _components(a, b, len(files.here))
    place, found = _places(study, a, b)
    random, flow = np.random.default_rng(SEED), np.zeros(len(place))
    times = TIES if len(place) <= MANY else 1
    for _ in range(times):
        made = np.minimum(files.here[a], files.there[b]).astype(np.float64)
        for edges in parts:
            made[edges] = _best(a[edges], b[edges], weight[edges], files, random)
        here = np.asarray(files.here - np.bincount(a, made, len(files.here)), dtype=np.float64)
        there = np.asarray(files.there - np.bincount(b, made, len(files.there)), dtype=np.float64)
        flow += np.where(found, made[place], _shared(study, here, there, study.order[taken:]))
    return flow / times


def _places(study: _Study, a: Integers, b: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Where the true pair of each person stands among the candidates, and whether it does."""
    files, size = study.files, len(study.files.here)
    wanted = files.one[study.first] * size + files.two[study.second]
    key = a * size + b
    place = np.minimum(np.searchsorted(key, wanted), max(0, len(key) - 1))
    return place, (key[place] == wanted) if len(key) else np.zeros(len(wanted), dtype=np.bool_)


def _candidates(study: _Study) -> tuple[Integers, Integers, Floats]:
    """Pairs of cells that agree on a least set, in order, with their weight over that of staying alone.

    For each least set the pairs that agree on it, but for those that agree on an earlier one too. Staying alone weighs
    one bit less than the lightest candidate.
    """
    files, (taken, least), found = study.files, study.head, []
    left = np.arange(len(files.here))
    for turn, pattern in enumerate(least):
        ids, _ = files.groups(pattern, left)
        cells = pl.DataFrame({"cell": left, "group": ids, "here": files.here, "there": files.there})
        both = cells.filter(pl.col("here") > 0).join(cells.filter(pl.col("there") > 0), on="group")
        a, b = both["cell"].to_numpy(), both["cell_right"].to_numpy()
        agree = _pattern(files, a, b)
        new = np.ones(len(a), dtype=np.bool_)
        for earlier in least[:turn]:
            new &= agree & earlier != earlier
        found.append((a[new], b[new], agree[new]))
    a, b, agree = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((b, a))
    alone = study.weights[study.order[:taken]].min() - 1.0
    return a[order], b[order], study.weights[agree[order]] - alone


def _pattern(files: Crossed, a: Integers, b: Integers) -> Integers:
    """The pattern of pairs of cells."""
    found = np.zeros(len(a), dtype=np.int64)
    for bit, codes in enumerate(files.codes):
        found |= (codes[a] == codes[b]).astype(np.int64) << bit
    return found


def _components(a: Integers, b: Integers, size: int) -> list[Integers]:
    """The candidates of each part of the graph that has nothing to do with the others; parts of one pair left out."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(a)), (a, b + size)), shape=(2 * size, 2 * size))
    _, part = connected_components(graph, directed=False)
    ordered = np.flatnonzero(np.bincount(part[a])[part[a]] > 1)
    ordered = ordered[np.argsort(part[a[ordered]], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(part[a[ordered]])) + 1) if len(ordered) else []


def _best(a: Integers, b: Integers, weight: Floats, files: Crossed, random: np.random.Generator) -> Floats:
    """How many records of each pair of cells the best assignment of a component pairs."""
    rows, row = np.unique(a, return_inverse=True)
    columns, column = np.unique(b, return_inverse=True)
    down, across = files.here[rows], files.there[columns]
    solve = _full if int(down.sum()) * int(across.sum()) <= DENSE else _sparse
    i, j = solve(row, column, weight, down, across, random)
    key = row * len(columns) + column  # in order, as a and b are
    return np.bincount(np.searchsorted(key, i * len(columns) + j), minlength=len(key)).astype(np.float64)


def _full(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """The cells of the pairs that are made, from the matrix of all records of a component; 0 is no candidate."""
    from scipy.optimize import linear_sum_assignment

    cells = np.zeros((len(down), len(across)))
    cells[row, column] = weight
    i, j = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    matrix = cells[i[:, None], j]
    chosen = linear_sum_assignment(matrix + NOISE * random.random(matrix.shape), maximize=True)
    real = matrix[chosen] > 0
    return i[chosen[0][real]], j[chosen[1][real]]


def _sparse(
    row: Integers, column: Integers, weight: Floats, down: Integers, across: Integers, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """The same from the candidates alone; every record may also stay alone, in a column of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    times = down[row] * across[column]
    within = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    width = np.repeat(across[column], times)
    i = np.repeat((np.cumsum(down) - down)[row], times) + within // width
    j = np.repeat((np.cumsum(across) - across)[column], times) + within % width
    here, there = int(down.sum()), int(across.sum())
    worth = np.concatenate([np.repeat(weight, times) + NOISE * random.random(len(i)), np.full(here, NOISE)])
    places = np.concatenate([i, np.arange(here)]), np.concatenate([j, there + np.arange(here)])
    graph = csr_array((worth, places), shape=(here, there + here))
    i, j = min_weight_full_bipartite_matching(graph, maximize=True)
    real = j < there
    ours, theirs = np.repeat(np.arange(len(down)), down), np.repeat(np.arange(len(across)), across)
    return ours[i[real]], theirs[j[real]]


# --- what is told ------------------------------------------------------------------------------------------------


def _wilson(value: float, people: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share."""
    z = 1.96**2
    middle = (value + z / (2 * people)) / (1 + z / people)
    half = float(np.sqrt(z * (value * (1 - value) / people + z / (4 * people**2)))) / (1 + z / people)
    return max(0.0, min(value, middle - half)), min(1.0, max(value, middle + half))


def _notes(study: _Study) -> tuple[str, ...]:
    counts = {d: int(study.pairs[study.decisions == d].sum()) for d in (LINK, CLERICAL, APART)}
    guess = study.guess
    expected = guess.share * float(study.at_least[0])
    ended = (
        f"converged after {guess.rounds:,} rounds"
        if guess.converged
        else f"did not converge in {guess.rounds:,} rounds"
    )
    return (
        f"Of {int(study.at_least[0]):,} pairs {counts[LINK]:,} are links, {counts[CLERICAL]:,} in the clerical zone, "
        f"{counts[APART]:,} non-links.",
        f"EM {ended}; it expects {expected:,.0f} matches, there are {len(study.matches):,}.",
    )


def _table(study: _Study) -> pl.DataFrame:
    """A row per pattern, the largest weight first."""
    m, u = study.rates.of_patterns()
    width = study.files.variables
    texts = ["".join("01"[s >> i & 1] for i in range(width)) for s in range(len(m))]
    words = [DECISIONS[d] for d in study.decisions]
    columns = {"pattern": texts, "pairs": study.pairs, "m": m, "u": u, "weight": study.weights, "decision": words}
    return pl.DataFrame(columns).sort("weight", "pattern", descending=True)


def _detail(study: _Study, risk: Floats) -> pl.DataFrame:
    """A row per pattern that a true pair has: how many, and the probability that such a pair is made."""
    size = len(study.pairs)
    people = np.bincount(study.matches, minlength=size)
    right = np.bincount(study.matches, risk, minlength=size) / np.maximum(people, 1)
    texts = ["".join("01"[s >> i & 1] for i in range(study.files.variables)) for s in range(size)]
    found = pl.DataFrame({"pattern": texts, "true_pairs": people, "risk": np.minimum(right, 1.0)})
    return _table(study).join(found, on="pattern", maintain_order="left").filter(pl.col("true_pairs") > 0)
