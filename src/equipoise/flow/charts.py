"""Charts as plain Vega-Lite specifications: no charting library is needed to make one."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.flow.frontier import Frontier


def risk_utility_map(frontier: "Frontier", *, risk: str | None = None, utility: str | None = None) -> dict[str, Any]:
    """The risk-utility map."""
    raise NotImplementedError
