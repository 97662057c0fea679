"""Risks of the classes of the keys: mean over records, detail per cell and per record."""

from equipoise.data.cells import Cells, as_cells, by_record
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable


class KeyRisk:
    """Mixin of measures that score the classes of the keys; records of a synthetic file stand for nobody."""

    __slots__ = ()

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "lower")
        return self._score(released, self._cells(released))

    def _cells(self, released: Records | Cells) -> Cells:
        return as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        raise NotImplementedError


def cell_score(name: str, released: Records | Cells, cells: Cells, risk: Floats, notes: tuple[str, ...] = ()) -> Score:
    """Mean risk of a record, each record having the risk of its cell. O(cells)."""
    number = float((cells.n * risk).sum())
    return Score(
        name,
        number / cells.records if cells.records else 0.0,
        "lower",
        number=number,
        unit="share of records",
        notes=notes,
        cells=lambda: cells.table_with(risk=risk),
        records=(lambda: by_record(released, cells, risk)) if isinstance(released, Records) else None,
    )
