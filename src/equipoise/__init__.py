"""Equipoise: measure disclosure risk, protect the data, keep what users need, and prove the balance.

The front door. Each name is found in its room when it is first used, so that `import equipoise` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from equipoise.core.cells import Cells as Cells
    from equipoise.core.cells import count as count
    from equipoise.core.errors import Cancelled as Cancelled
    from equipoise.core.errors import DataError as DataError
    from equipoise.core.errors import EngineError as EngineError
    from equipoise.core.errors import EquipoiseError as EquipoiseError
    from equipoise.core.errors import EquipoiseWarning as EquipoiseWarning
    from equipoise.core.errors import InfeasibleError as InfeasibleError
    from equipoise.core.errors import MissingExtraError as MissingExtraError
    from equipoise.core.errors import ParameterError as ParameterError
    from equipoise.core.errors import RefusedError as RefusedError
    from equipoise.core.errors import RolesError as RolesError
    from equipoise.core.hierarchy import Hierarchy as Hierarchy
    from equipoise.core.margins import table as table
    from equipoise.core.records import Records as Records
    from equipoise.core.roles import Roles as Roles
    from equipoise.core.score import Score as Score
    from equipoise.core.score import Scores as Scores
    from equipoise.doors.python import attack as attack
    from equipoise.doors.python import balance as balance
    from equipoise.doors.python import check as check
    from equipoise.doors.python import init as init
    from equipoise.doors.python import open as open  # noqa: A004
    from equipoise.doors.python import protect as protect
    from equipoise.doors.python import publish as publish
    from equipoise.doors.python import release as release
    from equipoise.doors.python import replay as replay
    from equipoise.doors.tabulation import tabulate as tabulate
    from equipoise.files import read as read
    from equipoise.flow.assess import Assessment as Assessment
    from equipoise.flow.assess import assess as assess
    from equipoise.flow.attack import Attack as Attack
    from equipoise.flow.best_coarsening import best_coarsening as best_coarsening
    from equipoise.flow.frontier import Frontier as Frontier
    from equipoise.flow.frontier import frontier as frontier
    from equipoise.flow.lattice import coarsenings as coarsenings
    from equipoise.flow.policy import Policy as Policy
    from equipoise.flow.policy import Verdict as Verdict
    from equipoise.flow.publication import Publication as Publication
    from equipoise.flow.publication import publication as publication
    from equipoise.flow.recipe import Recipe as Recipe
    from equipoise.flow.recipe import grid as grid
    from equipoise.flow.recipe import recipes as recipes
    from equipoise.flow.release import Release as Release
    from equipoise.flow.suggest import suggest_roles as suggest_roles
    from equipoise.flow.sweep import sweep as sweep
    from equipoise.flow.tabulate import protect_tables as protect_tables
    from equipoise.flow.trial import Trial as Trial
    from equipoise.flow.verify import verify as verify

__version__ = "0.1.0"

ROOMS = {
    "core.cells": "Cells count",
    "core.errors": "Cancelled DataError EngineError EquipoiseError EquipoiseWarning InfeasibleError MissingExtraError "
    "ParameterError RefusedError RolesError",
    "core.hierarchy": "Hierarchy",
    "core.margins": "table",
    "core.records": "Records",
    "core.roles": "Roles",
    "core.score": "Score Scores",
    "doors.python": "attack balance check init open protect publish release replay",
    "doors.tabulation": "tabulate",
    "files": "read",
    "flow.assess": "Assessment assess",
    "flow.attack": "Attack",
    "flow.best_coarsening": "best_coarsening",
    "flow.frontier": "Frontier frontier",
    "flow.lattice": "coarsenings",
    "flow.policy": "Policy Verdict",
    "flow.publication": "Publication publication",
    "flow.recipe": "Recipe grid recipes",
    "flow.release": "Release",
    "flow.suggest": "suggest_roles",
    "flow.sweep": "sweep",
    "flow.tabulate": "protect_tables",
    "flow.trial": "Trial",
    "flow.verify": "verify",
}
FAMILIES = ("attacks", "demo", "losses", "masks", "risk", "rules", "tables", "theory", "utility")
FOUND = {name: room for room, names in ROOMS.items() for name in names.split()}

__all__ = sorted([*FOUND, *FAMILIES])


def __getattr__(name: str) -> Any:
    """Open the room a name is in."""
    if name in FAMILIES:
        return import_module(f"equipoise.{name}")
    if name not in FOUND:
        raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
    value = getattr(import_module(f"equipoise.{FOUND[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
