"""Publish or suppress each cell by expected loss."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.publishing.weighed_publication import WeighedPublication as WeighedPublication
    from equipoise.publishing.weighed_publication import curve_steps as curve_steps
    from equipoise.publishing.weighed_publication import fitting_groups as fitting_groups
    from equipoise.publishing.weighed_publication import survey_source as survey_source

export_lazily(__name__)
