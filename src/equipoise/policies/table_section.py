"""Section [table] of a policy file: what the table holds, and how it is made."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.tables.count_table import DEFAULT_TOP, table
from equipoise.data.tables.ready_table import Ready
from equipoise.data.tables.statistic import FORMS, Percentile, statistic_of
from equipoise.data.tables.table import Table
from equipoise.ground import system
from equipoise.ground.errors import ParameterError, RolesError, hint
from equipoise.ground.options import option
from equipoise.ground.randomness import Draws
from equipoise.masks import Recode
from equipoise.policies.column_hierarchies import column_tree
from equipoise.policies.dominance_check import parts_of
from equipoise.policies.sections import Section
from equipoise.tables import CellKey, CellKeyAmounts, record_keys

RESERVED_LABELS = ("published", "status", "code", "exact", "exposed", "lower", "upper", "table")
"""Columns of a protected table and its audit: no column of the records may have such a name."""
WISHES = "How it is protected"
TABLE = "What the table holds"
"""Where the command line lists the layout of a table."""


@dataclass(frozen=True)
class TableLayout:
    """What a table holds, said in the same words in Python, on the command line and in a policy file."""

    by: tuple[str, ...] = option(
        (), "The columns of the table: region,industry.", positional=True, cli="names", metavar="COLUMNS", panel=TABLE
    )
    value: str | None = option(
        None, "What is added up; records are counted when not given.", positional=True, cli="text", metavar="COLUMN",
        panel=TABLE,
    )  # fmt: skip
    holding: str | None = option(
        None, "Whose records are one contribution: the holding, the owner.", cli="text", metavar="COLUMN", panel=TABLE
    )
    weight: str | None = option(None, "How many people of the population a record stands for.")
    request: str | None = option(
        None, "Marks those who asked for protection, for the rule request.", cli="text", metavar="COLUMN", panel=TABLE
    )
    counts: tuple[str, ...] = option(
        (), "Columns of 0 and 1 that are counted beside the records, each changed by cell keys of its own.",
        cli="names", metavar="COLUMNS", panel=TABLE,
    )  # fmt: skip
    statistic: str | None = option(
        None, f"What is published of each cell in place of the sum: {FORMS}.", cli="text", metavar="NAME:COLUMN",
        panel=TABLE,
    )  # fmt: skip
    components: bool = option(
        False, "Publish what a statistic is made of beside it: its sums and counts.", cli="switch", panel=TABLE
    )
    relation: tuple[str, ...] = option(
        (), 'How columns, or labels of one, make up another: "balance = credit - debit"; repeat for more.', cli="names",
        metavar="TEXT", panel=TABLE,
    )  # fmt: skip
    structural: tuple[str, ...] = option(
        (), "Cells that nobody can be in, which everybody knows: \"sex=m & pregnant=yes\", or a column that marks "
        "them; repeat for more.", cli="names", metavar="LABELS", panel=TABLE,
    )  # fmt: skip
    publish: tuple[str, ...] = option(
        (), "Cells that must be published: \"region=N & industry=A\", or a column that marks them; repeat for more.",
        cli="names", metavar="LABELS", panel=WISHES,
    )  # fmt: skip
    suppress: tuple[str, ...] = option(
        (), "Cells that must be suppressed, and are protected like sensitive ones; as --publish.", cli="names",
        metavar="LABELS", panel=WISHES,
    )  # fmt: skip
    apriori: str | Path | None = option(
        None, "An a-priori file of tau-ARGUS (.hst): statuses, costs and protection levels of cells.", cli="text",
        metavar="FILE", panel=WISHES,
    )  # fmt: skip
    key: str | None = option(
        None, "The record keys, from 0 up to 1; drawn in secret when not given.", cli="text", metavar="COLUMN",
        panel="How it is protected",
    )  # fmt: skip


@dataclass(frozen=True)
class Tabulation(Section, TableLayout):
    """[table]: the columns it goes `by`, what is added up, whose contributions count as one, and its hierarchies.

    A hierarchy is a list of the coarser columns, the path of a .csv or .hrc file, or a table as under
    [roles.hierarchies]. `coarsen` brings columns to a level of their hierarchy in the roles first. `ready` says that
    the rows are cells already: true, or which columns are what, as `tables.Ready` has it.
    """

    coarsen: dict[str, int | str] = field(default_factory=dict)
    hierarchies: dict[str, Any] = field(default_factory=dict)
    ready: bool | dict[str, Any] = False

    def __post_init__(self) -> None:
        if not self.by and not self.ready:
            raise ParameterError("table.by names no column: a table needs at least one.")
        statistic = statistic_of(self.statistic)
        if isinstance(statistic, Percentile):
            raise ParameterError("A policy limits risks of sums: make a table of percentiles with `equipoise table`.")
        if self.components and statistic is None:
            raise ParameterError("table.components is about a statistic: name one.")
        if self.ready and self.coarsen:
            raise ParameterError("coarsen is about records: the rows of a ready table are cells already.")
        _ = self.ready_columns
        refuse_labels(self.by)
        for column in (*self.coarsen, *self.hierarchies):
            if column not in self.by:
                raise ParameterError(f"The table does not go by {column!r}, which is coarsened or has groups.")

    @property
    def ready_columns(self) -> bool | Ready:
        """The roles of the columns of a ready table; true or false where they are not named."""
        if isinstance(self.ready, bool):
            return self.ready
        fields_of_ready = [f.name for f in fields(Ready)]
        for name in self.ready:
            if name not in fields_of_ready:
                raise ParameterError(f"table.ready has no {name!r}.{hint(name, fields_of_ready)}")
        columns: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in self.ready.items()}
        return Ready(**columns)

    def prepared(self, records: Records) -> Records:
        """The records with their columns coarsened as the table needs them."""
        refuse_names(records, self.by)
        for column, level in self.coarsen.items():
            records = Recode(column, level).apply(records, Draws(0))
        return records

    def trees(self, records: Records, folder: Path) -> dict[str, Hierarchy]:
        """The hierarchies that the table names, for prepared records."""
        return {column: tree(records, column, groups, folder) for column, groups in self.hierarchies.items()}

    def made(self, records: Records, folder: Path, methods: Iterable[Any], rules: Iterable[Any], seed: int) -> Table:
        """Make the table from prepared records, with the statistics that methods and rules need of each cell."""
        trees, methods = self.trees(records, folder), tuple(methods)
        records, key = with_keys(records, self.key, methods, seed)
        return table(
            records, self.by, self.value, hierarchies=trees, holding=self.holding, weight=self.weight,
            request=self.request, key=key, top=top_of((*rules, *methods)), ready=self.ready_columns,
            structural=self.structural, counts=self.counts, publish=self.publish, suppress=self.suppress,
            relation=self.relation, apriori=folder / self.apriori if self.apriori else None,
        )  # fmt: skip

    def with_plain_trees(self, records: Records, folder: Path) -> "Tabulation":
        """The section with its hierarchies as plain data, so that no file or column is needed for them.

        An a-priori file is kept by its full path.
        """
        apriori = str(system.without_links(folder / self.apriori)) if self.apriori else None
        trees = {column: tree.to_plain() for column, tree in self.trees(records, folder).items()}
        return replace(self, hierarchies=trees, apriori=apriori)


def tree(records: Records, column: str, groups: Any, folder: Path) -> Hierarchy:
    """The hierarchy of a column from its text, list or table in a policy file."""
    if isinstance(groups, str):
        kind = Path(groups).suffix.lower()
        if kind not in (".csv", ".hrc"):
            raise ParameterError(f"The hierarchy of {column!r} is a .csv or .hrc file, or a list of coarser columns.")
        return Hierarchy.csv(folder / groups) if kind == ".csv" else Hierarchy.hrc(folder / groups)
    if isinstance(groups, list | tuple) and groups and all(isinstance(name, str) for name in groups):
        return column_tree(records, column, groups)
    return Roles.from_plain({"hierarchies": {column: groups}}, folder).hierarchies[column]


def with_keys(records: Records, key: str | None, methods: Iterable[Any], seed: int) -> tuple[Records, str | None]:
    """The records with keys drawn from the seed where a method needs them and no column has them."""
    if key is None and any(isinstance(method, CellKey | CellKeyAmounts) for method in methods):
        return record_keys(records, seed, "_key"), "_key"
    return records, key


def top_of(used: Iterable[Any]) -> int:
    """The number of largest contributions that rules and methods need."""
    return max([DEFAULT_TOP, *(getattr(part, "ranks", 0) for one in used for part in parts_of(one))])


def refuse_labels(columns: Iterable[str]) -> None:
    """Refuse columns with the name of a column of protected tables."""
    for column in columns:
        if column in RESERVED_LABELS:
            raise ParameterError(f"A protected table says something else under {column!r}: rename that column.")


def refuse_names(records: Records, columns: Iterable[str]) -> None:
    """Refuse ids and direct identifiers as labels of a table, because labels are published."""
    for column in columns:
        if column in (records.roles.id, *records.roles.direct):
            raise RolesError(f"Column {column!r} names records: a table would publish its values as labels.")


def rules_of(methods: Iterable[Any]) -> tuple[Any, ...]:
    """The rules of methods and measures, each once."""
    return tuple(dict.fromkeys(m.rule for m in methods if hasattr(m, "rule")))
