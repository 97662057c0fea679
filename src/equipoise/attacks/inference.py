"""Attribute inference: how well an intruder who knows other values of a person guesses a sensitive one."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.attacks._guessing import GuessedValues, KnownColumns, Secret, by_class, by_trees, match, overall
from equipoise.data.aligned_files import comparable
from equipoise.data.records import Records
from equipoise.data.released_terms import ComparableFiles, by_id, rows
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError
from equipoise.ground.randomness import Draws
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.methods.share_interval import excess, wilson

SNOOPERS = {"match": "the nearest record", "class": "records with equal known values", "boosted": "boosted trees"}
MAX_CATEGORY_VALUES = 20
"""Distinct original values up to which numbers are guessed as categories."""
FOLDS = 3
"""Folds of the people, for trees fitted on the other folds."""


@dataclass(frozen=True, slots=True)
class Inference:
    """Share of people whose sensitive value is guessed right from the release by an intruder who knows other values.

    The intruder knows the `known` columns (the keys unless given) of a person's original record, in the terms of the
    release: a recoded value by its released label; so is the sensitive value, if it is a category. Several snoopers
    guess that value, y:
    - "match": the value of the released record nearest by the known columns (standardised numbers and dates, 0/1 for
      anything else, a missing number at a squared distance of 1), one at random of those that tie;
    - "class": the mode (one at random of those that tie) or the mean of the released records with equal known values;
      without any the last known column is left out, and so on to the whole file;
    - "boosted": gradient boosted trees fitted on the release. Where the files are the same people row by row, a person
      is guessed by trees fitted on other people's records, in three folds: they measure what can be learnt in
      general, while the others may use the person's own record. Needs the extra `learn`; without it the measure is
      refused rather than a weaker number given, and `snoopers` names those that do without.
    The best is chosen on a random half of the people and scored on the other half, both ways, so that the choice does
    not flatter it. The seed is public.

    value = mean probability of a right guess over the people with a value. Right is the same category, or for numbers
    and dates with more than 20 values |guess - y| <= `within` sd(y), with sd the original's (within=0: equal); the
    notes give 1 - MSE / Var(y) as well. The baseline is the same attack on the holdout, people reserved before any mask
    ran (`sweep(holdout=)`): what is learnt about people who are not in the file. The notes and the detail, a row per
    snooper, give the excess (a - c) / (1 - c) with its interval: it may be largest for a snooper who is not the best,
    for trees learn what is general and a match finds what was copied. Without a holdout the baseline is the mode or
    mean of the released column. By record, `risk` is the chance of a right guess (0 without a value). The interval is
    95 %, Wilson. Weights are not used. Works on masked files and on fully synthetic ones.

    Source: Giomi et al. (2023), *A unified framework for quantifying privacy risk in synthetic data*, for the holdout
    and the excess. Misleads when read without the baseline: a value that follows from the known ones is guessed right
    from any honest file, and a coarser one more easily. Cost: O(n log n) for the classes, the search of `Nearest` for
    people without equals, and three fits on at most 10,000 records.

    >>> original = Records.of(pl.DataFrame({"age": [20, 30, 40], "ill": ["no", "yes", "no"]}), Roles("age", "ill"))
    >>> score = Inference("ill", snoopers=("match",)).measure(original, original)
    >>> score.value, round(score.baseline, 4)
    (1.0, 0.6667)
    """

    sensitive: str
    known: tuple[str, ...] | None = None
    within: float = 0.1
    snoopers: tuple[str, ...] = tuple(SNOOPERS)
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, seed=0)
        if self.known == ():
            raise ParameterError("known names no column: leave it out, or name one.")
        if self.sensitive in (self.known or ()):
            raise ParameterError(f"{self.sensitive!r} cannot be both known and guessed.")
        if not self.snoopers or not set(self.snoopers) <= set(SNOOPERS):
            raise ParameterError(f"snoopers must be some of {', '.join(SNOOPERS)}.")
        if isinstance(self.within, bool) or not isinstance(self.within, int | float) or not 0 <= self.within < np.inf:
            raise ParameterError("within must be a number of standard deviations, 0 or more.")

    def measure(self, released: Records, original: Records) -> Score:
        known_columns = self.known or tuple(c for c in original.roles.keys if c != self.sensitive)
        if not known_columns:
            raise RolesError("No known columns were named, and no other column is a key.")
        files = ComparableFiles.read(released, original, (*known_columns, self.sensitive))
        case = _Case.of(files, original, known_columns, self)
        if not case.released.height:
            return self._nothing(case, original)
        return self._score(case, self._guesses(case, known_columns), original)

    def _guesses(self, case: "_Case", known_columns: tuple[str, ...]) -> dict[str, GuessedValues]:
        """Guesses of each snooper for all people; trees without enough to learn from are left out."""
        table = KnownColumns.of(case.released, case.people, known_columns)
        guesses: dict[str, GuessedValues | None] = {}
        for name in self.snoopers:
            if name == "match":
                guesses[name] = match(table, case.secret)
            elif name == "class":
                guesses[name] = by_class(table, case.secret)
            else:
                guesses[name] = by_trees(table, case.secret, case.places, case.folds, case.fold, self.seed)
        return {name: guess for name, guess in guesses.items() if guess is not None}

    def _score(self, case: "_Case", guesses: dict[str, GuessedValues], original: Records) -> Score:
        if not guesses:
            raise DataError(
                f"There is too little in the release to learn {self.sensitive!r} from: name other snoopers."
            )
        half = case.half
        picks = [_strongest(guesses, half[: case.n] == side) for side in (True, False)]
        hit = np.where(half, guesses[picks[1]].hit, guesses[picks[0]].hit)
        value, control = float(hit[: case.n].mean()), hit[case.n :]
        plain = float(overall(case.secret)[: case.n].mean())
        table = pl.DataFrame([_row(name, guess.hit, case.n) for name, guess in guesses.items()])
        return Score(
            label(self),
            value,
            interval=wilson(value, case.n),
            baseline=float(control.mean()) if len(control) else plain,
            number=float(hit[: case.n].sum()),
            unit="share of people",
            notes=(
                *_strength(picks, guesses, case.n),
                *_comparison(value, case.n, control, table),
                *self._spread(case, guesses, picks),
                *self._passed_over(case, guesses, original),
            ),
            cells=lambda: table,
            records=lambda: rows(original, risk=case.everybody(hit[: case.n])),
        )

    def _nothing(self, case: "_Case", original: Records) -> Score:
        why = f"The released file holds no value of {self.sensitive!r}: there is nothing to guess from."
        table = pl.DataFrame([_row(name, np.zeros(len(case.people)), case.n) for name in self.snoopers])
        return Score(
            label(self), 0.0, baseline=0.0, number=0.0, unit="share of people", notes=(why,),
            cells=lambda: table, records=lambda: rows(original, risk=case.everybody(np.zeros(case.n))),
        )  # fmt: skip

    def _spread(self, case: "_Case", guesses: dict[str, GuessedValues], picks: list[str]) -> tuple[str, ...]:
        """Note for numbers: the tolerance, and the share of the variance that the guesses explain."""
        one, two = guesses[picks[1]].error, guesses[picks[0]].error
        if case.secret.truth is None or one is None or two is None:
            return ()
        spread = float(case.secret.truth[: case.n].var())
        error = float(np.where(case.half, one, two)[: case.n].mean())
        explained = f"; 1 - MSE / variance is {1 - error / spread:.4g}" if spread > 0 else ""
        return (f"Right is within {self.within:g} standard deviations{explained}.",)

    def _passed_over(self, case: "_Case", guesses: dict[str, GuessedValues], original: Records) -> tuple[str, ...]:
        lacking = len(case.has_truth) - case.n
        notes = {
            f"{lacking:,} people without a value of {self.sensitive!r} were passed over.": lacking > 0,
            "There is too little in the release for boosted trees.": len(guesses) < len(self.snoopers),
            "The files are not the same people row by row: trees were fitted on the whole release.": (
                "boosted" in guesses and case.folds is None
            ),
            "Everybody counts once, whatever the weight.": original.roles.weight is not None,
        }
        return tuple(text for text, holds in notes.items() if holds)


@dataclass(frozen=True, eq=False, repr=False)
class _Case:
    """Released records with a value, and people with one: first `n` of the original, then those of the holdout.

    `has_truth` says which records of the original are among them. From random numbers of the public seed: `half` and
    `fold` of people, `places` that order the released records, and `folds` of those if they are people's own.
    """

    released: pl.DataFrame
    people: pl.DataFrame
    secret: Secret
    n: int
    has_truth: Integers
    half: Integers
    fold: Integers
    places: Floats
    folds: Integers | None

    @classmethod
    def of(cls, files: ComparableFiles, original: Records, columns: tuple[str, ...], attack: Inference) -> "_Case":
        sensitive = attack.sensitive
        number = _many_numbers(files.here[sensitive], files.there[sensitive])
        lots, has_truth = _random_numbers(files, original, attack.seed), _has_value(files.there[sensitive])
        holdout_has_truth = _has_value((files.there.clear() if files.held is None else files.held)[sensitive])
        files = files.in_terms(*columns, *(() if number else (sensitive,)))
        holdout = files.there.clear() if files.held is None else files.held
        values, _ = comparable(files.here[sensitive], files.there[sensitive], holdout[sensitive])
        has_value = _has_value(values[0])
        if not has_truth.any():
            raise DataError(f"No record of the original has a value of {sensitive!r}: there is nothing to guess.")
        people = pl.concat([files.there.filter(has_truth), holdout.filter(holdout_has_truth)], how="vertical_relaxed")
        released = values[0].filter(has_value)
        truth = pl.concat([values[1].filter(has_truth), values[2].filter(holdout_has_truth)])
        n, dealt = int(has_truth.sum()), np.hstack([lots[1][:, has_truth], lots[2][:, holdout_has_truth]])
        secret = _numbers(released, truth, n, attack.within) if number else _categories(released, truth, n)
        fold, folds = ((lot * FOLDS).astype(np.int64) for lot in (dealt[1], lots[0][1, has_value]))
        own = folds if files.in_step else None
        table, half, places = files.here.filter(has_value), dealt[0] < 0.5, lots[0][2, has_value]
        return cls(table, people, secret, n, has_truth, half, fold, places, own)

    def everybody(self, risk: Floats) -> Floats:
        """Risk of all records of the original, 0 for those without a value."""
        by_record = np.zeros(len(self.has_truth))
        by_record[self.has_truth] = risk
        return by_record


def _has_value(column: pl.Series) -> Integers:
    """Whether each record has a value."""
    return np.asarray(comparable(column)[0][0].is_not_null().to_numpy())


def _random_numbers(files: ComparableFiles, original: Records, seed: int) -> tuple[Floats, Floats, Floats]:
    """Three random numbers for each released record, each person of the original and each of the holdout.

    Keyed by id, or by the values in the files; a released record that is a person's own has those of the person.
    """
    name, holdout = original.roles.id, original.holdout
    beside = [c.alias(f"{c.name} released") for c in files.here.get_columns()] if files.in_step else []
    people = by_id(original, (name,)) if name else pl.DataFrame([*files.there.get_columns(), *beside])
    mine = _draw(people, name, seed)
    released = mine if files.in_step else _draw(files.here, None, seed)
    if holdout is None or files.held is None:
        return released, mine, np.zeros((3, 0))
    return released, mine, _draw(holdout.collect(name) if name else files.held, name, seed)


def _draw(table: pl.DataFrame, name: str | None, seed: int) -> Floats:
    keys, draws = Records.of(table, Roles(id=name)).keys_of_rows(), Draws(seed)
    return np.stack([draws.child(i).uniform(keys) for i in range(3)])


def _many_numbers(released: pl.Series, original: pl.Series) -> bool:
    """Whether a column holds numbers or dates in both files, with too many original values for categories."""
    (_, values), ordered = comparable(released, original)
    return ordered and values.drop_nulls().n_unique() > MAX_CATEGORY_VALUES


def _numbers(released: pl.Series, truth: pl.Series, n: int, within: float) -> Secret:
    values, people = released.to_numpy(), truth.to_numpy()
    if np.isinf(values).any() or np.isinf(people).any():
        raise DataError("A column holds infinite values: remove them first.")
    return Secret.numbers(values, people, within * float(np.sort(people[:n]).std()))


def _categories(released: pl.Series, truth: pl.Series, n: int) -> Secret:
    """A categorical secret; a released number is read as the nearest original one."""
    if released.dtype != pl.Float64 or not len(released):
        return Secret.categories(released, truth)
    values = truth.head(n).unique().sort().to_numpy()
    place = np.searchsorted((values[1:] + values[:-1]) / 2, released.to_numpy(), side="left")
    return Secret.categories(pl.Series(values[place]), truth)


def _strongest(guesses: dict[str, GuessedValues], people: Integers) -> str:
    """Snooper who is right most often among these people of the original; the first named of those that tie."""
    shares = {name: float(guess.hit[: len(people)][people].sum()) for name, guess in guesses.items()}
    return max(shares, key=lambda name: round(shares[name], 9))


def _row(name: str, hit: Floats, n: int) -> dict[str, object]:
    """Row of a snooper: the share of right guesses among people in the file and people held out."""
    value, holdout = float(hit[:n].mean()), hit[n:]
    if not len(holdout):
        return {"snooper": name, "risk": value, "baseline": None, "excess": None, "low": None, "high": None}
    control = float(holdout.mean())
    above, low, high = excess(value, n, control, len(holdout))
    return {"snooper": name, "risk": value, "baseline": control, "excess": above, "low": low, "high": high}


def _strength(picks: list[str], guesses: dict[str, GuessedValues], n: int) -> tuple[str, ...]:
    chosen = " or ".join(SNOOPERS[name] for name in dict.fromkeys(picks))
    shares = "; ".join(f"{SNOOPERS[name]}: {float(guess.hit[:n].mean()):.4g}" for name, guess in guesses.items())
    how = "chosen on one half of the people and scored on the other" if len(guesses) > 1 else "the only one tried"
    return (f"Strongest: {chosen}, {how}. On all people {shares}.",)


def _comparison(value: float, n: int, holdout: Floats, table: pl.DataFrame) -> tuple[str, ...]:
    """Notes on the share of people held out who are guessed right, and the excess of those in the file."""
    if not len(holdout):
        return ("Without a holdout the baseline is the mode or the mean of the released column.",)
    control = float(holdout.mean())
    above, low, high = excess(value, n, control, len(holdout))
    most = table.sort("excess", descending=True, maintain_order=True).row(0, named=True)
    return (
        f"Of {len(holdout):,} people held out {control:.4g} are guessed right; "
        f"of what that leaves, being in the file gives away {above:.4g} ({low:.4g} to {high:.4g}).",
        f"It gives away most by {SNOOPERS[most['snooper']]}: "
        f"{most['excess']:.4g} ({most['low']:.4g} to {most['high']:.4g}).",
    )
