"""Equipoise: measure disclosure risk, protect the data, keep what users need, and prove the balance.

The front door. Each name is found in its room when it is first used, so that `import equipoise` costs nothing.
"""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise import attacks as attacks
    from equipoise import demo as demo
    from equipoise import losses as losses
    from equipoise import masks as masks
    from equipoise import risk as risk
    from equipoise import rules as rules
    from equipoise import tables as tables
    from equipoise import theory as theory
    from equipoise import utility as utility
    from equipoise.data.cells import Cells as Cells
    from equipoise.data.cells import count as count
    from equipoise.data.hierarchy import Hierarchy as Hierarchy
    from equipoise.data.records import Records as Records
    from equipoise.data.roles import Roles as Roles
    from equipoise.data.tables.count_table import table as table
    from equipoise.doors.api import attack as attack
    from equipoise.doors.api import balance as balance
    from equipoise.doors.api import check as check
    from equipoise.doors.api import init as init
    from equipoise.doors.api import open as open  # noqa: A004
    from equipoise.doors.api import protect as protect
    from equipoise.doors.api import publish as publish
    from equipoise.doors.api import release as release
    from equipoise.doors.api import replay as replay
    from equipoise.doors.api import report as report
    from equipoise.doors.api import tabulate as tabulate
    from equipoise.files import read as read
    from equipoise.ground.errors import Cancelled as Cancelled
    from equipoise.ground.errors import DataError as DataError
    from equipoise.ground.errors import EngineError as EngineError
    from equipoise.ground.errors import EquipoiseError as EquipoiseError
    from equipoise.ground.errors import EquipoiseWarning as EquipoiseWarning
    from equipoise.ground.errors import InfeasibleError as InfeasibleError
    from equipoise.ground.errors import MissingExtraError as MissingExtraError
    from equipoise.ground.errors import ParameterError as ParameterError
    from equipoise.ground.errors import RefusedError as RefusedError
    from equipoise.ground.errors import RolesError as RolesError
    from equipoise.inspection.assess import Assessment as Assessment
    from equipoise.inspection.assess import assess as assess
    from equipoise.inspection.suggest_roles import suggest_roles as suggest_roles
    from equipoise.intrusion.attack import Attack as Attack
    from equipoise.methods.score import Score as Score
    from equipoise.methods.score import Scores as Scores
    from equipoise.policies.coarsenings import coarsenings as coarsenings
    from equipoise.policies.policy import Policy as Policy
    from equipoise.policies.policy import Verdict as Verdict
    from equipoise.publishing.publication import Publication as Publication
    from equipoise.publishing.publication import publication as publication
    from equipoise.recipe.recipe import Recipe as Recipe
    from equipoise.recipe.recipe import grid as grid
    from equipoise.recipe.recipe import recipes as recipes
    from equipoise.releases.release import Release as Release
    from equipoise.releases.tabulate import protect_tables as protect_tables
    from equipoise.releases.verify import verify as verify
    from equipoise.search.best_coarsening import best_coarsening as best_coarsening
    from equipoise.search.frontier import Frontier as Frontier
    from equipoise.search.frontier import frontier as frontier
    from equipoise.search.sweep import sweep as sweep
    from equipoise.trials.trial import Trial as Trial

__version__ = "0.1.0"

FAMILIES = ("attacks", "demo", "losses", "masks", "risk", "rules", "tables", "theory", "utility")

export_lazily(__name__)
