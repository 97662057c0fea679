"""Records in cells that a rule calls unsafe."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from equipoise.data.cells import Cells, as_cells
from equipoise.data.equivalence_classes import Classes
from equipoise.data.key_subsets import ClassSizes
from equipoise.data.records import Records
from equipoise.data.released_terms import rows
from equipoise.data.roles import Roles
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, RolesError
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import check_fields
from equipoise.methods.protection_levels import Both, Either
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.sensitive_values import flagged, sensitive_of
from equipoise.risk._cell_score import as_read, cell_score


@dataclass(frozen=True, slots=True)
class Unsafe:
    """Share (and number) of records in cells that a `rule` flags: 0 means that the rule holds for the whole file.

    value = (1/n) sum over flagged classes of n_c. A class are the records with equal keys; columns that the rule calls
    sensitive are no keys here. `rule` is any of eq.rules, also joined (`a | b`, `a & b`): l-diversity, t-closeness,
    beta-likeness, delta-presence (there the records are the population) and the others. Missing keys count as the roles
    say, and every record counts once, whatever its weight. Rules about contributions to a value (p%, dominance) need
    cells that have them: of a table its inner cells count, records are refused. Detail: `risk` is 1 in flagged classes.

    Source: the rule's own; as a share of records Samarati (2001), *Protecting respondents' identities in microdata
    release*, the records to suppress. Misleads when a rule is nearly missed everywhere: a class is flagged or not,
    however far it is from the limit. Cost: that of the rule, O(cells) or O(cells log cells).

    >>> cells = Cells.of(pl.DataFrame({"town": ["a", "a", "b"], "ill": ["no", "yes", "no"], "n": [3, 1, 4]}))
    >>> Unsafe(eq.rules.Diversity("ill", 2)).measure(cells, cells).value
    0.5
    >>> Unsafe(eq.rules.MinCount(5) & eq.rules.Diversity("ill", 2)).measure(cells, cells).number
    4.0
    """

    rule: Rule

    def __post_init__(self) -> None:
        check_fields(self)

    def by(self, roles: Roles) -> tuple[str, ...]:
        sensitive = sensitive_of([self.rule])
        both = [column for column in sensitive if column in roles.keys]
        if both and isinstance(self.rule, Either | Both):
            raise RolesError(
                f"Column {both[0]!r} is a key and what one of the rules protects: measure each rule apart."
            )
        return (*(key for key in roles.keys if key not in sensitive), *sensitive)

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        sensitive = sensitive_of([self.rule])
        if isinstance(released, Records) and released.synthetic and not sensitive:
            return not_applicable(label(self), "lower")
        if isinstance(released, Records):
            return self._of_records(released, original)
        return self._of_cells(released, released)

    def _of_records(self, released: Records, original: Records | Cells) -> Score:
        """As rows are read: blanks that members show filled in, and by the person's view where sizes are all."""
        keys = tuple(key for key in released.roles.keys if key not in sensitive_of([self.rule]))
        read, view = as_read(released, original, keys, of_sizes=_of_sizes(self.rule))
        if view is None:
            return self._of_cells(read, as_cells(read, self.by(read.roles)))
        risk = self.rule.flag(view.people).to_numpy().astype(np.float64)
        people, score = cast(Records, original), cell_score(label(self), view.people, view.people, risk)
        return replace(score, records=lambda: rows(people, risk=risk[view.places]))

    def _of_cells(self, released: Records | Cells, cells: Cells) -> Score:
        keys = tuple(column for column in cells.by if column not in sensitive_of([self.rule]))
        _refuse(self.rule, cells, keys)
        return cell_score(label(self), released, cells.margin(keys), _risk(self.rule, cells, keys))


def _of_sizes(rule: Rule) -> bool:
    """Whether a rule, or each of several, asks for nothing but the size of classes."""
    return all(map(_of_sizes, rule.rules)) if isinstance(rule, Either | Both) else isinstance(rule, ClassSizes)


def _risk(rule: Rule, cells: Cells, keys: tuple[str, ...]) -> Floats:
    """1 for each class of equal keys that the rule flags, 0 for the others; margins of a table are no classes."""
    flags = flagged(rule, cells, keys)
    if keys == cells.by:
        inner = cells.inner if isinstance(cells, Table) else True
        return np.where(flags & inner, 1.0, 0.0)
    classes = Classes.of(cells, tuple(column for column in cells.by if column not in keys))
    risk = np.zeros(len(classes))
    risk[classes.ids] = flags
    return risk


def _refuse(rule: Rule, cells: Cells, keys: tuple[str, ...]) -> None:
    """Refuse a rule that these cells say nothing about."""
    sensitive = sensitive_of([rule])
    for column in sensitive:
        cells.place(column)
    if not keys:
        raise RolesError("There are no keys beside what the rule protects: name them in the roles.")
    if sensitive and isinstance(cells, Table):
        raise DataError(f"{label(rule)} looks at sensitive values of records: measure it on records, not on a table.")
    if not cells.more.width and (of_values := _value_rules(rule)):
        raise DataError(f"{of_values[0]} looks at contributions to a value: measure it on a table of values.")


def _value_rules(rule: Rule) -> list[str]:
    """The rules that protect values of tables alone: they give protection levels, and judge no classes of records."""
    if isinstance(rule, Either | Both):
        return [name for part in rule.rules for name in _value_rules(part)]
    return [label(rule)] if hasattr(rule, "levels") and not hasattr(rule, "unsafe") else []
