"""Probabilistic record linkage (Fellegi-Sunter) of the released file to a register."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from equipoise.attacks._linkage.agreement_patterns import CLERICAL, DECISIONS, LINK, NON_LINK, Agreement, code_files
from equipoise.attacks._linkage.evaluate import Belief, Truth
from equipoise.attacks._linkage.graded_agreement import Rates, compare
from equipoise.attacks._linkage.pair_up import Bounds, CountedPairs, ListedPairs
from equipoise.attacks._nearest.same_person import owners
from equipoise.data.aligned_files import Matched, matched
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError, shown
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson

Knows = Literal["patterns", "values", "truth"]


@dataclass(frozen=True, slots=True)
class Linkage:
    """Share of people whose released record is paired with them by probabilistic record linkage.

    The original is the intruder's file. Each of the n x n pairs agrees on some variables, its pattern; missing agrees
    with nothing. With m_i and u_i the probability that a match and another pair agree on variable i, a pattern weighs
    w = sum over i of log2(m_i / u_i) where they agree, log2((1 - m_i) / (1 - u_i)) where not. From the largest weight
    down patterns are links while their probability among non-matches stays within `false_match`; from the smallest up
    non-links while that among matches stays within `false_nonmatch`; the clerical zone lies between. m and u are
    estimated by EM from the number of pairs of each pattern, all an intruder has (`knows="patterns"`), or taken from
    the true pairs (`knows="truth"`, never m below u). An intruder who counts values instead (`knows="values"`) takes 9
    of 10 values to be left as they were, m = u + 0.9 (1 - u), and gives agreement on a value that a share g of the
    release has log2(m / g) in place of log2(m / u): a rare value says more. Where variables depend on each other, which
    EM takes for matches, they mostly find more; try all three.

    `near` grades agreement: "age:4" says that ages up to 4 apart are near (dates in days), "name:0.8" that texts at
    least so similar are (`similarity`). Such a variable has three levels, equal, near and differing, with m and u each,
    estimated with m / u in this order; a pattern is written with 1, ~ and 0. Pairs of distinct value combinations are
    then compared one by one, at most 200,000,000 of them: those that are equal on `blocks`, all without. The notes say
    how many pairs were compared and left out.

    Links and clerical pairs are then paired one to one so that the sum of weights is largest: linear sum assignment,
    split by connected components, ties broken at random (mean of 3 up to 10,000 records). It takes files of up to
    100,000 records and, the heaviest patterns first, up to 1,000,000 candidate pairs; what is left after it, and larger
    files, are paired cells to cells from the largest weight down, groups sharing their partners equally, which finds a
    few percent fewer; the notes say how. With `knows="values"` up to 4,000,000 candidates are paired from the largest
    weight down, in files of any size. Records of a cell are exchangeable: if f of its a records are paired with
    records of a cell of b, each of the a x b pairs is made with probability f / (a b). `by_record()` gives for each
    person in both files the probability that their pair is made, the detail has a row for each pattern of true pairs
    with the same; the baseline is pairing at random; the interval is Wilson's, 95 %.

    True pairs are known by the id role, in files of other people and order too, or by the row in files of equal height;
    with the role `person` a pair with any record of the same person is right.
    Else the share is estimated, and the first note says so: a released file in which it is known who is who is drawn
    from EM's estimates (as many matches as EM expects, agreeing as m says) and linked by the same weights; right pairs
    count over the records of the smaller file. On simulated files of 2,000 with independent variables it was within
    0.06 of the truth; the interval does not hold the error of EM.
    `by_record()` then has every original record, with the sum over its pairs of P = r a b, r = m / u, the factors a and
    b fitted so that nobody matches twice, scaled to that share.

    Source: Fellegi and Sunter (1969); Jaro (1989); Newcombe et al. (1959) for rare values; Winkler (1990) for graded
    agreement; Domingo-Ferrer and Torra (2004), section 2.2. Misleads when variables depend on each other, which EM
    takes for matches; when a mask moves most values, however little, and `near` is not given (that is what `Nearest`
    sees); and when the intruder knows the mask. Cost: 2^v roll-ups of the cells for v variables (at most 12), never the
    pairs; then 1,000,000 candidates at most, and again up to 2^v groupings of cells. With `near` or `blocks`, the pairs
    of distinct value combinations, twice.

    >>> table = pl.DataFrame({"sex": ["f", "m", "f", "m"], "age": [30, 30, 41, 52], "town": ["a", "b", "b", "c"]})
    >>> records = eq.Records.of(table, eq.Roles(["sex", "age", "town"]))
    >>> Linkage().measure(records, records).value
    1.0
    """

    variables: tuple[str, ...] | None = None
    false_match: float = 0.01
    false_nonmatch: float = 0.01
    knows: Knows = "patterns"
    near: tuple[str, ...] | None = None
    blocks: tuple[str, ...] | None = None
    similarity: Literal["jaro-winkler", "levenshtein"] = "jaro-winkler"

    def __post_init__(self) -> None:
        if isinstance(self.near, Mapping):
            object.__setattr__(self, "near", tuple(f"{column}:{limit}" for column, limit in self.near.items()))
        check_fields(self)
        for field in ("variables", "near", "blocks"):
            if getattr(self, field) == ():
                raise ParameterError(f"{field} names no column: leave it out, or name one.")
        grades = _grades(self.near)
        if set(grades) & set(self.blocks or ()):
            raise ParameterError(f"{min(set(grades) & set(self.blocks or ()))!r} is under both near and blocks.")
        share(self.false_match, "false_match", open_=True)
        share(self.false_nonmatch, "false_nonmatch", open_=True)
        if self.knows == "values" and (self.near or self.blocks):
            raise ParameterError("knows='values' goes by equal values: leave near and blocks out, or knows.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        study, people = self._study(released, original)
        risk, how = _link(study, owners(original, people))
        size = min(len(study.files.first_cell), len(study.files.second_cell)) if study.people is None else len(risk)
        value = min(1.0, float(risk.sum()) / size)
        return Score(
            label(self),
            value,
            interval=wilson(value, size),
            baseline=1 / study.files.larger,
            number=float(risk.sum()),
            unit="share of records",
            notes=(*_notes(study, size), *self._block_notes(study), how),
            cells=lambda: _detail(study, risk),
            records=lambda: people.rows(risk=pl.Series(risk)),
        )

    def patterns(self, released: Records, original: Records) -> pl.DataFrame:
        """Table of the agreement patterns ("101": first and third agree; "~": near), the largest weight first.

        `pairs` of all, `m` and `u` the model's probability among matches and others, `weight`, and the `decision`.
        """
        study, _ = self._study(released, original)
        return _table(study).filter(pl.col("pairs") > 0)

    def agreement(self, released: Records, original: Records) -> pl.DataFrame:
        """m and u of each variable, counted on the true pairs (null if nobody knows them) and estimated by EM.

        With `near` also the `level`: a row for equal, and one for near.
        """
        study, _ = self._study(released, original)
        columns, truth, guess = self._columns(original), study.truth, _levels(study.guess)
        truth_levels = [(i, level, None, None) for i, level, _, _ in guess] if truth is None else _levels(truth)
        columns_by_name = {
            "variable": [columns[i] for i, _, _, _ in guess],
            "level": [level for _, level, _, _ in guess],
            "m_true": pl.Series([m for _, _, m, _ in truth_levels], dtype=pl.Float64),
            "u_true": pl.Series([u for _, _, _, u in truth_levels], dtype=pl.Float64),
            "m_em": [m for _, _, m, _ in guess],
            "u_em": [u for _, _, _, u in guess],
        }
        return pl.DataFrame(columns_by_name).drop(() if self.near else "level")

    def _columns(self, original: Records) -> tuple[str, ...]:
        """Variables compared: those named, or the keys; not the blocks."""
        columns = tuple(c for c in self.variables or original.roles.keys if c not in (self.blocks or ()))
        if not columns:
            raise RolesError("No variables were named, and no column has the role key.")
        for column in _grades(self.near):
            if column not in columns:
                raise ParameterError(f"{column!r} is near, but not one of the variables.")
        return columns

    def _study(self, released: Records, original: Records) -> "tuple[CountedPairs | ListedPairs, Matched]":
        columns, blocks = self._columns(original), self.blocks or ()
        files = matched(released, original, (*columns, *blocks))
        people = None if files.second is None else (files.first, files.second)
        bounds = Bounds(self.false_match, self.false_nonmatch, self.knows)
        if self.near is None and not blocks:
            return CountedPairs(code_files(files.original, files.released), bounds, people), files
        compared = compare(files.original, files.released, _grades(self.near), blocks, self.similarity)
        return ListedPairs(compared, bounds, people), files

    def _block_notes(self, study: CountedPairs | ListedPairs) -> tuple[str, ...]:
        """Note on the number of pairs compared, where blocks leave some out."""
        if not self.blocks:
            return ()
        every, compared = len(study.files.first_cell) * len(study.files.second_cell), int(study.pairs.sum())
        missed = "" if study.matches is None else f", {int((study.matches < 0).sum()):,} true ones among them"
        blocks = ", ".join(self.blocks)
        return (f"Compared: {compared:,} pairs equal on {blocks}; {every - compared:,} left out{missed}.",)


def _grades(near: tuple[str, ...] | None) -> dict[str, float]:
    """Limit of nearness of each column, from "age:4"."""
    limits: dict[str, float] = {}
    for text in near or ():
        column, mark, limit = text.rpartition(":")
        try:
            limits[column] = float(limit)
        except ValueError:
            limits[column] = -1.0
        if not mark or not column or not 0 < limits[column] < np.inf:
            raise ParameterError(
                f"near takes a column and a number above 0, like age:4 or name:0.8, got {shown(text)}."
            )
    return limits


def _link(study: CountedPairs | ListedPairs, owner: Integers | None = None) -> tuple[Floats, str]:
    """Probability of a right pair for each person (each original record if true pairs are unknown), and how linked.

    With the `owner` of each record, a pair with any record of the same person is right.
    """
    if study.people is not None and owner is not None:
        return _link_owners(study, study.people, owner)
    if study.people is not None and study.matches is not None:
        right = Truth(study.files, study.people, study.matches, len(study.pairs))
        how = study.link(right)
        return right.risk(), how
    belief = Belief(study)
    how = study.link(belief)
    total = float(_link(study.rehearsal(belief.alone))[0].sum())
    return np.minimum(belief.risk() * total / max(float(belief.risk().sum()), 1e-300), 1.0), how


def _link_owners(
    study: CountedPairs | ListedPairs, people: tuple[Integers, Integers], owner: Integers
) -> tuple[Floats, str]:
    """The same where a pair with any record of the owner is right: the sum over the cells of their released records."""
    mine = pl.DataFrame({"owner": owner, "row": np.arange(len(owner)), "cell": study.files.second_cell[people[1]]})
    released = mine.group_by("owner", "cell").agg(pl.col("row").first().alias("other"), pl.len().alias("times"))
    both = mine.join(released, on="owner")
    row, other = both["row"].to_numpy(), both["other"].to_numpy()
    pairs = people[0][row], people[1][other]
    matches = replace(study, people=pairs).matches
    assert matches is not None
    right = Truth(study.files, pairs, matches, len(study.pairs))
    how = study.link(right)
    return np.minimum(np.bincount(row, right.risk() * both["times"].to_numpy(), len(owner)), 1.0), how


def _levels(rates: Agreement | Rates) -> list[tuple[int, str, float, float]]:
    """Rows of m and u for each variable and level of agreement, equal first."""
    if isinstance(rates, Agreement):
        return [(i, "equal", float(m), float(u)) for i, (m, u) in enumerate(zip(rates.m, rates.u, strict=True))]
    rows = []
    for i, (m, u) in enumerate(zip(rates.m, rates.u, strict=True)):
        words = ("equal", "near")[: len(m) - 1]
        rows += [(i, word, float(m[-1 - k]), float(u[-1 - k])) for k, word in enumerate(words)]
    return rows


def _notes(study: CountedPairs | ListedPairs, size: int) -> tuple[str, ...]:
    counts = {d: int(study.pairs[study.decisions == d].sum()) for d in (LINK, CLERICAL, NON_LINK)}
    guess, every = study.guess, int(study.pairs.sum())
    ended = "converged after" if guess.converged else "did not converge in"
    expects = f"EM {ended} {guess.rounds:,} rounds; it expects {guess.share * every:,.0f} matches"
    unsure = (
        "Estimated: nobody can tell whose record is whose in these files; the share is that of right pairs in a file "
        f"drawn from what EM estimates, of the {size:,} records of the smaller file.",
    )
    return (
        *(unsure if study.matches is None else ()),
        f"Of {every:,} pairs {counts[LINK]:,} are links, {counts[CLERICAL]:,} in the clerical zone, "
        f"{counts[NON_LINK]:,} non-links.",
        f"{expects}." if study.matches is None else f"{expects}, there are {len(study.matches):,}.",
    )


def _table(study: CountedPairs | ListedPairs) -> pl.DataFrame:
    """Table of patterns, the largest weight first."""
    m, u = study.rates.of_patterns()
    words = [DECISIONS[d] for d in study.decisions]
    columns = {"pattern": study.texts(), "pairs": study.pairs, "m": m, "u": u, "weight": study.weights}
    return pl.DataFrame(columns | {"decision": words}).sort("weight", "pattern", descending=True)


def _detail(study: CountedPairs | ListedPairs, risk: Floats) -> pl.DataFrame:
    """Table of the patterns of true pairs: how many there are, and the probability that such a pair is made.

    Where the true pairs are unknown, the expected number, and the probability that such a pair matches.
    """
    if study.matches is None:
        m, u = pl.col("m") * study.share, pl.col("u") * (1 - study.share)
        expected = _table(study).filter(pl.col("pairs") > 0).with_columns(risk=m / (m + u))
        return expected.with_columns(true_pairs=pl.col("pairs") * pl.col("risk"))
    size, inside = len(study.pairs), study.matches >= 0
    people = np.bincount(study.matches[inside], minlength=size)
    right = np.bincount(study.matches[inside], risk[inside], minlength=size) / np.maximum(people, 1)
    by_pattern = pl.DataFrame({"pattern": study.texts(), "true_pairs": people, "risk": np.minimum(right, 1.0)})
    return _table(study).join(by_pattern, on="pattern", maintain_order="left").filter(pl.col("true_pairs") > 0)
