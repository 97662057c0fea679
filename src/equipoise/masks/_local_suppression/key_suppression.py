"""Local suppression of key values: what masks that blank them, or begin with the blanks, share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.key_subsets import ClassSizes, subsets
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import all_in_memory
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError, ParameterError, RolesError, hint
from equipoise.ground.randomness import Draws
from equipoise.masks._local_suppression import (
    FREE,
    Blanks,
    Demand,
    IdenticalBlanks,
    SuppressionProblem,
    blank,
    blank_identical,
    excess,
)
from equipoise.masks._local_suppression.blanked_records import RecordCells
from equipoise.masks._local_suppression.released_rows import Shares
from equipoise.masks._local_suppression.unit_ties import (
    Tie,
    blanks_of,
    followed,
    one_per_person,
    plain_floats,
    smallest_class,
    ties_of,
    ties_shown,
)
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import one_of
from equipoise.methods.protection_levels import Either


class KeySuppression:
    """Mixin of masks with a rule on class sizes, weights and caps of keys, and a guard: see `LocalSuppress`."""

    __slots__ = ()
    rule: Rule
    importance: Mapping[str, float] | tuple[Any, ...] | str | None
    max_per_key: int | Mapping[str, int] | tuple[Any, ...] | str | None
    shared: bool
    guard: Literal["identical", "wildcard"]

    def __post_init__(self) -> None:
        _size_rules(self.rule)
        object.__setattr__(self, "importance", _texts(self.importance, "importance", float))
        object.__setattr__(self, "max_per_key", _caps(self.max_per_key))
        one_of(self.guard, "guard", ("identical", "wildcard"))
        if self.shared and self.guard == "identical":
            raise ParameterError("shared lets blanks of others count, which only guard='wildcard' does.")

    def suppressed(self, data: Records, draws: Draws) -> Records:
        """The records with blanks, and the law that says so."""
        if not data.roles.keys:
            raise RolesError("There are no keys to blank: name them in the roles.")
        if data.roles.person and self.guard == "wildcard":
            raise RolesError(
                "guard='wildcard' counts records, not people: use 'identical', or leave out the role person."
            )
        table = all_in_memory(data)
        return (self._identical if self.guard == "identical" else self._wildcard)(data, table, draws)

    def _wildcard(self, data: Records, table: pl.DataFrame, draws: Draws) -> Records:
        """Records with blanks that match anything; a value that came missing is one like others, and costs nothing."""
        keys, cells = data.roles.keys, RecordCells.of(Records.of(table, data.roles))
        problem = self._problem(keys, replace(cells, codes=cells.codes + 1))
        answer = blank(problem, alone=not self.shared)
        if answer.short:
            raise self._refusal(problem, keys, answer)
        released = cells.blanked(Shares(answer.cells, answer.masks, np.ones_like(answer.cells)), draws)
        used = blanks_of(released, table, keys)
        answer = replace(answer, used=used, cost=float(used @ problem.price))
        return data.with_frame(released, self.suppression_law(keys, answer))

    def _identical(self, data: Records, original: pl.DataFrame, draws: Draws) -> Records:
        """Records with blanks; where people have several, with more of them if any are told apart by another."""
        self._refuse_few_people(data, original)
        ties, person = ties_of(original, data), data.roles.person
        table, whole = self._followed_answers(data, original, ties, draws)
        while more := ties_shown(table, data, ties):
            ties = [*ties, *more]
            table, whole = self._followed_answers(data, original, ties, draws)
        if person and smallest_class(table, data.roles) < whole.problem.largest:
            ties = [*(tie for tie in ties if tie.unit != person), Tie(person, data.roles.keys, 1.0)]
            table, whole = self._followed_answers(data, original, ties, draws)
        return data.with_frame(table, self.suppression_law(data.roles.keys, whole))

    def _followed_answers(
        self, data: Records, original: pl.DataFrame, ties: list[Tie], draws: Draws
    ) -> tuple[pl.DataFrame, IdenticalBlanks]:
        """Blanks, and again where other records of a household or person follow or repeat people, until none do."""
        keys, person = data.roles.keys, data.roles.person
        plain = plain_floats(original, keys)
        table, again = followed(plain, ties, plain)[0], True
        scale = np.prod([np.where(np.isin(keys, tie.keys), tie.records, 1.0) for tie in ties], axis=0, initial=1.0)
        answers: list[IdenticalBlanks] = []
        while again:
            units, places = one_per_person(table, data.roles)
            current, turn = Records.of(units, replace(data.roles, person=None)), draws.child(len(answers))
            cells = RecordCells.of(current)
            answer = self._answer(self._problem(keys, cells), keys, blanks_of(table, original, keys), scale)
            units = cells.blanked(answer.shares, turn if answers else draws)
            answers.append(answer)
            table = units if places is None else table.with_columns(units[key].gather(places) for key in keys)
            table, followers = followed(table, ties, plain)
            again = followers > 0 or (person is not None and answers[-1].small > 0)
        used = blanks_of(table, original, keys)
        return table, replace(answers[0], used=used, cost=float(used @ answers[0].problem.price))

    def _refuse_few_people(self, data: Records, table: pl.DataFrame) -> None:
        """With several records of a person: only what can be counted in people."""
        person = data.roles.person
        if person is None:
            return
        if any(keys is not None for _, keys in (part.asks() for part in _size_rules(self.rule))):
            raise RolesError("AnySubset counts records, not people: use MinCount, or leave out the role person.")
        least = max(size for size, _ in (part.asks() for part in _size_rules(self.rule)))
        if (people := table[person].n_unique()) < least:
            raise InfeasibleError(f"The file has {people:,} people: no class can have {least:,}.")

    def _answer(
        self, problem: SuppressionProblem, keys: tuple[str, ...], used: Integers, scale: Floats
    ) -> IdenticalBlanks:
        """Blanks within what the caps leave, the prices scaled by how many records follow each; refused without any."""
        room = np.where(problem.caps == FREE, FREE, problem.caps - used)
        within = (room >= 0).all() and int(problem.n.sum()) >= problem.largest
        answer = blank_identical(replace(problem, price=problem.price * scale, caps=room)) if within else None
        if answer is None:
            raise self._refusal(problem, keys)
        return answer if (scale == 1).all() else replace(answer, problem=problem, proven=0.0)

    def suppression_law(self, keys: tuple[str, ...], answer: Blanks | IdenticalBlanks | None = None) -> Law:
        """What the public may know. How many values of each key were blanked stays in memory, in the detail."""
        parameters: dict[str, Any] = {"rule": label(self.rule), "guard": self.guard}
        for name in ("importance", "max_per_key"):
            if (value := getattr(self, name)) is not None:
                parameters[name] = list(value) if isinstance(value, tuple) else value
        blanked = f"values of {', '.join(keys)} blanked so that"
        if self.guard == "identical":
            return Law("local_suppress", keys, f"{blanked} {self.demand()}", parameters, detail=answer)
        parameters |= {"shared": True} if self.shared else {}
        words = f"{blanked} {self.demand()}; a blank matches anything, as if nobody could tell why it is missing"
        if self.shared and isinstance(answer, Blanks):
            words += (
                f"; {answer.leaning:,} of {answer.small:,} records in small classes rely on blanks in other records"
            )
        return Law("local_suppress", keys, words, parameters, detail=answer)

    def demand(self) -> str:
        """What holds of the blanked file, in words."""
        sizes = [part.asks() for part in _size_rules(self.rule)]
        if self.guard == "identical":
            others = [
                f"{n - 1:,} other{'s' * (n != 2)}{f' on any {m} keys' if m is not None else ''}" for n, m in sizes
            ]
            return f"every released row is identical to at least {' and '.join(others)}; a blank counts as a value"
        demands = [f"at least {n:,} records{f' on any {m} keys' if m is not None else ''}" for n, m in sizes]
        return f"every class has {' and '.join(demands)}{', with the blanks of others' if self.shared else ''}"

    def _problem(self, keys: tuple[str, ...], cells: RecordCells) -> SuppressionProblem:
        weights, most = _numbers(self.importance), _numbers(self.max_per_key, keys)
        for key in (*weights, *most):
            if key not in keys:
                raise RolesError(f"{key!r} is no key.{hint(key, keys)}")
        price = np.array([weights.get(key, 1.0) for key in keys], dtype=np.float64)
        caps = np.array([int(most.get(key, FREE)) for key in keys], dtype=np.int64)
        return SuppressionProblem(cells.codes, cells.n, _demands(self.rule, keys), price, caps)

    def _refusal(
        self, problem: SuppressionProblem, keys: tuple[str, ...], answer: Blanks | None = None
    ) -> InfeasibleError:
        """Why there is no way: too few records, or caps, with what they lack as far as that is proven."""
        records = int(problem.n.sum())
        if records < problem.largest:
            return InfeasibleError(f"The file has {records:,} records: no class can have {problem.largest:,}.")
        if self.shared and answer is not None:
            return InfeasibleError(
                f"No way was found within max_per_key: {answer.short:,} records stay in classes too small. Allow more "
                f"values of {keys[int(np.argmin(problem.caps - answer.used))]!r}, or take a weaker rule."
            )
        more = excess(problem)
        if not more.any():
            return InfeasibleError(
                "No way was found within max_per_key to make every released row identical to enough others: allow more "
                "values, or take a weaker rule."
            )
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
