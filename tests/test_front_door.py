"""The front door: which names there are, and that each takes what the issue says."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import equipoise as eq

NAMES = [
    "Assessment",
    "Attack",
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
    "Publication",
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
    "attack",
    "attacks",
    "balance",
    "best_coarsening",
    "check",
    "coarsenings",
    "count",
    "demo",
    "frontier",
    "grid",
    "init",
    "losses",
    "masks",
    "open",
    "protect",
    "protect_tables",
    "publication",
    "publish",
    "read",
    "recipes",
    "release",
    "replay",
    "report",
    "risk",
    "rules",
    "suggest_roles",
    "sweep",
    "table",
    "tables",
    "tabulate",
    "theory",
    "utility",
    "verify",
]


def test_the_exported_names() -> None:
    """House: about 40 names, nothing else. A change here is a decision."""
    assert sorted(eq.__all__) == NAMES
    assert 35 <= len(NAMES) <= 59
    assert list(eq.__all__) == sorted(eq.__all__)


def test_every_exported_name_is_there_and_described() -> None:
    for name in eq.__all__:
        assert inspect.getdoc(getattr(eq, name)), name


SIGNATURES: list[tuple[Callable[..., Any], list[str], dict[str, Any]]] = [
    (eq.read, ["source", "roles"], {}),
    (
        eq.Roles,
        ["keys", "sensitive", "numeric", "weight", "household", "domain", "id", "hierarchies", "missing"],
        {"missing": "category"},
    ),
    (eq.count, ["records", "by"], {"by": None}),
    (eq.Cells.roll_up, ["self", "changes"], {}),
    (eq.Records.to_native, ["self"], {}),
    (eq.rules.MinCount, ["n"], {}),
    (eq.masks.Recode, ["column", "level"], {}),
    (eq.masks.TopCode, ["column", "at", "replace_by"], {"replace_by": "mean"}),
    (eq.masks.BottomCode, ["column", "at", "replace_by"], {"replace_by": "mean"}),
    (eq.risk.Uniques, ["k"], {"k": 1}),
    (eq.risk.PopulationUniques, ["fraction"], {}),
    (eq.risk.AttributeDisclosure, ["sensitive", "share", "range"], {}),
    (eq.utility.Entropy, [], {}),
    (eq.Recipe, ["masks", "seed"], {"seed": None}),
    (eq.Recipe.run, ["self", "records"], {}),
    (eq.sweep, ["records", "recipes", "measures", "draws", "holdout"], {"draws": 1, "holdout": 0.0}),
    (eq.coarsenings, ["records"], {}),
    (eq.best_coarsening, ["records", "rules", "loss", "suppress_at_most"], {"suppress_at_most": 0.02}),
    (eq.frontier, ["trials"], {}),
    (eq.Policy, ["limits", "prefer"], {"prefer": "utility"}),
    (eq.Policy.judge, ["self", "trial"], {}),
    (eq.Policy.choose, ["self", "trials"], {}),
    (
        eq.release,
        ["records", "recipe", "policy", "out", "format", "overwrite"],
        {"format": None, "overwrite": False},
    ),
    (eq.assess, ["records"], {}),
    (
        eq.attack,
        ["released", "original", "known", "sensitive", "size", "attacks", "progress"],
        {"known": None, "sensitive": None, "size": 2, "attacks": None},
    ),
    (
        eq.publication,
        ["source", "prior", "disclosure", "nonpublication", "domain", "target", "population"],
        {"prior": None},
    ),
    (eq.publish, ["source", "risk_at_most", "publish_share", "cutoff", "out", "overwrite"], {"overwrite": False}),
    (
        eq.rules.ExpectedLoss,
        ["disclosure", "nonpublication", "prior", "domain", "population", "cutoff"],
        {"cutoff": 1.0},
    ),
    (eq.losses.Uniques, ["S"], {}),
    (eq.losses.GammaUniques, ["S", "a"], {}),
    (eq.losses.Subclasses, ["shares"], {}),
    (eq.losses.Respondents, ["S"], {}),
    (eq.losses.SmallGroup, ["S"], {}),
    (eq.losses.Threshold, ["minimum"], {}),
    (eq.protect, ["records"], {}),
    (eq.balance, ["policy", "report"], {"report": None}),
    (eq.init, ["source", "out", "preset"], {"out": None, "preset": None}),
    (eq.check, ["policy"], {}),
    (eq.tabulate, ["records", "by", "value", "rule", "hierarchies", "holding", "weight"], {"value": None}),
    (eq.protect_tables, ["tables", "method"], {"method": None}),
]


@pytest.mark.parametrize(("what", "names", "defaults"), SIGNATURES, ids=[s[0].__qualname__ for s in SIGNATURES])
def test_what_the_issue_writes_can_be_called_so(
    what: Callable[..., Any], names: list[str], defaults: dict[str, Any]
) -> None:
    """Everything written in `code`, with these arguments; anything beyond them is optional."""
    parameters = inspect.signature(what).parameters
    assert [n for n in parameters if n in names] == names
    for name, value in defaults.items():
        assert parameters[name].default == value
    later = [p for n, p in parameters.items() if n not in names]
    if what not in (eq.protect,):
        assert all(p.default is not p.empty for p in later)


def test_release_takes_its_options_by_keyword_only() -> None:
    """`eq.release(records, recipe, policy, out, *, format=None, overwrite=False)`."""
    parameters = inspect.signature(eq.release).parameters
    assert [parameters[n].kind.name for n in ("format", "overwrite")] == ["KEYWORD_ONLY", "KEYWORD_ONLY"]


@pytest.mark.parametrize(
    ("noun", "names"),
    [
        (eq.Score, ["value", "detail", "by_record", "better", "interval", "baseline"]),
        (eq.Trial, ["scores", "recipe", "draws", "beats"]),
        (eq.Cells, ["table", "roll_up", "margin"]),
        (eq.Records, ["frame", "roles", "history", "to_native"]),
        (eq.Hierarchy, ["intervals", "breaks", "from_csv", "mapping", "prefix", "dates"]),
        (eq.Roles, ["to_toml", "from_toml"]),
        (eq.Verdict, ["accepted", "reasons"]),
        (eq.Attack, ["scenarios", "knowledge", "strongest", "growth", "worst", "exposed", "chart"]),
        (eq.Release, ["data", "trial", "verdict", "public", "private"]),
        (eq.Publication, ["cells", "order", "curve", "choose", "compare", "elicit"]),
        (eq.Frontier, ["best", "chart"]),
    ],
)
def test_what_others_rely_on(noun: type, names: list[str]) -> None:
    """`Score.value`, `Score.detail`, `Trial.scores`, `Cells.table`, `Records.frame` and the nouns of house.md."""
    fields = {*dir(noun), *getattr(noun, "__dataclass_fields__", {})}
    assert set(names) <= fields


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (eq.RefusedError, 1),
        (eq.DataError, 2),
        (eq.RolesError, 2),
        (eq.ParameterError, 2),
        (eq.EngineError, 2),
        (eq.InfeasibleError, 2),
        (eq.MissingExtraError, 3),
        (eq.Cancelled, 130),
    ],
)
def test_exit_codes(error: type[eq.EquipoiseError], code: int) -> None:
    """House: 0 done, 1 refused by policy, 2 bad input, 3 internal or missing extra, 130 interrupted."""
    assert issubclass(error, eq.EquipoiseError)
    assert error.exit_code == code


def test_import_loads_nothing_slow() -> None:
    """SciPy, Altair, pandas, scikit-learn and the web stack are not loaded by `import equipoise`."""
    slow = [
        "scipy",
        "altair",
        "pandas",
        "sklearn",
        "fastapi",
        "uvicorn",
        "pyarrow",
        "duckdb",
        "pyspark",
        "cryptography",
    ]
    code = f"import sys, equipoise; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert eq.__version__ == version("equipoise")
