"""Why each cell of a protected table is suppressed, what attackers know of it, and who: for the internal report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive
from equipoise.doors.report.page_parts import Facts
from equipoise.doors.report.table_grid import formatter
from equipoise.ground.errors import EquipoiseError
from equipoise.methods.method import name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.presentation.numbers import listed, percent, title
from equipoise.presentation.reading_order import telling_names
from equipoise.releases.tabulated import Tabulated

MAX_DETAILS = 1_500
"""Cells that the report explains at most; audit.csv has all."""
MAX_NAMED = 3
"""Other cells that one explanation names at most."""
PREFIX = re.compile(r"(?:Unsafe|Sensitive): ")
TOP = ("largest", "second", "third")


class CellDetails:
    """Explanations of the cells of one table."""

    def __init__(self, tabulated: Tabulated) -> None:
        table = tabulated.table
        self.tabulated, self.table = tabulated, table
        self.text, self.value = formatter(amount(table)), amount(table)
        self.names = [telling_names(axis, table.labels.of(axis.name)) for axis in table.axes]
        view = tabulated.known_cells
        self.below, self.above = view.below, view.above
        self.status = tabulated.statuses.to_list()
        self.rows = self._audit_rows()
        counts = "contributor" if table.measured else "respondent"
        self.party = "holding" if "holder" in table.more.columns else counts

    @cached_property
    def _neighbours(self) -> "_Neighbours":
        return _Neighbours(self.tabulated)

    def facts(self, places: Sequence[int]) -> list[Facts]:
        """What there is to say of each cell, as far as there is room."""
        places = places[:MAX_DETAILS]
        self.cells = dict(zip(places, self.table.table[places].iter_rows(named=True), strict=True))
        why = self._reasons([place for place in places if self.status[place] != "secondary"])
        return [
            {
                "place": place,
                "label": self.label(place),
                "status": ("" if self.tabulated.suppresses else "needs protection, ") + self.status[place],
                "value": self.text(float(self.value[place])),
                "who": self._contributors(place),
                "why": why.get(place) or self._neighbours.words(place, self.label),
                "known": self._known(place),
            }
            for place in places
        ]

    def label(self, place: int) -> str:
        """The name of a cell: its labels."""
        return " · ".join(names[int(node[place])] for names, node in zip(self.names, self.table.nodes, strict=True))

    def _contributors(self, place: int) -> str:
        """How many contribute, and the largest of them."""
        row = self.cells[place]
        many = row.get("contributors")
        if many is None:
            return "not known"
        words = f"{many:,} {self.party}{'' if many == 1 else 's'}"
        tops = [(name, row.get(f"top{rank}")) for rank, name in enumerate(TOP, start=1)]
        sizes = [f"{name} {self.text(float(size))}" for name, size in tops if size]
        return words + (
            f" ({', '.join(sizes[:many])})" if sizes and many > 1 else ", who knows it" if many == 1 else ""
        )

    def _reasons(self, places: Sequence[int]) -> dict[int, list[str]]:
        """What the rules say of sensitive cells; those withheld by hand say so."""
        words: dict[int, list[str]] = {place: [] for place in places}
        for part in parts_of(self.tabulated.rule):
            for place, reason in _explained(part, self.table, {place: self.cells[place] for place in places}):
                words[place].append(f"{title(name_of(type(part)))}: {PREFIX.sub('', reason)}")
        return {place: lines or [self._otherwise()] for place, lines in words.items()}

    def _otherwise(self) -> str:
        """Why a cell that no single rule explains is suppressed."""
        if self.tabulated.rule is None:
            return "It is small: no rule was given."
        withheld = getattr(self.tabulated.method, "withhold", None)
        return "Withheld by hand." if withheld else "Sensitive by the rules together."

    def _known(self, place: int) -> list[Facts]:
        """What each kind of attacker can compute, against what is asked for."""
        value, below, above = (float(x[place]) for x in (self.value, self.below, self.above))
        sensitive = self.status[place] != "secondary"
        needed = f"{self.text(value - below)} to {self.text(value + above)}" if sensitive else ""
        return [
            {
                "who": self._attacker(row["against"]),
                "outsider": row["against"] == "outsider",
                "between": f"{self.text(row['lower'])} to {self.text(row['upper'])}",
                "needed": needed,
                "kept": _kept(row, sensitive),
                "short": bool(row["exposed"]),
            }
            for row in self.rows.get(place, ())
        ]

    def _attacker(self, kind: str) -> str:
        if kind == "outsider":
            return "an outsider"
        if kind == "lone contributor":
            return f"a {self.party} alone in other cells"
        return f"a {self.party} who shares cells" if kind == "contributor" else kind

    def _audit_rows(self) -> dict[int, list[dict[str, Any]]]:
        """The rows of the audit, by cell."""
        if self.tabulated.audit.is_empty():
            return {}
        by = list(self.table.by)
        places = self.table.table.select(by).with_row_index("__place")
        rows = self.tabulated.audit.join(places, on=by, how="left", nulls_equal=True, maintain_order="left")
        cells: dict[int, list[dict[str, Any]]] = {}
        for row in rows.iter_rows(named=True):
            cells.setdefault(int(row["__place"]), []).append(row)
        return cells


def _kept(row: dict[str, Any], sensitive: bool) -> str:
    """Whether the interval is as wide as asked for."""
    if not sensitive:
        return "not known exactly" if not row["exact"] else "✗ known exactly"
    if row["reached"] is None:
        return "not audited, for that took too long"
    return "✓ in full" if not row["exposed"] else f"✗ {percent(row['reached'])} of the level"


def _explained(rule: Any, table: Table, cells: Mapping[int, dict[str, Any]]) -> Iterable[tuple[int, str]]:
    """What one rule says of the cells that it flags."""
    if hasattr(rule, "reasons"):
        yield from rule.reasons(table, list(cells)).items()
        return
    try:
        flags = rule.flag(table).to_list()
    except EquipoiseError:
        return
    for place, cell in cells.items():
        if flags[place]:
            yield place, rule.explain(cell) if hasattr(rule, "explain") else "It is sensitive by this rule."


class _Neighbours:
    """The suppressed cells that stand in one sum, and the way from each to the nearest sensitive one."""

    def __init__(self, tabulated: Tabulated) -> None:
        table = tabulated.table
        self.table = table
        hidden = np.isnan(table.published_values)
        self.sensitive = (tabulated.statuses == "sensitive").to_numpy()
        relations = additive(table)
        self.totals = relations.totals
        entries = relations.matrix.tocoo()
        keep = hidden[entries.col]
        rows = pl.DataFrame({"sum": entries.row[keep], "cell": entries.col[keep]})
        self.sums = dict(rows.group_by("cell", maintain_order=True).agg("sum").iter_rows())
        self.cells = dict(rows.group_by("sum", maintain_order=True).agg("cell").iter_rows())
        self.before = self._ways()

    def _ways(self) -> dict[int, tuple[int, int]]:
        """For each suppressed cell the next one on the way to a sensitive cell, and the sum they share."""
        edge = np.flatnonzero(self.sensitive).tolist()
        before, open_sums = dict.fromkeys(edge, (-1, -1)), dict(self.cells)
        while edge:
            reached = []
            for cell in edge:
                for number in self.sums.get(cell, ()):
                    for other in open_sums.pop(number, ()):
                        if other not in before:
                            before[other] = (cell, number)
                            reached.append(other)
            edge = reached
        return before

    def words(self, place: int, label: Any) -> list[str]:
        """Which sums a secondary cell keeps open, for which cells."""
        lines = []
        for number in self.sums.get(place, ()):
            others = [cell for cell in self.cells[number] if cell != place]
            targets = [cell for cell in others if self.sensitive[cell]]
            if targets:
                names = _few([label(cell) for cell in targets])
                end = "give that cell away" if len(others) == 1 else f"leave {len(others):,} unknown cells in that sum"
                lines.append(f"Protects {names} in the sum {self._sum(number, label)}: published, it would {end}.")
        if lines:
            return lines[:MAX_NAMED]
        step, number = self.before.get(place, (-1, -1))
        if step < 0:
            return ["Suppressed in an earlier table, or to keep contributors from computing others."]
        target = step
        while self.before[target][0] >= 0:
            target = self.before[target][0]
        sum_name = self._sum(number, label)
        return [f"Protects {label(step)}, also secondary, in the sum {sum_name}; that protects {label(target)}."]

    def _sum(self, number: int, label: Any) -> str:
        """A sum by the column that it runs over, and its total."""
        total, part = int(self.totals[number]), self.cells[number]
        other = next((cell for cell in part if cell != total), part[0])
        pairs = zip(self.table.axes, self.table.nodes, strict=True)
        axis = next((axis.name for axis, nodes in pairs if nodes[other] != nodes[total]), "its parts")
        return f"over {axis} to {label(total)}"


def _few(names: Sequence[str]) -> str:
    """Some names, and how many more."""
    if len(names) <= MAX_NAMED:
        return listed(names)
    return f"{', '.join(names[:MAX_NAMED])} and {len(names) - MAX_NAMED:,} more"
