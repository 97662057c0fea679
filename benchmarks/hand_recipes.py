"""What the search chooses beside twenty recipes written by hand: `python -m benchmarks.hand_recipes [file ...]`.

The limits are those of the proposed policy, for both; what is compared is the mean overlap of intervals. A line of
figures for each file: how many of the twenty are inside the limits, the best of them, the choice, and its CPU seconds.
"""

import os
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.masks import (
    CoarsenWeights,
    LocalRecode,
    LocalSuppress,
    LocalSwap,
    Microaggregate,
    Noise,
    RankSwap,
    Recode,
    Renumber,
)  # fmt: skip
from equipoise.methods.method import Mask
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.releases.plan import recipes_of
from equipoise.rules import MinCount
from equipoise.search.ranking import best, inside, shortfall
from equipoise.trials.runner import Runner
from equipoise.trials.trial import Trial

SEED = 20261118
AMOUNTS = ("expend", "income", "savings")


@dataclass(frozen=True)
class Hand:
    """A file, the hierarchies somebody would write for it, and twenty recipes."""

    path: str
    groups: Mapping[str, Mapping[str, str]]
    bands: Mapping[str, tuple[int, ...]]
    recipes: tuple[tuple[Mask, ...], ...]


def coarse(*columns: str, **levels: str) -> tuple[Mask, ...]:
    """Columns at their only level, others at a level of several."""
    named = {**dict.fromkeys(columns, "groups"), **levels}
    return tuple(Recode(column.replace("_", "-"), level) for column, level in named.items())


def blank(least: int = 2) -> LocalSuppress:
    return LocalSuppress(MinCount(least))


def adult() -> Hand:
    groups = {
        "race": {"White": "White", "Black": "Black"},
        "marital-status": {
            "Never-married": "single", "Married-civ-spouse": "married", "Married-AF-spouse": "married",
            "Married-spouse-absent": "apart", "Divorced": "apart", "Separated": "apart", "Widowed": "apart",
        },
        "education": {
            "HS-grad": "school", "Some-college": "college", "Assoc-voc": "college", "Assoc-acdm": "college",
            "Bachelors": "degree", "Masters": "higher", "Doctorate": "higher", "Prof-school": "higher",
        },
        "native-country": {"United-States": "United-States"},
        "workclass": {
            "Private": "private", "Self-emp-not-inc": "self", "Self-emp-inc": "self",
            "Local-gov": "government", "State-gov": "government", "Federal-gov": "government",
        },
        "occupation": {
            "Exec-managerial": "office", "Prof-specialty": "office", "Adm-clerical": "office", "Tech-support": "office",
            "Sales": "service", "Other-service": "service", "Protective-serv": "service", "Priv-house-serv": "service",
        },
    }  # fmt: skip
    keys = ("race", "marital_status", "education", "native_country", "workclass", "occupation")
    fine = {"occupation": keys[:-1], "education": tuple(k for k in keys if k != "education")}
    exchange, exchange_3 = LocalSwap(MinCount(2)), LocalSwap(MinCount(3))
    recipes = (
        (*coarse(*keys, age="20"), blank()), (*coarse(*keys, age="10"), blank()), (*coarse(*keys, age="5"), blank()),
        (*coarse(*fine["occupation"], age="10"), blank()), (*coarse(*fine["occupation"], age="20"), blank()),
        (*coarse(*fine["education"], age="10"), blank()), (*coarse(*fine["education"], age="20"), blank()),
        (*coarse("native_country", "marital_status", age="10"), blank()),
        (*coarse("native_country", age="5"), blank()), (blank(),), (LocalRecode(MinCount(2)),),
        (exchange,), (*coarse(age="5"), exchange), (*coarse(age="10"), exchange), (*coarse(age="20"), exchange),
        (*coarse("native_country"), exchange), (*coarse("native_country", age="5"), exchange),
        (*coarse("native_country", "marital_status", age="10"), exchange),
        (*coarse(age="10"), exchange_3), (*coarse(*keys, age="5"), exchange),
    )  # fmt: skip
    return Hand("arx/adult.csv", groups, {"age": (5, 10, 20)}, recipes)


def testdata() -> Hand:
    groups = {
        "roof": {"2": "hard", "4": "hard", "5": "light", "6": "light", "9": "light"},
        "walls": {"2": "brick", "3": "brick", "9": "other"},
        "water": {"1": "pipe", "2": "pipe", "3": "pipe"},
        "relat": {"1": "head", "2": "spouse", "3": "child"},
        "hhcivil": {"1": "single", "2": "married", "3": "apart", "4": "apart"},
    }
    keys = ("roof", "walls", "water", "relat", "hhcivil")
    noise, strong = (Noise(AMOUNTS, scale, "multiplicative", bounds="sign") for scale in (0.2, 0.8))
    dealt, more = (Noise(AMOUNTS, scale, preserve="distributions") for scale in (0.4, 0.6))
    swap, wide, far = (RankSwap(AMOUNTS, window) for window in (0.05, 0.15, 0.3))
    mdav, large = Microaggregate(AMOUNTS, 5), Microaggregate(AMOUNTS, 10)
    both: tuple[tuple[Mask, ...], ...] = (
        (*coarse(*keys, age="20"), blank(), mdav), (*coarse(*keys, age="10"), blank(), mdav),
        (*coarse(*keys, age="5"), blank(), mdav), (*coarse(*keys, age="20"), blank(3), mdav),
        (*coarse(*keys, age="10"), blank(), large), (*coarse(*keys, age="10"), blank(), swap),
        (*coarse(*keys, age="10"), blank(), wide), (*coarse(*keys, age="5"), blank(), wide),
        (*coarse(*keys, age="10"), blank(), far), (*coarse(*keys, age="10"), blank(), noise),
        (*coarse(*keys, age="10"), blank(), strong), (*coarse("roof", "water", "relat", age="10"), blank(), mdav),
        (*coarse("water", "relat", age="20"), blank(), mdav), (*coarse(*keys[1:], age="20"), blank(), mdav),
        (*coarse(*keys, age="5"), blank(), dealt), (*coarse(*keys, age="10"), blank(), dealt),
        (*coarse("walls", age="5"), blank(), dealt), (*coarse("walls", "relat", age="5"), blank(), dealt),
        (*coarse("walls", "water", age="10"), blank(), dealt), (*coarse("walls", age="5"), blank(), more),
    )  # fmt: skip
    recipes = tuple((*masks, Renumber()) for masks in both)
    return Hand("sdcmicro/testdata.csv", groups, {"age": (5, 10, 20)}, recipes)


def casc() -> Hand:
    money = ("AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "PEARNVAL", "FICA",
             "WSALVAL", "ERNVAL")  # fmt: skip
    one_by_one: tuple[Mask, ...] = tuple(Microaggregate((column,), 5) for column in money)
    thirds = (money[:4], money[4:8], money[8:])
    recipes: tuple[tuple[Mask, ...], ...] = (
        *((Noise(money, scale, "correlated"),) for scale in (0.3, 0.5, 0.8)),
        *((Noise(money, scale),) for scale in (0.3, 0.5)),
        *((Noise(money, scale, preserve="distributions"),) for scale in (0.4, 0.5, 0.6, 0.7, 1.0)),
        *((Noise(money, scale, "correlated", preserve="distributions"),) for scale in (0.5, 0.8)),
        *((RankSwap(money, window),) for window in (0.05, 0.15, 0.4)),
        *((Microaggregate(money, size),) for size in (3, 10)),
        tuple(Microaggregate(part, 5) for part in thirds),
        (*one_by_one, RankSwap(money, 0.05)), (*one_by_one, Noise(money, 0.5, preserve="distributions")),
    )  # fmt: skip
    return Hand("sdcmicro/CASCrefmicrodata.csv", {}, {}, tuple((*masks, CoarsenWeights(5)) for masks in recipes))


HANDS = {"adult": adult, "testdata": testdata, "CASC": casc}


def hand_roles(job: Job, hand: Hand, records: eq.Records) -> eq.Records:
    """The records with the hierarchies written by hand; what is not named is "other"."""
    trees: dict[str, Any] = {
        c: eq.Hierarchy.intervals(list(widths), start=0, top=75) for c, widths in hand.bands.items()
    }
    for column, groups in hand.groups.items():
        values = records.collect(column)[column].unique().drop_nulls().to_list()
        labels = {value: groups.get(str(value), "other") for value in values}
        trees[column] = eq.Hierarchy.mapping(labels, names=["groups"])
    return replace(records, roles=replace(records.roles, hierarchies=trees))


def tried(records: eq.Records, job: Job, recipes: Iterator[eq.Recipe]) -> list[Trial]:
    """A trial of each recipe that can be run, one draw of each: the same seed for all."""
    with Runner(records, job.scales(), processes=1) as runner:
        outcomes = []
        for recipe in recipes:
            try:
                outcomes += runner.run([recipe])
            except EquipoiseError as problem:
                print("   cannot be run:", recipe.words(), problem, file=sys.stderr)
        return [trial for trial in outcomes if isinstance(trial, Trial)]


def compared(name: str, data: Path, *, show: bool = True) -> str:
    """The best by hand and the choice for one file."""
    hand = HANDS[name]()
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / "hand_recipes"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(initial(data / hand.path, path=str((data / hand.path).resolve())), encoding="utf-8")
    job = Job.load(path)
    policy, records = job.policy(), without_direct(job.read()).held()
    assert len(hand.recipes) == 20
    by_hand = tried(hand_roles(job, hand, records), job, (eq.Recipe(masks, SEED) for masks in hand.recipes))
    before = _cpu()
    chosen = tried(records, job, iter(recipes_of(job, records, SEED)))
    seconds = _cpu() - before
    for trial in by_hand if show else ():
        print(
            "  ",
            "in " if inside(policy, trial) else f"{shortfall(policy, trial):.2f}",
            _figures(trial),
            trial.words()[:90],
        )
    ahead = [best(some, policy, policy.parsed) for some in (by_hand, chosen)]
    fit = sum(inside(policy, trial) for trial in by_hand)
    words = [_figures(one) if one else "none inside the limits" for one in ahead]
    return f"{name}: {fit} of 20 inside the limits; by hand {words[0]}; the choice {words[1]}; {seconds:.0f} CPU s"


def _figures(trial: Trial) -> str:
    names = ("overlap", "uniques", "value_disclosure", "revealing_columns", "blank_keys", "bias")
    return " ".join(f"{n} {trial.scores[n].value:.3f}" for n in names if n in trial.scores)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    for file in sys.argv[1:] or HANDS:
        print(compared(file, Path(os.environ["EQUIPOISE_DATA"])), flush=True)
