"""Attacks on one release: scenarios of intruders, their success, and sentences that say it."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.intrusion.rough_numbers import match_numbers as match_numbers

export_lazily(__name__)
