"""What an attacker can compute from released tables, in one place: intervals of suppressed and changed cells.

`audit` and `difference` are for tables that withhold cells, `certify` for one table whatever was done to it, `exposure`
for its sensitive cells under any rule, `together` for several tables of one data asset.
"""

from equipoise.tables.audits.certificate import Certificate, certify
from equipoise.tables.audits.exposure import Exposure, exposure
from equipoise.tables.audits.joint_audit import JointAudit, KnownTable, known, together
from equipoise.tables.audits.withheld_cells import audit, difference

__all__ = [
    "Certificate", "Exposure", "JointAudit", "KnownTable", "audit", "certify", "difference", "exposure", "known",
    "together",
]  # fmt: skip
