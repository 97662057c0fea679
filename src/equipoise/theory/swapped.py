"""Theory of data swapping: the target may have changed places with a record of another area."""

from dataclasses import dataclass

from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import check_fields, share, whole_number
from equipoise.theory.point import Setting, Theory, finite


@dataclass(frozen=True, kw_only=True)
class Swapped(Setting):
    """Two areas of n1 and n2 records, means mu and mu - d; the target in the first swaps with probability `rate`.

    Its partner is one of `partners` (K) records of the second area. The user estimates d by the difference of the two
    areas' means: with h = 1/n1 + 1/n2 and J `candidates` (pairs that swap independently) its MSE is
    h s2 + h^2 d^2 (J p (1-p) + J^2 p^2), for J = 1 h s2 + h^2 p d^2. Areas of 3 and 2: 5/6 s2 + (5/6)^2 p d^2.

    With D = 2 s2 + d^2, the mean squared gap between the target and a partner:

    - `linked` takes the released value: p D (the paper's snooper, and the only one of the naive form);
    - `undone` takes a partner's value, as if swapped: (1 - p/K) D;
    - `hedged` knows p, and weighs the released value by 1-p and each partner's by p/K: p (1-p) D for K = 1;
    - `best linear` knows the areas' means and variance as well: for K = 1 p (1-p) D s2/(s2 + 2 p (1-p) d^2);
    - `mean`, of the target's area as released: (1-p) (n1-1)/n1 s2 + p (s2 (1 + 1/n1) + d^2/n1^2), J = 1.

    `identity` is max(1-p, p/K), least at p = K/(K+1); the naive 1-p promises at p = 1 what a snooper undoes.
    Source: Duncan and Keller-McNulty (2000), section 6.2; all but `linked` derived here, and simulated in the tests.

    >>> point = Swapped(s2=4.0, d=3.0, rate=0.2).point()
    >>> {name: round(error, 4) for name, error in point.mse.items() if name != "mean"}, point.identity
    ({'linked': 3.4, 'undone': 13.6, 'hedged': 2.72, 'best linear': 1.5814}, 0.8)
    """

    rate: float
    d: float
    areas: tuple[int, int] = (3, 2)
    partners: int = 1
    candidates: int = 1

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        share(self.rate, "rate", zero=True)
        finite("d", self.d)
        if len(self.areas) != 2:
            raise ParameterError("areas is a pair: the records in the target's area and in its partner's.")
        check_fields(self, partners=1, candidates=1)
        whole_number(min(self.areas), "areas")
        if self.candidates > min(self.areas) or self.partners > self.areas[1]:
            raise ParameterError(f"Areas of {self.areas[0]} and {self.areas[1]} records hold fewer pairs to swap.")
        if self.candidates > 1 and self.partners > 1:
            raise ParameterError("Several candidates with several partners each have no closed form here.")

    @property
    def away(self) -> float:
        """How far the target's mean lies from that of its partners, squared."""
        return (self.gap + self.d) ** 2

    def point(self) -> Theory:
        return Theory(
            "swapped",
            self.by_difference(),
            self.with_prior(self.snoopers()),
            identity=self.by_identity() if self.linked else None,
            form=self.form,
        )

    def snoopers(self) -> dict[str, float]:
        pair = self.spread + self.s2 + self.away
        linked = {"linked": self.rate * pair} if self.linked else {}
        if self.naive:
            return linked or {"mean": self.by_area_mean()}
        others = {
            "undone": (1 - self.rate / self.partners) * pair,
            "hedged": self.by_hedging(),
            "best linear": self.by_best_linear(),
        }
        return {"mean": self.by_area_mean(), **(linked | others if linked else {})}

    def by_identity(self) -> float:
        """The chance of naming the record that holds the target's values."""
        return 1 - self.rate if self.naive else max(1 - self.rate, self.rate / self.partners)

    def by_difference(self) -> float:
        """MSE of the difference of the two areas' means."""
        h = 1 / self.areas[0] + 1 / self.areas[1]
        return h * self.s2 + (h * self.d) ** 2 * self.swap_moments(self.candidates)[1]

    def swap_moments(self, pairs: int) -> tuple[float, float]:
        """First and second moment of the number of pairs that swap."""
        mean = pairs * self.rate
        return mean, mean * (1 - self.rate) + mean**2

    def by_hedging(self) -> float:
        p, many = self.rate, self.partners
        each = p / many
        still = self.spread + self.s2 / many + self.away
        swapped = (1 - each) ** 2 * (self.spread + self.away) + self.s2 * ((1 - p) ** 2 + (many - 1) * each**2)
        return (1 - p) * p**2 * still + p * swapped

    def by_best_linear(self) -> float:
        """v - c' S^-1 c, with c and S the covariances of the target's record and its partners' mean, as released."""
        p, many, v = self.rate, self.partners, self.spread
        if v == 0:
            return 0.0
        between = p * (1 - p) * self.away
        own = (1 - p) * v + p * self.s2 + between
        theirs = ((1 - p) * self.s2 + p * (v + (many - 1) * self.s2) / many) / many + between / many**2
        across = -between / many
        one, two = (1 - p) * v, p * v / many
        explained = (one**2 * theirs - 2 * one * two * across + two**2 * own) / (own * theirs - across**2)
        return max(0.0, v - explained)

    def by_area_mean(self) -> float:
        """The mean of the target's area, in which the target itself and other candidates may have swapped."""
        n, step = self.areas[0], self.d / self.areas[0]
        if not self.inside:
            return self.spread + self.s2 / n + self.drift(self.gap, step, self.candidates)
        inner = (1 - 1 / n) * self.gap
        stays = (1 - 1 / n) ** 2 * self.spread + (n - 1) / n**2 * self.s2 + self.drift(inner, step, self.candidates - 1)
        leaves = self.spread + self.s2 / n + self.drift(self.gap + step, step, self.candidates - 1)
        return (1 - self.rate) * stays + self.rate * leaves

    def drift(self, start: float, step: float, pairs: int) -> float:
        """Mean square of start + step x (pairs that swap)."""
        once, twice = self.swap_moments(pairs)
        return start**2 + 2 * start * step * once + step**2 * twice
