"""Change and score tables."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.data.tables.ready_table import Ready
    from equipoise.tables.additivity import Additivity
    from equipoise.tables.adjust import Adjust
    from equipoise.tables.assign_record_keys import record_keys
    from equipoise.tables.audits import audit, difference
    from equipoise.tables.cell_key import CellKey
    from equipoise.tables.distance import Distance
    from equipoise.tables.exposed import Exposed
    from equipoise.tables.kept_margins import KeptMargins
    from equipoise.tables.rebuild import Rebuild
    from equipoise.tables.round import Round
    from equipoise.tables.suppress import Suppress
    from equipoise.tables.withheld import Withheld

__all__ = [
    "Additivity",
    "Adjust",
    "CellKey",
    "Distance",
    "Exposed",
    "KeptMargins",
    "Ready",
    "Rebuild",
    "Round",
    "Suppress",
    "Withheld",
    "audit",
    "difference",
    "record_keys",
]

export_lazily(
    __name__,
    Ready="equipoise.data.tables.ready_table",
    audit="audits",
    difference="audits",
    record_keys="assign_record_keys",
)
