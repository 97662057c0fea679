"""Theory of the original file and of additive noise; the original is noise of variance 0."""

from dataclasses import dataclass

from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import above, check_fields
from equipoise.theory.point import Setting, Theory


@dataclass(frozen=True, kw_only=True)
class Original(Setting):
    """The unchanged file: U = n/s2.

    Snoopers: `mean` guesses the mean, with MSE (n-1)/n s2 inside and s2 (1 + 1/n) outside the file; `linked` knows the
    record and errs by 0: infinite risk. Source: Duncan and Keller-McNulty (2000), section 6. The target outside the
    file and the prior are derived here: the error of a guess c X + (1-c) (mean of the others) is
    (1-c)^2 (v + g^2 + s2/(n-1)), v the target's variance and g the gap of its mean.

    >>> round(Original(n=10, s2=4.0, links=False).point().mse["mean"], 10)
    3.6
    """

    n: int

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        check_fields(self, n=1)

    def point(self) -> Theory:
        errors = {"mean": self.by_mean(self.n)}
        if self.linked and not self.naive:
            errors["linked"] = 0.0
        return Theory(
            "original",
            self.s2 / self.n,
            self.with_prior(errors),
            identity=1.0 if self.linked else None,
            form=self.form,
        )


@dataclass(frozen=True, kw_only=True)
class IndependentNoise(Setting):
    """Independent noise of variance l2 on every record: U = n/(s2 + l2).

    `l2` is given, or `scale`, the noise's standard deviation as a share of that of the values (l2 = scale^2 s2);
    `copies` noisy releases of the same file are averaged by user and snooper alike: l2 / copies.

    - `mean`: ((n-1) s2 + l2)/n inside, s2 + (s2 + l2)/n outside the file;
    - `linked`: the released value of the target's record, l2; the mean is the better guess iff l2 >= s2;
    - `shrunk`: the linked value drawn towards the mean by b = s2/(s2 + l2), the best linear guess with mu unknown:
      (n-1)/n s2 l2/(s2 + l2) + l2/n, below both whatever l2 > 0;
    - `guessed`, in place of `shrunk` where the size of the noise is `private`, a pair (low, high) in the unit of l2 or
      scale: a snooper to whom every size between them is as likely shrinks by its mean square. The MSE of a linear
      guess is linear in l2, so that this is his best. It holds only while the size is secret: with s2 from elsewhere
      it follows from the released variance, s2 + l2;
    - `prior`: what was known before, v; `prior and linked`: v l2/(v + l2), which for v = s2 and the true mean is the
      shrinking snooper who knows mu.

    Source: Duncan and Keller-McNulty (2000), section 6; `shrunk`: Henderson (1975), best linear unbiased prediction.

    >>> point = IndependentNoise(n=10, s2=4.0, l2=2.0).point()
    >>> {name: round(error, 10) for name, error in point.mse.items()}, point.strongest
    ({'mean': 3.8, 'linked': 2.0, 'shrunk': 1.4}, 'shrunk')
    >>> round(IndependentNoise(n=10, s2=4.0, l2=2.0, private=(0.0, 8.0)).point().mse["guessed"], 10)
    1.55
    """

    n: int
    l2: float | None = None
    scale: float | None = None
    copies: int = 1
    private: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        check_fields(self, n=1, copies=1)
        if self.private is not None and (len(self.private) != 2 or not 0 <= self.private[0] < self.private[1]):
            raise ParameterError("private is a pair: the least and the largest size of the noise that may be.")
        if (self.l2 is None) == (self.scale is None):
            raise ParameterError("Give one of l2 (variance of the noise) and scale (share of the standard deviation).")
        amount = self.l2 if self.scale is None else self.scale
        above(amount or 0.0, "l2" if self.scale is None else "scale", strict=False)

    @property
    def noise(self) -> float:
        """Variance of the noise in the mean of all copies."""
        alone = self.l2 if self.l2 is not None else (self.scale or 0.0) ** 2 * self.s2
        return alone / self.copies

    @property
    def believed(self) -> float:
        """Variance of the noise, as the snooper knows it: its mean, where the size is private and uniform."""
        if self.private is None:
            return self.noise
        low, high = self.private
        square = (low**2 + low * high + high**2) / 3 * self.s2
        return (square if self.scale is not None else (low + high) / 2) / self.copies

    @property
    def pull(self) -> float:
        """Weight of the target's own record in the best linear guess."""
        shrinkage = self.s2 / (self.s2 + self.believed)
        return shrinkage + (1 - shrinkage) / self.n

    def point(self) -> Theory:
        l2 = self.noise
        errors = {"mean": self.by_mean(self.n, l2)}
        if self.linked:
            errors["linked"] = l2
        if self.linked and not self.naive:
            errors["shrunk" if self.private is None else "guessed"] = self.guess(self.pull, self.n, l2)
        own = self.spread / (self.spread + self.believed) if self.spread + self.believed > 0 else 0.0
        with_prior = {"prior and linked": (1 - own) ** 2 * self.spread + own**2 * l2} if self.linked else {}
        return Theory(
            "noise",
            (self.s2 + l2) / self.n,
            self.with_prior(errors, **with_prior),
            identity=1.0 if self.linked else None,
            form=self.form,
        )
