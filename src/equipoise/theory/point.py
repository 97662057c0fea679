"""Point of the theoretical risk-utility map: errors of the user and of each snooper, and the model behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal

from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import above, check_fields

Form = Literal["corrected", "naive"]
Where = Literal["inside", "outside"]


@dataclass(frozen=True)
class Theory:
    """One point of the theoretical risk-utility map.

    `user` is the mean squared error of the user's estimate, `mse` that of each snooper's guess at the target's value;
    utility and risk are their reciprocals, the risk that of the `strongest` snooper. `identity` is the chance that the
    best guess at the target's record is right: None where no record is anyone's (synthetic data) or nobody links.

    >>> point = Theory("noise", 0.6, {"mean": 3.8, "linked": 2.0})
    >>> point.strongest, point.risk, round(point.utility, 4)
    ('linked', 0.5, 1.6667)
    """

    method: str
    user: float
    mse: Mapping[str, float] = field(hash=False)
    identity: float | None = None
    form: Form = "corrected"

    @property
    def utility(self) -> float:
        return reciprocal(self.user)

    @property
    def strongest(self) -> str:
        """The snooper with the smallest error; the first named where several are equal."""
        return min(self.mse, key=lambda name: self.mse[name])

    @property
    def risk(self) -> float:
        return reciprocal(self.mse[self.strongest])

    @property
    def risks(self) -> dict[str, float]:
        """The risk from each snooper, the strongest first."""
        return {name: reciprocal(error) for name, error in sorted(self.mse.items(), key=lambda pair: pair[1])}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Model common to all releases: values of mean `mu` and variance `s2`, and one target.

    The target is one of the records, or `outside` the file. A snooper with a `prior` (mean, variance) knows that much
    of the target before seeing the file: the target's value then has this law, the others keep (mu, s2), and what the
    user gets is unchanged. `links` says that the snooper knows which record is the target's. The `naive` form has
    only the snoopers of the paper, and the paper's model of synthetic data.
    """

    s2: float
    target: Where = "inside"
    prior: tuple[float, float] | None = None
    mu: float = 0.0
    links: bool = True
    form: Form = "corrected"

    def __post_init__(self) -> None:
        check_fields(self)
        above(self.s2, "s2")
        finite("mu", self.mu)
        if self.prior is not None:
            if len(self.prior) != 2:
                raise ParameterError("prior is a pair: the mean and the variance of what the snooper knew.")
            finite("the mean of the prior", self.prior[0])
            above(self.prior[1], "the variance of the prior", strict=False)

    @property
    def inside(self) -> bool:
        return self.target == "inside"

    @property
    def linked(self) -> bool:
        return self.links and self.inside

    @property
    def naive(self) -> bool:
        return self.form == "naive"

    @property
    def spread(self) -> float:
        """Variance of the target's value, as the snooper knows it."""
        return self.s2 if self.prior is None else self.prior[1]

    @property
    def gap(self) -> float:
        """How far the target's mean lies from that of the population."""
        return 0.0 if self.prior is None else self.prior[0] - self.mu

    def with_prior(self, errors: dict[str, float], **more: float) -> dict[str, float]:
        """Errors of the snoopers, with those of snoopers who use a prior; the paper's form has none of these."""
        return errors if self.prior is None or self.naive else {**errors, "prior": self.spread, **more}

    def guess(self, own: float, n: int, noise: float = 0.0) -> float:
        """MSE of the guess with weight `own` on the target's record and the rest shared by the n - 1 others."""
        others = (self.s2 + noise) / (n - 1) if n > 1 else 0.0
        return (1 - own) ** 2 * (self.spread + self.gap**2 + others) + own**2 * noise

    def by_mean(self, n: int, noise: float = 0.0) -> float:
        """MSE of guessing the mean of the n released records."""
        if self.inside:
            return self.guess(1 / n, n, noise)
        return self.spread + self.gap**2 + (self.s2 + noise) / n


def reciprocal(error: float) -> float:
    return 1 / error if error > 0 else inf


def finite(name: str, value: float) -> None:
    if not isfinite(value):
        raise ParameterError(f"{name} must be a finite number, got {value:g}.")
