"""Equipoise: measure disclosure risk, protect the data, keep what users need, and prove the balance."""

from equipoise import attacks, demo, losses, masks, risk, rules, tables, theory, utility
from equipoise.core.cells import Cells, count
from equipoise.core.errors import (
    Cancelled,
    DataError,
    EngineError,
    EquipoiseError,
    EquipoiseWarning,
    InfeasibleError,
    MissingExtraError,
    ParameterError,
    RefusedError,
    RolesError,
)
from equipoise.core.hierarchy import Hierarchy
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.core.score import Score, Scores
from equipoise.doors.python import balance, protect, release
from equipoise.files import read
from equipoise.flow.assess import Assessment, assess
from equipoise.flow.frontier import Frontier, frontier
from equipoise.flow.lattice import coarsenings
from equipoise.flow.policy import Policy, Verdict
from equipoise.flow.recipe import Recipe, grid, recipes
from equipoise.flow.release import Release
from equipoise.flow.sweep import sweep
from equipoise.flow.trial import Trial

__version__ = "0.1.0"

__all__ = [
    "Assessment",
    "Cancelled",
    "Cells",
    "DataError",
    "EngineError",
    "EquipoiseError",
    "EquipoiseWarning",
    "Frontier",
    "Hierarchy",
    "InfeasibleError",
    "MissingExtraError",
    "ParameterError",
    "Policy",
    "Recipe",
    "Records",
    "RefusedError",
    "Release",
    "Roles",
    "RolesError",
    "Score",
    "Scores",
    "Trial",
    "Verdict",
    "assess",
    "attacks",
    "balance",
    "coarsenings",
    "count",
    "demo",
    "frontier",
    "grid",
    "losses",
    "masks",
    "protect",
    "read",
    "recipes",
    "release",
    "risk",
    "rules",
    "sweep",
    "tables",
    "theory",
    "utility",
]
