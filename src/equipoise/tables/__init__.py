"""Change and score tables."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.data.tables.ready_table import Ready as Ready
    from equipoise.tables.additivity import Additivity as Additivity
    from equipoise.tables.adjust import Adjust as Adjust
    from equipoise.tables.assign_record_keys import record_keys as record_keys
    from equipoise.tables.audits import audit as audit
    from equipoise.tables.audits import difference as difference
    from equipoise.tables.cell_key import CellKey as CellKey
    from equipoise.tables.cell_key_amounts import CellKeyAmounts as CellKeyAmounts
    from equipoise.tables.distance import Distance as Distance
    from equipoise.tables.exposed import Exposed as Exposed
    from equipoise.tables.groups_told import GroupsTold as GroupsTold
    from equipoise.tables.kept_margins import KeptMargins as KeptMargins
    from equipoise.tables.period_changes import period_changes as period_changes
    from equipoise.tables.rebuild import Rebuild as Rebuild
    from equipoise.tables.round import Round as Round
    from equipoise.tables.suppress import Suppress as Suppress
    from equipoise.tables.suppressed import Suppressed as Suppressed

export_lazily(__name__, Withheld="Suppressed")
