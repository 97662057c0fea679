"""What an attacker can compute from released tables, in one place: intervals of suppressed and changed cells.

`audit` and `difference` are for tables that withhold cells, `certify` for one table whatever was done to it, `exposure`
for its sensitive cells under any rule, `together` for several tables of one data asset.
"""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.tables.audits.certificate import Certificate, certify
    from equipoise.tables.audits.exposure import Exposure, exposure
    from equipoise.tables.audits.joint_audit import JointAudit, KnownTable, bounds, frame, read_back, together, view_of
    from equipoise.tables.audits.withheld_cells import audit, difference

__all__ = [
    "Certificate",
    "Exposure",
    "JointAudit",
    "KnownTable",
    "audit",
    "bounds",
    "certify",
    "difference",
    "exposure",
    "frame",
    "read_back",
    "together",
    "view_of",
]

export_lazily(
    __name__,
    Certificate="certificate",
    Exposure="exposure",
    JointAudit="joint_audit",
    KnownTable="joint_audit",
    audit="withheld_cells",
    bounds="joint_audit",
    certify="certificate",
    difference="withheld_cells",
    exposure="exposure",
    frame="joint_audit",
    view_of="joint_audit",
    read_back="joint_audit",
    together="joint_audit",
)
