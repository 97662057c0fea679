"""Prior of each cell: as given, by class, or fitted to the domains."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.beta_binomial.prior import PriorFit, fit
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError
from equipoise.publishing.cells_of_domains import Domains, of_domain


def cell_prior(prior: Any, data: Domains, covariates: Any) -> tuple[Any, Any, PriorFit | None]:
    """alpha and beta of each cell, and the fit where they were fitted."""
    if prior is None:
        return _fitted(data, covariates)
    if isinstance(prior, PriorFit):
        return *prior.per_row(data.table.height), prior
    if isinstance(prior, Mapping):
        return *_by_class(prior, data), None
    try:
        alpha, beta = prior
    except (TypeError, ValueError):
        raise ParameterError("prior must be (alpha, beta), a mapping of class to (alpha, beta), or None.") from None
    return alpha, beta, None


def _fitted(data: Domains, covariates: Any) -> tuple[Floats, Floats, PriorFit]:
    if data.configurations:
        raise ParameterError(
            "A table of configurations with shares holds no domains to fit a prior to: give the prior."
        )
    if data.table.height < 2 or (data.domain and data.table.select(data.domain).n_unique() < 2):
        raise DataError("There is one domain only: a prior cannot be fitted to it, give prior=(alpha, beta).")
    columns = [of_domain(data, name) for name in ([covariates] if isinstance(covariates, str) else covariates or ())]
    x = np.stack(columns, axis=1) if columns else None
    prior = fit(data.column("y_eff"), data.column("n_eff"), data.classes(), x)
    return *prior.per_row(data.table.height), prior


def _by_class(prior: Mapping[Any, Any], data: Domains) -> tuple[Floats, Floats]:
    rows = data.table.select(data.target).rows() if data.target else []
    names = [row[0] if len(data.target) == 1 else row for row in rows]
    if not names or not set(names) <= set(prior):
        raise ParameterError("prior must give (alpha, beta) for every class.")
    pairs = np.array([prior[name] for name in names], dtype=np.float64)
    return pairs[:, 0], pairs[:, 1]
