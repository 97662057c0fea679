"""Scoped measures: a measure for one intruder scenario, within groups, or of the worst record."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import isnan
from typing import Any

import narwhals as nw
import polars as pl

from equipoise.data import engines
from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError, RolesError, hint
from equipoise.methods.method import Measure, OnCells, label, name_of
from equipoise.methods.score import Score, not_applicable
from equipoise.policies.sections import Intruder
from equipoise.recipe.catalogue import family, parse

SCENARIO_FREE_RISKS = (
    "value_disclosure", "known_within", "copies", "recognisable", "interval", "singling_out", "revealing_columns",
)  # fmt: skip
"""Risks that do not depend on what an intruder knows: he has found the record, or looks at all columns."""
KEYS_SCENARIO = "keys"
"""The scenario of an intruder who knows all keys of the roles; it need not be written."""
MAX_GROUPS = 1000
"""Groups of a limit at most."""
COLUMN_PATTERN = r'(?:[\w.-]+|"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
LIMIT_NAME_PATTERN = re.compile(
    rf"(?P<measure>.*?)(?:\[(?P<scenario>[^\[\]()]+)\])?(?: by (?P<by>{COLUMN_PATTERN}(?:, {COLUMN_PATTERN})*))?"
    r"(?P<worst> \(worst record\))?",
    re.DOTALL,
)
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Wanted:
    """The measure and scope that a name states: `uniques(k=3)[journalist] by region (worst record)`.

    >>> Wanted.of("uniques(k=3)[journalist] by region, sex")
    Wanted(measure='uniques(k=3)', scenario='journalist', by=('region', 'sex'), worst=False)
    >>> str(Wanted("individual", worst=True))
    'individual (worst record)'
    """

    measure: str
    scenario: str | None = None
    by: tuple[str, ...] = ()
    worst: bool = False

    @classmethod
    def of(cls, name: str) -> "Wanted":
        match = LIMIT_NAME_PATTERN.fullmatch(name.strip())
        assert match is not None
        columns = re.findall(COLUMN_PATTERN, match["by"] or "")
        by = tuple(json.loads(c, strict=False) if c.startswith('"') else c for c in columns)
        return cls(match["measure"].strip(), match["scenario"], by, bool(match["worst"]))

    def __str__(self) -> str:
        columns = (c if re.fullmatch(r"[\w.-]+", c) else json.dumps(c, ensure_ascii=False) for c in self.by)
        where = f"[{self.scenario}]" if self.scenario else ""
        groups = f" by {', '.join(columns)}" if self.by else ""
        return f"{self.measure}{where}{groups}{' (worst record)' if self.worst else ''}"

    @property
    def plain(self) -> bool:
        """Whether the name is a measure without scope."""
        return not (self.scenario or self.by or self.worst)


def scale(name: str, scenarios: tuple[Intruder, ...] = ()) -> Measure:
    """The measure of a name; a plain one is the method itself."""
    scope = Wanted.of(name)
    inner: Measure = parse(scope.measure, "measure")
    if scope.plain:
        return inner
    if (scope.scenario or scope.worst) and family(type(inner)) not in ("risk", "attacks"):
        raise ParameterError(f"{scope.measure!r} is no risk: it has no scenario and no worst record.")
    if family(type(inner)) == "tables":
        raise ParameterError(f"{scope.measure!r} measures a table: it has no scenario and no groups.")
    kind = CellScale if isinstance(inner, OnCells) and family(type(inner)) == "risk" else Scale
    return kind(inner, _find_scenario(scope.scenario, scenarios), scope.by, scope.worst)


def _find_scenario(name: str | None, scenarios: tuple[Intruder, ...]) -> Intruder | None:
    if name is None:
        return None
    scenario = next((s for s in (*scenarios, Intruder(KEYS_SCENARIO, ())) if s.name == name), None)
    if scenario is None:
        raise ParameterError(f"No scenario {name!r}.{hint(name, [*(s.name for s in scenarios), KEYS_SCENARIO])}")
    return scenario


def depends(measure: Measure) -> bool:
    """Whether a risk depends on what an intruder knows."""
    return family(type(measure)) in ("risk", "attacks") and name_of(type(measure)) not in SCENARIO_FREE_RISKS


@dataclass(frozen=True)
class Scale:
    """A measure for one scenario, within groups (the worst group counts), or of the worst record.

    In a scenario the known columns replace the keys, and `known` (or `variables`) of an attack.
    Groups are those of the released file. Misleads when a group is so small that any record in it stands out: that is
    what it is for. Cost: that of the measure in each group.
    """

    inner: Measure
    scenario: Intruder | None = None
    groups: tuple[str, ...] = ()
    worst: bool = False

    @property
    def known_as(self) -> str:
        """The name of its score."""
        scenario = self.scenario.name if self.scenario else None
        return str(Wanted(label(self.inner), scenario, self.groups, self.worst))

    def measure(self, released: Any, original: Any) -> Score:
        if isinstance(released, Records) and released.synthetic and family(type(self.inner)) == "risk":
            return not_applicable(self.known_as, "lower")
        if not self.groups:
            return replace(self._one(self._as_intruder(released), self._as_intruder(original)), name=self.known_as)
        scores = [self._one(*pair) for pair in self._pairs(self._as_intruder(released), self._as_intruder(original))]
        note = f"The worst of {len(scores):,} groups by {', '.join(self.groups)}."
        score = _worst_of(scores)
        return replace(score, name=self.known_as, notes=(note, *score.notes))

    def _one(self, released: Any, original: Any) -> Score:
        score = self._informed_measure().measure(released, original)
        return _worst_record(score) if self.worst else score

    def _informed_measure(self) -> Any:
        """The measure with the columns that the intruder knows."""
        if self.scenario is None or not self.scenario.known:
            return self.inner
        inner: Any = self.inner
        names = [f.name for f in fields(inner)]
        place = next((n for n in ("known", "variables") if n in names), None)
        return inner if place is None or getattr(inner, place) else replace(inner, **{place: self.scenario.known})

    def _as_intruder(self, data: Any) -> Any:
        """The records with the columns that the intruder knows as keys."""
        if not isinstance(data, Records) or self.scenario is None or not self.scenario.known:
            return data
        place = ("scenario", self.scenario)
        if place not in data.memo:
            data.memo[place] = replace(data, roles=self.roles(data.roles))
        return data.memo[place]

    def roles(self, roles: Roles) -> Roles:
        """The roles in this scenario."""
        if self.scenario is None or not self.scenario.known:
            return roles
        keys = self.scenario.known
        sensitive = roles.sensitive if self.scenario.sensitive is None else self.scenario.sensitive
        return replace(roles, keys=keys, sensitive=tuple(c for c in sensitive if c not in keys))

    def _pairs(self, released: Records, original: Records) -> Iterator[Pair]:
        return _by_records(released, original, self.groups)


@dataclass(frozen=True)
class CellScale(Scale):
    """A scoped risk that needs only cells, counted by the known columns and the groups."""

    def by(self, roles: Roles) -> tuple[str, ...]:
        inner: Any = self.inner
        return tuple(dict.fromkeys((*inner.by(self.roles(roles)), *self.groups)))

    def _as_intruder(self, data: Any) -> Any:
        if isinstance(data, Cells):
            return replace(data, open=data.by) if data.open and self.scenario and self.scenario.known else data
        return super()._as_intruder(data)

    def _pairs(self, released: Any, original: Any) -> Iterator[Pair]:
        """The cells of each group of the release, each against itself: risks on cells need no original."""
        cells = count(released, self.by(released.roles)) if isinstance(released, Records) else released
        return ((part, part) for part in _by_cells(cells, self.groups))


def _by_cells(cells: Cells, groups: tuple[str, ...]) -> Iterator[Cells]:
    """The cells of each group, without the columns that are alike in it. O(cells log cells)."""
    columns = tuple(c for c in cells.by if c not in groups) or cells.by
    table = cells.table.select(*cells.by, "n", "total").with_row_index("__at__")
    parts = table.partition_by(groups, maintain_order=True)
    _refuse_many(len(parts))
    for part in parts:
        people = cells.people.only(part["__at__"].to_numpy()) if cells.people else None
        group = Cells.of(part.drop("__at__"), cells.by, cells.hierarchies)
        yield replace(group, open=cells.open, people=people).margin(columns)


def _by_records(released: Records, original: Records, groups: tuple[str, ...]) -> Iterator[Pair]:
    """The records of each group in both files: by the columns where no mask touched them, else by id, else by row."""
    columns = list(groups)
    values = engines.collect(released.frame.select(*columns).unique()).sort(columns)
    _refuse_many(values.height)
    touched = {c for law in released.history for c in law.columns} & set(groups)
    if not touched:
        for row in values.iter_rows(named=True):
            yield _within(released, row), _within(original, row)
        return
    table, before = released.collect(), original.collect()
    for rows in table.with_row_index("__eq_at").partition_by(columns, maintain_order=True):
        yield _rows(released, table[rows["__eq_at"]]), _rows(original, _same(rows, before, original, table.height))


def _same(rows: pl.DataFrame, before: pl.DataFrame, original: Records, height: int) -> pl.DataFrame:
    """The original rows of released ones."""
    key = original.roles.id
    if key and key in rows.columns:
        return before.filter(pl.col(key).is_in(rows[key].implode()))
    if before.height != height:
        raise DataError("A limit within groups that a mask changes needs an id: rows of the two files do not match.")
    return before[rows["__eq_at"]]


def _rows(records: Records, table: pl.DataFrame) -> Records:
    return replace(records, frame=nw.from_native(table.lazy()))


def _within(records: Records, row: dict[str, Any]) -> Records:
    """The records with these values."""
    if missing := [c for c in row if c not in records.schema()]:
        raise RolesError.missing(missing[0], list(records.schema()))
    parts = [nw.col(c).is_null() if v is None else nw.col(c) == v for c, v in row.items()]
    return replace(records, frame=records.frame.filter(*parts))


def _refuse_many(groups: int) -> None:
    if groups > MAX_GROUPS:
        raise ParameterError(f"A limit goes by {groups:,} groups, more than {MAX_GROUPS:,}: take coarser ones.")


def _worst_of(scores: list[Score]) -> Score:
    """The worst score; one that is not a number is worse than any."""
    sign = 1.0 if scores[0].better == "lower" else -1.0
    return max(scores, key=lambda s: float("inf") if isnan(s.value) else sign * s.value)


def _worst_record(score: Score) -> Score:
    """The largest risk of a single record."""
    try:
        table = score.detail if score.cells is not None else score.by_record()
        risks = table["risk"].drop_nulls()
    except (EquipoiseError, pl.exceptions.PolarsError):
        raise ParameterError(f"{score.name!r} says nothing of single records: leave out worst = true.") from None
    worst = float(risks.max() or 0.0)  # type: ignore[arg-type]
    return replace(score, value=worst, number=None, interval=None, unit="share")
