"""Leave out what names people."""

from dataclasses import dataclass, replace

from equipoise.data.records import Law, Records
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import check_fields


@dataclass(frozen=True, slots=True)
class DropDirectIdentifiers:
    """Leave out the columns that the roles call direct identifiers, and those named in `columns`.

    The id stays until the file is released (it ties draws and audits to people) and is withheld then.

    Source: every code of practice; the list of 45 CFR 164.514(b)(2). Does not guard against recognition by other
    columns, nor against identifiers that no role names: `eq.suggest_roles` looks for those. Cost: none, columns are
    left out where the data is.

    >>> records = eq.Records.of(pl.DataFrame({"name": ["x", "y"], "age": [1, 2]}), eq.Roles(["age"], direct="name"))
    >>> DropDirectIdentifiers().apply(records, Draws(1)).collect().columns
    ['age']
    """

    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, data: Records, draws: Draws) -> Records:
        roles, schema = data.roles, data.schema()
        require_columns(self.columns, schema)
        for column in self.columns:
            if column in (*roles.keys, *roles.sensitive, *roles.numeric, roles.id, roles.weight, roles.household):
                raise RolesError(f"Column {column!r} has another role: it is not left out as a direct identifier.")
        dropped = tuple(dict.fromkeys((*roles.direct, *self.columns)))
        released = data.with_frame(data.frame.drop(list(dropped)) if dropped else data.frame, self.law(dropped))
        return replace(
            released, roles=replace(roles, direct=()), labels=released.labels.only(set(schema) - set(dropped))
        )

    def words(self) -> str:
        return "direct identifiers left out"

    def law(self, dropped: tuple[str, ...]) -> Law:
        text = f"{', '.join(dropped)} left out: direct identifiers" if dropped else "no direct identifiers to leave out"
        return Law("drop_direct_identifiers", dropped, text, {"columns": list(dropped)}, coarsens=True)
