"""Publish or suppress each cell by expected loss."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.publishing.weighed_publication import WeighedPublication, curve_steps, fitting_groups, survey_source

__all__ = ["WeighedPublication", "curve_steps", "fitting_groups", "survey_source"]

export_lazily(
    __name__,
    WeighedPublication="weighed_publication",
    curve_steps="weighed_publication",
    fitting_groups="weighed_publication",
    survey_source="weighed_publication",
)
