"""What an attacker can compute from released tables, in one place: intervals of suppressed and changed cells.

`audit` and `difference` are for tables that suppress cells, `certify` for one table whatever was done to it, `exposure`
for its sensitive cells under any rule, `together` for several tables of one data asset.
"""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.tables.audits.certificate import Attackers as Attackers
    from equipoise.tables.audits.certificate import Certificate as Certificate
    from equipoise.tables.audits.certificate import certify as certify
    from equipoise.tables.audits.certificate import certify_counts as certify_counts
    from equipoise.tables.audits.certificate import suppression_attackers as suppression_attackers
    from equipoise.tables.audits.exposure import Exposure as Exposure
    from equipoise.tables.audits.exposure import exposure as exposure
    from equipoise.tables.audits.joint_audit import JointAudit as JointAudit
    from equipoise.tables.audits.joint_audit import KnownTable as KnownTable
    from equipoise.tables.audits.joint_audit import bounds as bounds
    from equipoise.tables.audits.joint_audit import frame as frame
    from equipoise.tables.audits.joint_audit import read_back as read_back
    from equipoise.tables.audits.joint_audit import together as together
    from equipoise.tables.audits.joint_audit import view_of as view_of
    from equipoise.tables.audits.suppressed_cells import audit as audit
    from equipoise.tables.audits.suppressed_cells import contributors_together as contributors_together
    from equipoise.tables.audits.suppressed_cells import difference as difference

export_lazily(__name__)
