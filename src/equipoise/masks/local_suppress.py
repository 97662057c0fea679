"""Blank as few key values as make every class large enough."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.key_subsets import ClassSizes, subsets
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import together
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError, ParameterError, RolesError, hint
from equipoise.ground.randomness import Draws
from equipoise.masks._local_suppression import FREE, Blanks, Demand, SuppressionProblem, blank, excess
from equipoise.methods.method import Rule, label
from equipoise.methods.protection_levels import Either


@dataclass(frozen=True, slots=True)
class LocalSuppress:
    """Blank the fewest key values that leave every record in a class of at least k, where a blank matches anything.

    `rule` is `MinCount(k)`, `AnySubset(m, k)` (on every m of the keys) or several joined by `|`. What is lowest is the
    sum over keys of importance x values blanked: `importance` maps keys to weights (1 unless given; larger: dearer).
    `max_per_key` is the most values blanked of a key, one number or a mapping. Mappings may be text: "age=2+sex=1".
    The released file counts missing keys as matching anything (`missing="any"`). Blanking never makes a class smaller,
    and a record without any key matches everybody: without caps there is a way wherever there are k records.

    Every record is hidden by its own blanks: at least k records, as they were, fit what is left of it. The optimum is
    found exactly, with caps by a program in whole numbers; where caps do not allow it, what they lack is proven. With
    `shared` the blanks of other records count too, which is all that classes with `missing="any"` ask for and takes far
    fewer values: k - 1 records without any key satisfy everybody, and those who were unique still show all their keys.
    Then the best of some greedy ways and of a search is taken: on files of up to a few dozen records nearly always the
    optimum. Which of several equal records is blanked is drawn at random.

    Source: Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, ch. 5, local suppression;
    Meyerson and Williams (2004), *On the complexity of optimal k-anonymity*. Does not guard against an intruder who can
    tell why a value is missing, or who knows that a person is in the file: then only records with that person's own
    values or blanks can be theirs. Cost: one count of the cells for each set of keys tried, the cheapest first;
    100,000 records by 7 keys in a fraction of a second, by 9 in about one; with `shared` for every set of keys.

    >>> table = pl.DataFrame({"sex": ["f", "f", "f", "m"], "age": [30, 30, 31, 30]})
    >>> records = eq.Records.of(table, eq.Roles(["sex", "age"]))
    >>> LocalSuppress(eq.rules.MinCount(2)).apply(records, Draws(1)).collect().rows()
    [('f', 30), ('f', 30), ('f', None), (None, 30)]
    """

    rule: Rule
    importance: Mapping[str, float] | tuple[Any, ...] | str | None = None
    max_per_key: int | Mapping[str, int] | tuple[Any, ...] | str | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        _size_rules(self.rule)
        object.__setattr__(self, "importance", _texts(self.importance, "importance", float))
        object.__setattr__(self, "max_per_key", _caps(self.max_per_key))

    def apply(self, data: Records, draws: Draws) -> Records:
        if not data.roles.keys:
            raise RolesError("There are no keys to blank: name them in the roles.")
        table, marks = together(data)
        cells = count(data, data.roles.keys)
        problem = self._problem(cells)
        answer = blank(problem, alone=not self.shared)
        if answer.short:
            raise self._refusal(problem, answer, cells.by)
        released = _blanked(table, cells, answer, draws.uniform(marks))
        roles = replace(data.roles, missing="any")
        return replace(data.with_frame(released, self.law(cells.by, answer)), roles=roles)

    def law(self, keys: tuple[str, ...], answer: Blanks | None = None) -> Law:
        """What the public may know. How many values of each key were blanked stays in memory, in the detail."""
        parameters: dict[str, Any] = {"rule": label(self.rule), "missing": "any"}
        for name in ("importance", "max_per_key"):
            if (value := getattr(self, name)) is not None:
                parameters[name] = list(value) if isinstance(value, tuple) else value
        parameters |= {"shared": True} if self.shared else {}
        words = f"values of {', '.join(keys)} blanked so that {self._demand()}; a missing key matches anything, as if "
        words += "nobody could tell why it is missing"
        if self.shared and answer is not None:
            words += (
                f"; {answer.leaning:,} of {answer.small:,} records in small classes rely on blanks in other records"
            )
        return Law("local_suppress", keys, words, parameters, detail=answer)

    def words(self) -> str:
        return f"the fewest key values blanked so that {self._demand()}"

    def _demand(self) -> str:
        sizes = [part.asks() for part in _size_rules(self.rule)]
        demands = [f"at least {n:,} records{f' on any {m} keys' if m is not None else ''}" for n, m in sizes]
        return f"every class has {' and '.join(demands)}{', with the blanks of others' if self.shared else ''}"

    def _problem(self, cells: Cells) -> SuppressionProblem:
        keys = cells.by
        weights, most = _numbers(self.importance), _numbers(self.max_per_key, keys)
        for key in (*weights, *most):
            if key not in keys:
                raise RolesError(f"{key!r} is no key.{hint(key, keys)}")
        price = np.array([weights.get(key, 1.0) for key in keys], dtype=np.float64)
        caps = np.array([int(most.get(key, FREE)) for key in keys], dtype=np.int64)
        return SuppressionProblem(_codes(cells), cells.n, _demands(self.rule, keys), price, caps)

    def _refusal(self, problem: SuppressionProblem, answer: Blanks, keys: tuple[str, ...]) -> InfeasibleError:
        """Why there is no way: too few records, or caps, with what they lack."""
        records = int(problem.n.sum())
        if records < problem.largest:
            return InfeasibleError(f"The file has {records:,} records: no class can have {problem.largest:,}.")
        if self.shared:
            return InfeasibleError(
                f"No way was found within max_per_key: {answer.short:,} records stay in classes too small. Allow more "
                f"values of {keys[int(np.argmin(problem.caps - answer.used))]!r}, or take a weaker rule."
            )
        more = excess(problem)
        return InfeasibleError(
            f"max_per_key is too small: {int(more.sum()):,} more values must be blanked at least, "
            f"{int(more.max()):,} of them of {keys[int(np.argmax(more))]!r}. Allow more, or take a weaker rule."
        )


def _size_rules(rule: Any) -> tuple[ClassSizes, ...]:
    """The rules that must all hold, each about the size of classes alone; others are refused."""
    parts: tuple[Any, ...] = rule.rules if isinstance(rule, Either) else (rule,)
    if isinstance(rule, type) or not all(isinstance(part, ClassSizes) for part in parts):
        raise ParameterError("rule must be MinCount, AnySubset, or some of these joined by |: eq.rules.MinCount(3).")
    return parts


def _demands(rule: Any, keys: tuple[str, ...]) -> tuple[Demand, ...]:
    places = {key: place for place, key in enumerate(keys)}
    return tuple(
        Demand(tuple(places[key] for key in chosen), least)
        for least, columns in (part.asks() for part in _size_rules(rule))
        for chosen in subsets(keys, columns)
    )


def _codes(cells: Cells) -> Integers:
    """The codes of all keys, 0 where missing."""
    axes = zip(cells.cube.codes, cells.cube.axes, strict=True)
    return np.stack([codes.astype(np.int64) + (0 if values.null_count() else 1) for codes, values in axes])


def _blanked(table: pl.DataFrame, cells: Cells, answer: Blanks, uniform: Floats) -> pl.DataFrame:
    """The table with the blanks of each cell given to its records in the order of their draws."""
    cell = cell_of(table, cells)
    order = np.lexsort((uniform, cell))
    order_of_cells = np.argsort(answer.cells, kind="stable")
    own = answer.cells[order_of_cells]
    within = np.arange(len(own)) - np.searchsorted(own, own)
    masks = np.zeros(table.height, dtype=np.int64)
    masks[order[np.searchsorted(cell[order], own) + within]] = answer.masks[order_of_cells]
    hidden = [pl.Series((masks >> place & 1).astype(np.bool_)) for place in range(len(cells.by))]
    return table.with_columns(
        pl.when(~blank).then(pl.col(key)).alias(key) for key, blank in zip(cells.by, hidden, strict=True)
    )


def _texts(value_by_key: Any, name: str, kind: type) -> tuple[str, ...] | None:
    """A mapping, pairs or text as texts like 'age=2'."""
    if value_by_key is None:
        return None
    listed = value_by_key.split("+") if isinstance(value_by_key, str) else value_by_key
    listed = listed.items() if isinstance(listed, Mapping) else listed
    try:
        pairs = [pair.rpartition("=")[::2] if isinstance(pair, str) else tuple(pair) for pair in listed]
        numbers = {str(key): _number(value, name, kind) for key, value in pairs}
    except ParameterError:
        raise
    except (TypeError, ValueError):
        raise ParameterError(f"{name} takes a number for each key: {{'age': 2}} or 'age=2+sex=1'.") from None
    if len(numbers) < len(pairs):
        raise ParameterError(f"A key stands twice in {name}.")
    return tuple(f"{key}={value}" for key, value in numbers.items())


def _caps(caps: Any) -> int | tuple[str, ...] | None:
    """One number for all keys, also as text or in a list of one, or a text for each key."""
    lone = caps[0] if isinstance(caps, tuple | list) and len(caps) == 1 else caps
    if isinstance(lone, int | float) or (isinstance(lone, str) and "=" not in lone):
        return _number(lone, "max_per_key", int)
    return _texts(caps, "max_per_key", int)


def _numbers(number_by_key: Any, keys: tuple[str, ...] = ()) -> dict[str, float]:
    """The number of each key; one number is that of all."""
    if isinstance(number_by_key, int):
        return dict.fromkeys(keys, float(number_by_key))
    return {key: float(value) for key, _, value in (text.rpartition("=") for text in number_by_key or ())}


def _number(value: Any, name: str, kind: type) -> Any:
    try:
        number = kind(value)
        fits = not isinstance(value, bool) and np.isfinite(number) and number == float(value)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits or number < 0 or (kind is float and number == 0):
        least = "a number above 0" if kind is float else "a whole number, at least 0"
        raise ParameterError(f"{name} must be {least}, for all keys or for each.")
    return number
