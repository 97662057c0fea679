"""Theory of synthetic data: m samples of k records, each sample with a mean of its own."""

from dataclasses import dataclass

from equipoise.methods.parameters import above, check_fields
from equipoise.theory.point import Setting, Theory


@dataclass(frozen=True, kw_only=True)
class Synthetic(Setting):
    """m samples of k records with variance s2 around means drawn with variance a2.

    Drawn from the posterior the means centre on the mean of the original records, so what the sample did not know of
    mu stays unknown: the user's MSE is s2/n + a2/m + s2/(m k). The `naive` form of the paper centres them on mu itself,
    (s2 + k a2)/(m k), which would be more than the original file knows. Without `a2` it is s2/n, the posterior variance
    under a flat prior; without `k` it is n. With B the MSE of guessing the original mean (`theory.mean("original")`):

    - `mean`, of all released records: B + a2/m + s2/(m k); naive: s2 + (s2 + k a2)/(m k);
    - `sample mean`, of one synthetic sample: B + a2 + s2/k; naive: s2 + a2 + s2/k (the paper's s2 + a2 as k grows);
    - `synthetic record`, one of them: B + a2 + s2; naive: 2 s2 + a2;
    - `prior`: what was known before, v.

    The mean is the best linear unbiased guess. No record is anyone's: identity is not applicable.
    Source: Duncan and Keller-McNulty (2000), section 6.1; Raghunathan, Reiter and Rubin (2003) for the centre.

    >>> Synthetic(n=10, s2=4.0, a2=0.4, k=10, m=5).point().user, Synthetic(n=10, s2=4.0, m=5, form="naive").point().user
    (0.56, 0.16)
    """

    n: int
    m: int = 1
    k: int | None = None
    a2: float | None = None

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        check_fields(self, n=1, m=1, k=1)
        if self.a2 is not None:
            above(self.a2, "a2", strict=False)

    def point(self) -> Theory:
        k = self.n if self.k is None else self.k
        a2 = self.s2 / self.n if self.a2 is None else self.a2
        overall = a2 / self.m + self.s2 / (self.m * k)
        start = self.spread + self.gap**2 if self.naive else self.by_mean(self.n)
        errors = {
            "mean": start + overall,
            "sample mean": start + a2 + self.s2 / k,
            "synthetic record": start + a2 + self.s2,
        }
        user = overall if self.naive else self.s2 / self.n + overall
        return Theory("synthetic", user, self.with_prior(errors), form=self.form)
