"""From records to a table that may be published: protected, audited, refused where the audit fails, and written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import polars as pl

from equipoise import rules
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.data.tables.count_table import table
from equipoise.data.tables.ready_table import Ready
from equipoise.data.tables.statistic import statistic_of
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import without
from equipoise.files import CsvFormulas, csv_formulas
from equipoise.files.memory import refuse_work
from equipoise.ground import system
from equipoise.ground.errors import InfeasibleError, ParameterError, RefusedError
from equipoise.ground.options import option, with_options
from equipoise.ground.progress import Progress, report
from equipoise.ground.randomness import Draws, new_seed
from equipoise.ground.whole_files import held
from equipoise.methods.method import Rule
from equipoise.policies.table_section import TableLayout, refuse_labels, refuse_names, rules_of, top_of, with_keys
from equipoise.provenance.recipe_file import RECIPE, table_recipe_text
from equipoise.provenance.registered_tables import with_earlier_tables
from equipoise.provenance.seed_register import Register
from equipoise.recipe.catalogue import parse
from equipoise.releases.release_folder import refuse_existing
from equipoise.releases.statistic_table import components_of, protect_statistic, refuse_statistic
from equipoise.releases.table_release import TableContents, audited_together, write_table
from equipoise.releases.tabulated import Tabulated, certified, refuse
from equipoise.search.table_comparison import beside, compared_methods
from equipoise.tables import Adjust, CellKey, CellKeyAmounts, Round, Suppress, audit, difference
from equipoise.tables.audits import Attackers, Certificate, contributors_together, suppression_attackers

METHODS_WITH_AUDIT = (Suppress, Round, CellKey, CellKeyAmounts, Adjust)
HOW = "How it is protected"
"""Where the command line lists the options of protection."""


@dataclass(frozen=True)
class TableOptions(TableLayout):
    """Options of `tabulate`: what the table holds, how it is protected, and where it is written."""

    rule: Rule | str | None = option(
        None, "Which cells are sensitive: p-percent:10%, dominance:2,85%, prior-posterior:10%,50%, min-count:3, "
        'request, marked; joined: "p-percent:10% | min-count:3".', cli="text", metavar="NAME:VALUES", panel=HOW,
    )  # fmt: skip
    method: Any = option(None, "What to do about them: a method of `tables`, Suppress unless given.")
    hierarchies: Mapping[str, Hierarchy] | None = option(None, "The groups of a column, with their totals.")
    seed: int | None = option(None, "The secret seed of random changes.")
    compare: Sequence[Any] = option(
        (), "Try this method too, for the map: round:5, cell-key, \"suppress(rule='min-count:3')\"; repeat for more.",
        cli="names", metavar="METHOD", panel=HOW,
    )  # fmt: skip
    ready: bool | Ready = option(False, "The rows are cells already: true, or which columns are what.")
    out: str | Path | None = option(
        None, "A folder for public/ (table, report, evidence) and private/ (statuses, audit, report).", cli="path",
        metavar="DIR",
    )  # fmt: skip
    overwrite: bool = option(False, "Replace what an earlier run wrote there.", cli="switch")
    csv_formulas: CsvFormulas = csv_formulas()
    register: str | Path | Register | None = option(
        None, "The private file of earlier releases: a table must pass the audit with those of the same data.",
        cli="path", metavar="FILE", panel=HOW,
    )  # fmt: skip
    asset: str | None = option(
        None, "The name of the data in the register; without it its people tell which releases are of the same data.",
        cli="text", metavar="NAME", panel=HOW,
    )  # fmt: skip
    sign: str | Path | None = option(
        None, "Sign the evidence with this private Ed25519 key (PEM).", cli="path", metavar="KEY.pem"
    )
    progress: Progress | None = option(None, "Called with (done, total, what); returning False stops.")

    def __post_init__(self) -> None:
        columns, rule = names(self.by, "by"), self._rule()
        refuse_labels(columns)
        object.__setattr__(self, "by", columns)
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "relation", names(self.relation, "relation"))
        object.__setattr__(self, "method", Suppress(rule) if self.method is None and rule is not None else self.method)
        object.__setattr__(self, "compare", compared_methods(self.compare, rule))
        if self.register is not None and not isinstance(self.register, Register):
            object.__setattr__(self, "register", Register(self.register, self.asset))
        if (statistic := statistic_of(self.statistic)) is not None:
            refuse_statistic(
                statistic, self, self.method, ready=self.ready, compare=self.compare, register=self.register is not None
            )
        elif self.components:
            raise ParameterError("components is about a statistic: name one.")
        if self.ready and any(isinstance(one, CellKey | CellKeyAmounts) for one in (self.method, *self.compare)):
            raise ParameterError("Cell keys are made from the keys of records: a ready table has none.")
        if self.apriori:
            object.__setattr__(self, "apriori", str(system.without_links(self.apriori)))
        if isinstance(self.method, Suppress) and self.method.like and Path(self.method.like).exists():
            object.__setattr__(self, "method", replace(self.method, like=str(system.without_links(self.method.like))))
        if self.counts and not isinstance(self.method, CellKey):
            raise ParameterError(
                "counts are for cell keys: suppress or round each count variable as a table of its own."
            )

    def _rule(self) -> Rule | None:
        """The rule of the table, which may be that of its method."""
        rule: Rule | None = cast(Rule, parse(self.rule, "rule")) if isinstance(self.rule, str) else self.rule
        if self.method is not None and not isinstance(self.method, METHODS_WITH_AUDIT):
            raise ParameterError(
                "method must be tables.Suppress, Round, CellKey, CellKeyAmounts or Adjust: others have no audit."
            )
        if isinstance(self.method, CellKeyAmounts) and rule is None:
            return self.method.rule
        if isinstance(self.method, Suppress | Adjust):
            rule = rule if rule is not None else self.method.rule
            if rule != self.method.rule:
                raise ParameterError("The rule is said twice, and differently: give it to the method alone.")
        if rule is None and self.method is None:
            raise ParameterError("Say which cells are sensitive with a rule, like 'p-percent:10%' or 'min-count:3'.")
        return rule

    @property
    def layout(self) -> dict[str, Any]:
        """What the table holds, as its recipe keeps it."""
        parts = {part.name: getattr(self, part.name) for part in fields(TableLayout)}
        return {name: value for name, value in parts.items() if value is not None}


@with_options(TableOptions)
def tabulate(records: Records, options: TableOptions) -> Tabulated:
    """Make a table with all its margins, protect it, audit what is published, and write it where `out` says.

    `by` is a column or several, `value` what is added up. `rule` says which cells are sensitive ('p-percent:10% |
    min-count:3'). `method` is what to do about them: suppress them and the cheapest others (`tables.Suppress(rule)`,
    done unless told), `tables.Adjust(rule)`, `tables.Round`, `tables.CellKey` of counts or `tables.CellKeyAmounts`; of
    the last three a rule is not needed but checked where given. Cell keys come from the column `key`; without one they
    are drawn from the secret `seed`. `statistic` says what is published in place of the sum (mean, ratio:COLUMN,
    index:COLUMN, share:COLUMN, sd, median, percentile:90) and `components` whether its sums and counts are, too.
    `compare` names other methods ('round:5') that are tried beside and measured under the same rule, for the map in the
    internal report. `progress` is called with (done, total, what) at least every two seconds; returning False
    completes the pattern by the quick way, audited as always. The rest are those of `eq.table`.

    A table in which a suppressed cell can be computed exactly, or a sensitive one to within its protection level,
    raises RefusedError and nothing is written. `out` is written whole or not at all: `public/` (table, report,
    evidence) has nothing that tells sensitive cells from secondary ones, and no parameter of the rule; `private/` has
    statuses, audit, internal report and seed.

    With a `register` the table is audited together with the earlier tables and records of the same data (its people, or
    its name `asset`), refused where they give something away together, and kept there when it is written; random
    changes take its seed. `sign` is a private Ed25519 key (PEM) that signs the evidence.
    Cost: that of the table, the method and the audit, and of every method that is compared.
    """
    with held(Path(options.out)) if options.out is not None else nullcontext():
        return _tabulated(records, options)


def _tabulated(records: Records, options: TableOptions) -> Tabulated:
    place, register = options.out, options.register
    assert isinstance(register, Register | None)
    if place is not None:
        refuse_existing(Path(place), options.overwrite, records.source.path if records.source else None)
    refuse_work(records, "tabulate", options.by, options.value)
    first = register.table_seed(records) if register is not None else None
    options = options if first is None else replace(options, seed=first)
    weight = options.weight or records.roles.weight
    tabulated = audited_together(_protected(records, options), register, records, weight)
    if place is not None:
        source = Path(records.source.path).name if records.source else "the table"
        write_table(
            TableContents(tabulated, records, source, formulas=options.csv_formulas), Path(place),
            overwrite=options.overwrite,
            texts={RECIPE: table_recipe_text(
                records, options, method=tabulated.method, rule=tabulated.rule,
                register=register if tabulated.table.beside else None,
            )},
            sign=options.sign, register=register, weight=weight,
        )  # fmt: skip
    return tabulated


def _protected(records: Records, options: TableOptions) -> Tabulated:
    """The table, made, protected, audited, and compared with what other methods make of it."""
    method, rule, others = options.method, cast(Any, options.rule), options.compare
    refuse_names(records, options.by)
    seed = new_seed() if options.seed is None else options.seed
    keyed, key = with_keys(records, options.key, (method, *others), seed)
    statistic = statistic_of(options.statistic)
    if statistic is not None:
        make = partial(_original, options=options, key=key, base=keyed)
        components = components_of(statistic, keyed, options.value, make)
        report(options.progress, 0, 1, "protecting the table")
        try:
            tabulated = protect_statistic(statistic, components, method, seed, options.progress)
        except InfeasibleError as problem:
            raise (_refused(problem) if components[0].beside else problem) from None
        return replace(tabulated, components=options.components)
    original = _original(keyed, options.value, options, key, keyed)
    report(options.progress, 0, 1, "protecting the table")
    more = (options.progress,) if isinstance(method, Suppress) else ()
    try:
        released = method.apply(original, Draws(seed), *more)
    except InfeasibleError as problem:
        raise (_refused(problem) if original.beside else problem) from None
    tabulated = certified(original, released, method, rule, seed, options.progress)
    if not others:
        return tabulated
    return replace(tabulated, compared=beside(original, released, method, rule=rule, others=others, seed=seed))


def _refused(problem: InfeasibleError) -> RefusedError:
    return RefusedError(f"Nothing was published: {problem}")


def _original(records: Records, value: str | None, options: TableOptions, key: str | None, base: Records) -> Table:
    """The table of one quantity, with the earlier tables of the register beside it where the `base` file has it."""
    in_use = (options.rule, *rules_of(options.compare), options.method, *options.compare)
    ready = options.ready
    if isinstance(ready, Ready) and value != options.value:
        ready = replace(ready, top=())
    original = table(
        records, options.by, value, hierarchies=options.hierarchies, holding=options.holding, weight=options.weight,
        request=options.request, key=key, top=top_of(in_use), ready=ready, structural=options.structural,
        relation=options.relation, counts=options.counts, publish=options.publish, suppress=options.suppress,
        apriori=options.apriori,
    )  # fmt: skip
    if options.ready:
        original = without(without(original, "published"), "status")
    weight = options.weight or records.roles.weight
    register = cast(Any, options.register) if value is None or value in base.schema() else None
    return with_earlier_tables(original, register, base, weight=weight)


@dataclass(frozen=True, eq=False, repr=False)
class Linked(Sequence[Table]):
    """Tables that were protected together, in the order given, with the audit over all of them and whom it covers."""

    tables: tuple[Table, ...]
    audit: pl.DataFrame
    attackers: Attackers = Attackers()

    def __getitem__(self, place: Any) -> Any:
        return self.tables[place]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        suppressed = int((self.audit["against"] == "outsider").sum())
        return f"Linked({len(self)} tables, {suppressed:,} suppressed cells)"


def protect_tables(tables: Sequence[Table], method: Suppress | None = None) -> Linked:
    """Protect several tables of the same records at once, so that no one of them gives away what another suppresses.

    Cells that tables share are suppressed in all or none. `method` is `tables.Suppress(rule)`; without it amounts are
    protected by the p% rule at 10 %, counts by at least three records. All are then audited as one
    (`tables.difference`), against those who contribute as well, and RefusedError is raised where a cell can be
    computed; `attackers` says whom that covers.

    >>> from equipoise.data.roles import Roles
    >>> people = Records.of(pl.DataFrame({"k": [*"aaaaabbbbcc"], "s": [*"fmfmffmfmff"]}), Roles())
    >>> both = protect_tables([table(people, "k"), table(people, ["k", "s"])], Suppress(rules.MinCount(2)))
    >>> len(both), both.audit["exact"].any()
    (2, False)
    """
    originals = list(tables)
    if method is None:
        method = Suppress(rules.PPercent(0.1) if originals and originals[0].measured else rules.MinCount(3))
    if not isinstance(method, Suppress):
        raise ParameterError("method must be tables.Suppress: only suppressed cells can be protected together.")
    released = method.together(originals)
    cells = difference(released[0], released[1:]) if len(released) > 1 else audit(released[0], against="outsider")
    if method.singletons:
        cells = pl.concat([cells, contributors_together(released, method.coalition)], how="diagonal")
    refuse(Certificate(cells), method)
    return Linked(tuple(released), cells, suppression_attackers(released, cells))
