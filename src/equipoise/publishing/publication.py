"""Publish or suppress: each cell's expected loss of disclosure against the loss of not publishing it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.beta_binomial.posterior import Posterior, posterior
from equipoise.beta_binomial.prior import PriorFit
from equipoise.data import engines
from equipoise.data.hierarchy import Hierarchy
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.options import option, with_options
from equipoise.losses.expectation import Loss, as_text, expected, plug_in, read, shape, taylor
from equipoise.losses.threshold import Threshold
from equipoise.presentation.numbers import fraction, percent
from equipoise.presentation.style import Spec
from equipoise.publishing.alternatives import Answers, LossTerms, Ways, answers
from equipoise.publishing.cell_losses import ClassLoss, UniquesMisfit, by_class, misfit, silence
from equipoise.publishing.cell_prior import cell_prior
from equipoise.publishing.cells_of_domains import Domains, domains
from equipoise.publishing.chart import curve_chart
from equipoise.publishing.other_rules import RuleComparison, built_in, rival
from equipoise.publishing.prior_fit import Residuals, checked
from equipoise.publishing.trade_off import Elicited, Point, TradeOff, above_zero, elicited, ordered, ratios

OWN_COLUMNS = ("alpha", "beta", "mean", "low", "high", "mass", "R0", "R1", "ratio", "jensen", "taylor")
CENSUS_SHARE = 0.9
"""A sample of more than this share of its domain is near a census: a zero there is known to be one."""


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Which cells to publish. `risk` and `withheld` are relative, read off the curve at what was asked for; `realised`
    is what publishing whole cells gives. `cells` has a row per cell with `publish`; `cutoff` the ratios R1/R0 between
    which the line was drawn: that of the last cell published, and of the first withheld.
    """

    risk: float
    withheld: float
    realised: Point
    cutoff: tuple[float, float]
    cells: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """As a manager reads it."""
        if self.risk == 1:
            return "Nothing is withheld: the risk is that of full publication."
        if self.risk == 0:
            return f"{percent(self.withheld)} of the data is withheld; no risk is left."
        risk_left = fraction(self.risk) or f"{percent(self.risk)} of that of full publication"
        return f"{percent(self.withheld)} of the data withheld cuts the risk to {risk_left}."

    def __repr__(self) -> str:
        published = f"{int(self.cells['publish'].sum()):,} of {self.cells.height:,}"
        return f"Decision(risk={self.risk:.4g}, withheld={self.withheld:.4g}, publish={published})"


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """Cells, the posterior of their population, and the two expected losses: R0 of silence, R1 of disclosure.

    `notes` say what was assumed and what does not fit. Ties in R1/R0 are broken by a stated rule: the cell whose
    silence costs more first, then the larger domain, then the order of the table.
    """

    data: Domains
    posterior: Posterior
    disclosure: Any
    nonpublication: Any
    loss: Loss
    R0: Floats
    R1: Floats
    shapes: tuple[Floats, Floats]
    """alpha and beta of each cell's prior, as fitted or given: taken back from the posterior they would lose digits."""
    prior: PriorFit | None = None
    misfit: UniquesMisfit | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.R0)

    @cached_property
    def share(self) -> Floats:
        """How frequent each configuration is; 1 for cells that are themselves."""
        return self.data.column("share")

    @cached_property
    def ratio(self) -> Floats:
        """R1/R0: 0 where publishing costs nothing, infinite where only silence costs nothing."""
        return ratios(self.R1, self.R0)

    @cached_property
    def trade_off(self) -> TradeOff:
        """The best order: by R1/R0."""
        return TradeOff(self.share * self.R1, self.share * self.R0, *ordered(self.ratio, self.tie_keys))

    @property
    def tie_keys(self) -> tuple[Floats, ...]:
        return -self.share * self.R0, -self.posterior.N

    @cached_property
    def table(self) -> pl.DataFrame:
        """The cells with their losses, without intervals: as they came."""
        ratio = pl.Series("ratio", np.where((self.R0 == 0) & (self.R1 == 0), np.nan, self.ratio)).fill_nan(None)
        counts = self.data.table.drop(*OWN_COLUMNS, strict=False)
        return counts.with_columns(R0=self.R0, R1=self.R1).with_columns(ratio)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """A row per cell: y, n, N, the prior, the posterior mean, an interval of Y with its own mass, R0, R1, their
        ratio (null where both are 0), Jensen's gap E L1(Y) - L1(E Y), and the Taylor approximation of R1.
        """
        law, loss = self.posterior, self.loss
        low, high, mass = law.interval()
        near = taylor(loss, law)
        gap = self.R1 - plug_in(loss, law, law.mean)
        alpha, beta = self.shapes
        columns = {"alpha": alpha, "beta": beta, "mean": law.mean, "low": low, "high": high, "mass": mass}
        last = {"jensen": gap, "taylor": near if near is not None else pl.Series([None] * len(self), dtype=pl.Float64)}
        losses = self.table.select("R0", "R1", "ratio")
        labels = self.table.drop("R0", "R1", "ratio")
        return labels.with_columns(**columns).hstack(losses).with_columns(**last).select(*labels.columns, *OWN_COLUMNS)

    def order(self) -> pl.DataFrame:
        """The cells in their order of publication, with what is exposed so far and what is still silent.

        `tie` numbers groups of equal ratio; `tied` says whether a group has several. `exposed` and `silent` are share x
        R1 and share x R0, `exposure` the sum published so far, `silence` the sum withheld still.
        """
        best = self.trade_off
        _, risk, withheld = best.steps
        sizes = np.bincount(best.tie)[best.tie]
        exposed, silent = best.exposed[best.order], best.silent[best.order]
        return self.table[best.order].with_columns(
            rank=np.arange(1, len(self) + 1),
            tie=best.tie,
            tied=sizes > 1,
            exposed=exposed,
            silent=silent,
            exposure=np.cumsum(exposed),
            silence=np.maximum(silent.sum() - np.cumsum(silent), 0.0),
            risk=risk[1:],
            withheld=np.clip(withheld[1:], 0.0, 1.0),
        )

    def curve(self) -> pl.DataFrame:
        """Risk against what is withheld, both relative, from (withheld 0, risk 1) to (1, 0)."""
        return self.trade_off.curve()

    def choose(
        self,
        *,
        risk_at_most: float | None = None,
        publish_share: float | None = None,
        cutoff: float | None = None,
    ) -> Decision:
        """Publish in order up to a risk, until a share of what there is to say is published, or where R1/R0 < cutoff.

        At a step of the curve no other set of cells that withholds as little has less risk. Between two steps the best
        set of whole cells is a knapsack, which is not solved: `risk` and `withheld` are on the line, `realised` is the
        step that keeps the limit.
        """
        if cutoff is None:
            chosen = self.trade_off.choose(risk_at_most=risk_at_most, publish_share=publish_share)
        elif risk_at_most is None and publish_share is None:
            chosen = self.trade_off.first(int(((self.ratio < above_zero(cutoff)) | (self.ratio == 0)).sum()))
        else:
            raise ParameterError("Give one of risk_at_most, publish_share and cutoff.")
        ends = np.append(np.append(0.0, self.ratio[self.trade_off.order]), np.inf)
        published = int(chosen.publish.sum())
        cells = self.table.with_columns(publish=pl.Series(chosen.publish))
        line = float(ends[published]), float(ends[published + 1])
        return Decision(chosen.risk, chosen.withheld, chosen.realised, line, cells, self.notes)

    def compare(
        self, alternatives: Mapping[str, tuple[Any, Any]] | None = None, *, ties: Any = "stated", standard: bool = True
    ) -> RuleComparison:
        """Other rules on the same axes: what would the wrong loss cost?

        Each alternative is a pair (L1, L0) whose order is followed while the losses of this publication are counted.
        With `standard` also: the posterior-mean rule of Pannekoek and de Waal, the weighted and the synthetic estimate
        plug_in into the losses, the minimum-count rule, and random suppression. `ties` is "stated", "pooled" (tied
        cells are one step) or a list of (n, N) in the order in which tied cells are published.
        """
        rivals = {name: rival(self, *pair, ties) for name, pair in _pairs(alternatives).items()}
        usual = built_in(self, ties) if standard else {}
        return RuleComparison(self, {"optimal": self.trade_off, **rivals, **usual})

    def chart(self, decision: Decision | None = None, comparison: RuleComparison | None = None) -> Spec:
        """The curve, the decision on it, and other rules beside it, as a Vega-Lite chart."""
        return curve_chart(comparison or self.compare(), decision)

    def residuals(self) -> Residuals:
        """Whether the prior fits the domains: randomised quantile residuals, a test of them and a Q-Q chart."""
        return checked(self.data, *self.shapes)

    def elicit(self, choices: Any) -> Elicited:
        """The range of the cutoff implied by decisions: a mapping of cell to True (publish) or False (withhold).

        A cell is named by its row in `cells`, or by its domain and class as a tuple (a single name where that is all).
        A frame with the naming columns (or `row`) and `publish` does as well. Cells that cost nothing either way say
        nothing and are passed over.
        """
        rows, publish = _choices(self, choices)
        weighed = (self.R0[rows] > 0) | (self.R1[rows] > 0)
        rows, publish = rows[weighed], publish[weighed]
        names = [*self.data.keys] or ["y", "n", "N"]
        return elicited(self.ratio[rows], publish, self.data.table[rows].select(names))

    def answers(
        self,
        along: str,
        hierarchy: Hierarchy | None = None,
        *,
        cutoff: float = 1.0,
        coarseness: float = 1.0,
        reach: int = 2,
        ways: Ways | None = None,
    ) -> Answers:
        """More than two answers: also merge with a neighbour, tell a coarser class, or one of the `ways`, jointly.

        `along` is the column of the domain or the class whose `hierarchy` (that of the roles when not given) is cut;
        `cutoff` exchanges silence for disclosure, `coarseness` says what being told together costs, `reach` how many
        neighbours may be merged. `ways` names what else can be done with one cell, as {"round": (0.5, 0.1)}: the share
        of the disclosure loss it leaves and the share of the silence it costs. Never worse than publish or suppress.
        """
        tree = hierarchy or (self.data.records and self.data.records.roles.hierarchies.get(along))
        if not tree:
            raise ParameterError(f"Column {along!r} has no hierarchy: give one, or name it in the roles.")
        terms = LossTerms(cutoff, coarseness, reach, dict(ways or {}))
        return answers(self.data, self.posterior, (self.R0, self.R1), self.loss, along, tree, terms)

    def __repr__(self) -> str:
        return f"Publication({len(self):,} cells, {as_text(self.disclosure)} against {as_text(self.nonpublication)})"


def _pairs(alternatives: Any) -> dict[str, tuple[Any, Any]]:
    pairs = dict(alternatives or {})
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs.values()):
        raise ParameterError("compare takes a mapping of names to pairs (L1, L0).")
    return pairs


def _choices(of: Publication, choices: Any) -> tuple[Integers, Integers]:
    """Rows and decisions."""
    if isinstance(choices, Mapping):
        names, publish = list(choices), list(choices.values())
    else:
        table = engines.collect(engines.adopt(choices)[0])
        by = ["row"] if "row" in table.columns else list(of.data.keys)
        if "publish" not in table.columns or not by or not set(by) <= set(table.columns):
            raise ParameterError("choices needs a column publish, and row or the columns of the domain and the class.")
        names = [row[0] if len(by) == 1 else row for row in table.select(by).iter_rows()]
        publish = table["publish"].to_list()
    if not all(isinstance(choice, bool | np.bool_) for choice in publish):
        raise ParameterError("Each decision must be True (publish) or False (withhold).")
    return _rows(of, names), np.array(publish, dtype=np.bool_)


def _rows(of: Publication, names: list[Any]) -> Integers:
    keys = of.data.keys
    if keys and not all(isinstance(name, int) and not isinstance(name, bool) for name in names):
        rows = of.data.table.select(keys).rows()
        places = {row[0] if len(keys) == 1 else row: place for place, row in enumerate(rows)}
    else:
        places = {place: place for place in range(len(of))}
    if not all(name in places for name in names):
        raise ParameterError("A decision names a cell that is not there: use its row, or its domain and class.")
    return np.array([places[name] for name in names], dtype=np.int64)


MODEL_PANEL = "Losses and population"
"""Where the command line lists what the model is told."""


@dataclass(frozen=True)
class PublicationOptions:
    """Options of `publication`: the prior, the two losses, and what the cells are."""

    prior: Any = option(
        None, "Of a cell's share of its domain; fitted over the domains when not given.", positional=True, cli="text",
        metavar="ALPHA,BETA", panel=MODEL_PANEL,
    )  # fmt: skip
    disclosure: Any = option(
        "uniques:10", "The loss of disclosure: uniques:S, gamma-uniques:S,a, subclasses:keys=age+sex, small-group:S, "
        "respondents:S, threshold:MINIMUM.", positional=True, cli="text", flag="loss", metavar="NAME:VALUES",
        panel=MODEL_PANEL,
    )  # fmt: skip
    nonpublication: Any = option(
        "y", "What withholding a cell costs: cell, y, Y, n, N, or a column with its importance.", positional=True,
        cli="text", metavar="NAME", panel=MODEL_PANEL,
    )  # fmt: skip
    domain: Any = option(
        None, "The areas that were sampled: region, or region,age.", positional=True, cli="names", metavar="COLUMNS",
        panel=MODEL_PANEL,
    )  # fmt: skip
    target: Any = option(
        None, "The classes (occupation), or one class (occupation=nurse).", positional=True, cli="names",
        metavar="COLUMNS or COLUMN=CLASS", panel=MODEL_PANEL,
    )  # fmt: skip
    population: Any = option(
        None, "A column with the domain's N, or a file of domains and N; else the sum of weights.", positional=True,
        cli="text", metavar="COLUMN or FILE", panel=MODEL_PANEL,
    )  # fmt: skip
    covariates: Any = option(
        None, "Columns on which the mean of the prior depends.", cli="names", metavar="COLUMNS", panel=MODEL_PANEL
    )


@with_options(PublicationOptions)
def publication(source: Any, options: PublicationOptions) -> Publication:
    """Weigh, for every cell of a survey, the expected loss of publishing it against that of withholding it.

    Y - y | y ~ BetaBinomial(N - n, alpha + y, beta + n - y); R_d = E L_d(y, Y, n, N) | y; publish where R0 > R1, in the
    order of R1/R0. Source: Zaslavsky and Horton (1998). Misleads when other tables or margins of the same data are
    published: withheld cells may follow from them, so they must pass table suppression as well.
    Cost: O(records) to count, a few seconds for a million different cells.

    Parameters
    ----------
    source
        Records, or a table with a row per cell: n and N (the domain's sample and population), y (the cell's sample),
        and optionally share, how frequent that configuration is.
    prior
        (alpha, beta); a mapping of class to (alpha, beta); or None to fit it over the domains, by class.
    disclosure, nonpublication
        One of eq.losses, its text ('uniques:10'), or a function of (y, Y, n, N). Nonpublication also 'cell', 'y', 'Y',
        'n', 'N', or a column with the importance of each cell (of records: added up).
    domain, target
        Columns of the areas, and of the classes ('occupation') or one class ('occupation=nurse').
    population
        A column with each domain's N, a mapping or frame of domain to N; the sum of weights where not given.
    covariates
        Columns on which the prior's mean may depend; of records, the mean over the domain is taken.

    >>> table = pl.DataFrame({"n": [3, 3, 5], "N": [8, 8, 20], "y": [0, 2, 1]})
    >>> publication(table, prior=(1, 10)).choose(cutoff=0.75).cells["publish"].to_list()
    [True, True, False]
    """
    data = domains(source, options.domain, options.target, options.population)
    if not data.column("y").any():
        raise DataError("All y are 0: nobody in the sample is in the class, so there is nothing to decide.")
    alpha, beta, estimate = cell_prior(options.prior, data, options.covariates)
    y, n, N, *effective = (data.column(c) for c in ("y", "n", "N", "y_eff", "n_eff"))  # noqa: N806
    law = posterior(y, n, N, alpha, beta, effective=(effective[0], effective[1]))
    loss_name, quiet = read(options.disclosure), silence(options.nonpublication, data)
    loss = by_class(loss_name, data)
    uniques_check = misfit(loss_name, loss, data, law)
    R0, R1 = expected(quiet, law), expected(loss, law)  # noqa: N806
    notes = (*data.notes, *_notes(loss, loss_name, law, R1, R0, estimate, uniques_check))
    alpha, beta = (np.broadcast_to(np.asarray(shape, np.float64), law.y.shape) for shape in (alpha, beta))
    return Publication(data, law, loss_name, quiet, loss, R0, R1, (alpha, beta), estimate, uniques_check, notes)


def _notes(
    loss: Loss,
    loss_name: Loss,
    law: Posterior,
    published: Floats,
    withheld: Floats,
    fitted: PriorFit | None,
    uniques_check: UniquesMisfit | None,
) -> tuple[str, ...]:
    """What has to be known beside the numbers."""
    notes = [f"Prior: {fitted.words}"] if fitted is not None else []
    loss_shape = loss.shape(law) if isinstance(loss, ClassLoss) else shape(loss, law)
    notes.append(loss_shape.words(as_text(loss_name)))
    if isinstance(loss_name, Threshold):
        notes.append(
            "A floor is a fair rule but not a sensible loss: any population below it counts as equally dangerous."
        )
    if uniques_check is not None:
        notes.append(uniques_check.words)
    empty = law.y == 0
    full = int((empty & (law.n >= CENSUS_SHARE * law.N) & (published == 0)).sum())
    if full:
        notes.append(
            f"{full:,} cells have y = 0 where n is near N: the zero itself tells that hardly anybody is in the class, "
            "and this loss counts nothing for it; losses.SmallGroup does."
        )
    free = int(((withheld == 0) & (published > 0)).sum())
    if free:
        notes.append(
            f"{free:,} cells cost nothing when withheld and something when published: they are never published."
        )
    return tuple(notes)
