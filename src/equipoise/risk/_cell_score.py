"""Score of a risk that is a number per cell: mean over records, detail per cell and per record."""

from equipoise.data.cells import Cells, by_record
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.methods.score import Score


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
        cells=lambda: cells.table.with_columns(risk=risk),
        records=(lambda: by_record(released, cells, risk)) if isinstance(released, Records) else None,
    )
