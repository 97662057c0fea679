"""One suite that every listed method goes through: what the house promises of a method, it keeps."""

import inspect
import math
import tomllib
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import polars as pl
import pytest
import tomli_w
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Coarsening, Mask, Measure, OnCells, Rule, label
from equipoise.policies.policy_file import Job
from equipoise.recipe import catalogue

VERBS: tuple[catalogue.Verb, ...] = ("rule", "mask", "measure")
METHODS = [(verb, name, method) for verb in VERBS for name, method in sorted(catalogue.methods(verb).items())]
CANARY = "Quetzalcoatlus"

NAMED = (
    "min_count",
    "recode",
    "top_code",
    "bottom_code",
    "uniques",
    "population_uniques",
    "attribute_disclosure",
    "entropy",
)
# Parameters that suit the file below; a method that is not named here is filled in from its fields.
EXAMPLES: dict[str, dict[str, Any]] = {
    "min_count": {"n": 3},
    "recode": {"column": "age", "level": "10"},
    "renumber": {"columns": ("salary",)},
    "top_code": {"column": "age", "at": 70.0, "replace_by": "median"},
    "bottom_code": {"column": "age", "at": 20.5, "replace_by": "threshold"},
    "uniques": {"k": 2},
    "population_uniques": {"fraction": 0.25},
    "attribute_disclosure": {"sensitive": "ill", "share": 0.9},
    "entropy": {},
    "household": {"household": "area"},
    "composition": {"known": 2, "household": "area"},
    "pram_matrix": {"column": "area", "diagonal": 0.8},
    "exposed": {"rule": eq.rules.MinCount(3) | eq.rules.Zero()},
    "groups_told": {"share": 0.3},
    "expected_loss": {"disclosure": "uniques:10", "prior": (0.5, 9.5), "domain": ("area",), "cutoff": 0.5},
    "diversity": {"sensitive": ("area",), "l": 3},
    "closeness": {"sensitive": ("area",), "t": 0.1},
    "delta_disclosure": {"sensitive": ("area",), "delta": 0.5},
    "beta_likeness": {"sensitive": ("area",), "beta": 0.5},
    "delta_presence": {"member": "area", "low": 0.1, "high": 0.5, "value": "1011"},
    "local_suppress": {"rule": eq.rules.MinCount(3), "importance": ("age=2.0",)},
    "local_swap": {"rule": eq.rules.MinCount(2), "importance": ("age=2.0",)},
    "suppress_records": {"rule": eq.rules.MinCount(3)},
    "local_recode": {"rule": eq.rules.MinCount(3)},
    "adjust": {"rule": eq.rules.MinCount(3)},
    "suppress": {"rule": eq.rules.MinCount(3)},
    "unsafe": {"rule": eq.rules.Diversity("ill", 3) | eq.rules.MinCount(3)},
    "special_uniques": {"max_size": 2, "scores": "ihsn"},
    "log_linear": {"interactions": ("sex*area",), "misclassification": (("sex", 0.9),)},
    "swap": {"keys": ("sex", "age"), "attribute": "area", "protected": ("salary",), "rate": 0.2},
}
BAD: dict[str, list[dict[str, Any]]] = {
    "min_count": [{"n": 0}, {"n": -1}, {"n": 2.5}],
    "recode": [{"column": "age", "level": True}, {"column": "age", "level": 1.5}, {"column": "age", "level": None}],
    "top_code": [
        {"column": "age", "at": math.nan},
        {"column": "age", "at": math.inf},
        {"column": "age", "at": "high"},
        {"column": "age", "at": 5, "replace_by": "mode"},
    ],
    "bottom_code": [
        {"column": "age", "at": math.nan},
        {"column": "age", "at": -math.inf},
        {"column": "age", "at": "low"},
        {"column": "age", "at": 5, "replace_by": "mode"},
    ],
    "uniques": [{"k": 0}, {"k": -2}, {"k": 1.5}],
    "population_uniques": [
        {"fraction": 0},
        {"fraction": 5},
        {"fraction": math.nan},
        {"fraction": -0.1},
        {"fraction": 0.5, "model": "poisson"},
    ],
    "attribute_disclosure": [
        {"sensitive": "ill", "share": 0},
        {"sensitive": "ill", "share": 80},
        {"sensitive": "ill", "range": -1},
        {"sensitive": "ill", "range": math.nan},
    ],
    "entropy": [{"base": 2}],
    "diversity": [
        {"sensitive": ()},
        {"sensitive": "ill", "l": 0.5},
        {"sensitive": "ill", "l": 2.5},
        {"sensitive": "ill", "kind": "recursive"},
        {"sensitive": "ill", "c": 2.0},
        {"sensitive": "ill", "others": "maybe"},
    ],
    "closeness": [
        {"sensitive": "ill", "t": -0.1},
        {"sensitive": "ill", "t": 20},
        {"sensitive": "ill", "distance": "x"},
    ],
    "delta_disclosure": [{"sensitive": "ill", "delta": 0}, {"sensitive": "ill", "delta": math.nan}],
    "beta_likeness": [{"sensitive": "ill", "beta": 0}],
    "delta_presence": [{"member": "ill", "low": 0.6}, {"member": "ill", "high": 5}],
}


def filled(field: catalogue.Field) -> Any:
    """A value for a required parameter nobody gave an example of."""
    columns = {"column": "age", "sensitive": "ill", "columns": ("age",), "keys": ("sex", "area", "age")}
    if field.name in columns:
        return columns[field.name]
    if get_origin(field.type) is Literal:
        return get_args(field.type)[0]
    return {int: 2, float: 0.5, str: "age", bool: False}.get(field.type, 0.5)


def example(name: str, method: type) -> Any:
    given = EXAMPLES.get(name) or {f.name: filled(f) for f in catalogue.form(method) if f.required}
    return method(**given)


def every(*verbs: catalogue.Verb, having: str | None = None) -> Any:
    """All methods with one of these verbs, or those of them that have an attribute or a field of this name."""
    chosen = [
        (name, method)
        for verb, name, method in METHODS
        if verb in verbs and (having is None or hasattr(method, having) or having in {f.name for f in fields(method)})
    ]
    return pytest.mark.parametrize(("name", "method"), chosen, ids=[name for name, _ in chosen])


def on_records(*verbs: catalogue.Verb, having: str | None = None) -> Any:
    """The methods that work on records: all but those of the tables family."""
    return _outside(every(*verbs, having=having), inside=False)


def on_tables(*verbs: catalogue.Verb) -> Any:
    """The methods that work on tables with margins."""
    return _outside(every(*verbs), inside=True)


def _outside(mark: Any, inside: bool) -> Any:
    names, methods = mark.args
    chosen = [(name, method) for name, method in methods if (catalogue.family(method) == "tables") == inside]
    return pytest.mark.parametrize(names, chosen, ids=[name for name, _ in chosen])


def tabulated(records: eq.Records, name: str = "") -> Any:
    """A table with margins and cell keys, of counts unless the method is for amounts."""
    amounts = "salary" if name == "cell_key_amounts" else None
    return eq.table(eq.tables.record_keys(records, 5), ("sex", "area"), amounts, key="rkey")


def with_marks(table: Any) -> Any:
    """A table that marks its larger cells as sensitive."""
    return replace(table, more=table.more.with_columns(sensitive=pl.col("value") > 1_000))


def released(mask: Any, records: eq.Records, seed: int = 1) -> pl.DataFrame:
    return mask.apply(records, Draws(seed).child(0)).collect()


def scored(measure: Any, records: Any, original: Any = None) -> eq.Score:
    return measure.measure(records, records if original is None else original)


@pytest.fixture
def alike(people: pl.DataFrame, people_roles: eq.Roles) -> list[eq.Records]:
    """The same file twice, and once in another order."""
    return [
        eq.read(table, people_roles)
        for table in (people, people.clone(), people.sample(fraction=1, shuffle=True, seed=3))
    ]


# --- the shape of a method ----------------------------------------------------------------------------------------


def test_the_catalogue_is_not_empty() -> None:
    """These came first; whatever else is listed goes through the same suite."""
    assert {name for _, name, _ in METHODS} >= set(NAMED)


@every("rule", "mask", "measure")
def test_a_method_is_a_frozen_dataclass_listed_in_its_family(name: str, method: type) -> None:
    """House: one frozen dataclass in one file; one line in the family's `__init__` lists it."""
    family = catalogue.FAMILIES[catalogue.family(method)]
    assert method.__name__ in family.__all__
    assert list(family.__all__) == sorted(family.__all__)
    assert is_dataclass(method)
    made = example(name, method)
    for field in fields(method):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(made, field.name, None)
    assert hash(made) == hash(example(name, method))
    assert made == example(name, method)
    assert Path(inspect.getfile(method)).stem == name


@every("rule", "mask", "measure")
def test_the_docstring_has_a_source_and_an_honest_line(name: str, method: type) -> None:
    """House: the formula, the source, a doctest, and what it does not do."""
    text = " ".join((method.__doc__ or "").split())
    assert "Source:" in text
    assert ">>>" in text
    honest = "Does not guard against" if hasattr(method, "apply") else "Misleads when"
    assert honest in text
    assert len(catalogue.summary(method)) > 20


@every("rule", "mask", "measure")
def test_a_method_has_its_verb(name: str, method: type) -> None:
    made = example(name, method)
    assert isinstance(made, Rule | Mask | Measure)


@every("rule", "mask", "measure")
def test_bad_parameters_are_refused_before_data(name: str, method: type) -> None:
    """`__post_init__` refuses; unknown ones are refused with a hint at the file door."""
    for bad in BAD.get(name, []):
        known = {f.name for f in catalogue.form(method)}
        if set(bad) <= known:
            with pytest.raises(eq.ParameterError):
                method(**bad)
    verb = next(v for v, n, _ in METHODS if n == name)
    with pytest.raises(eq.ParameterError, match="has no parameter 'no_such'"):
        catalogue.build(name, verb, {"no_such": 1})
    if any(f.required for f in catalogue.form(method)):
        with pytest.raises(eq.ParameterError, match="needs"):
            catalogue.build(name, verb, {})


# --- through files and back ---------------------------------------------------------------------------------------


@every("rule", "mask", "measure")
def test_fields_survive_plain_data_and_toml(name: str, method: type) -> None:
    """A method is its fields: to plain data, to TOML, and back equal."""
    made = example(name, method)
    plain = tomllib.loads(tomli_w.dumps(catalogue.to_plain(made)))
    verb = next(v for v, n, _ in METHODS if n == name)
    assert plain.pop("use") == name
    assert catalogue.build(name, verb, plain) == made


@every("rule", "mask", "measure")
def test_names_are_found_in_every_spelling(name: str, method: type) -> None:
    verb = next(v for v, n, _ in METHODS if n == name)
    family = catalogue.family(method)
    for spelling in (name, name.replace("_", "-"), method.__name__, f"{family}.{method.__name__}"):
        assert catalogue.find(spelling, verb) is method


@every("measure")
def test_the_label_of_a_measure_reads_back(name: str, method: type) -> None:
    """Scores and limits are named by label: `uniques(k=3)` must mean what it says."""
    made = example(name, method)
    assert catalogue.parse(label(made), "measure") == made
    assert label(made).partition("(")[0] == name


@every("mask", "measure")
def test_fields_survive_a_policy_file(name: str, method: type, tmp_path: Path, people_roles: eq.Roles) -> None:
    """Masks as candidates, measures as limits: the job made from the file holds the same methods."""
    made = example(name, method)
    plain: dict[str, Any] = {
        "format": 1,
        "data": {"path": "x.csv"},
        "roles": people_roles.to_plain(),
        "limits": {"uniques": "< 0.02"},
    }
    if isinstance(made, Mask):
        plain["candidates"] = [{"masks": [catalogue.to_plain(made)]}]
        plain["waive"] = {"attack": "nothing is released"}
    else:
        plain["limits"] |= {label(made): "> 0"}
        plain["measures"] = [label(made)]
    path = tmp_path / "policy.toml"
    path.write_text(tomli_w.dumps(plain), encoding="utf-8")
    job = Job.load(path)
    if isinstance(made, Mask):
        assert job.recipes(None) == (eq.Recipe([made]),)  # type: ignore[arg-type]
    else:
        assert made in job.scales()
        assert len(job.scales()) == len(set(job.scales()))
    again = tmp_path / "again.toml"
    again.write_text(job.to_toml(), encoding="utf-8")
    assert Job.load(again).candidates == job.candidates
    assert Job.load(again).scales() == job.scales()


# --- what it does to data -----------------------------------------------------------------------------------------


@on_records("mask")
def test_a_mask_is_pure_and_keyed_by_the_record(name: str, method: type, alike: list[eq.Records], people: Any) -> None:
    """Input untouched; same seed, same answer; row order does not matter; the law is kept without the seed."""
    mask, (first, second, moved), before = example(name, method), alike, people.clone()
    one, two, three = (released(mask, records).sort("person") for records in (first, second, moved))
    assert_frame_equal(people, before)
    assert_frame_equal(first.collect(), before)
    assert_frame_equal(one, two)
    assert_frame_equal(one, three)
    assert one.height == people.height * (mask.fraction if name == "sample" else 1)
    done = mask.apply(first, Draws(123456789).child(0))
    assert len(done.history) == 1
    assert done.history[0].mask == name
    assert "123456789" not in repr(done.history)


@on_records("mask")
def test_a_mask_says_what_it_does(name: str, method: type, people_records: eq.Records) -> None:
    """The report tells people in words."""
    mask = example(name, method)
    assert eq.Recipe([mask]).words()
    assert mask.apply(people_records, Draws(1)).history[0].words


@on_records("mask", having="roll_up")
def test_coarsenings_agree_on_cells_and_records(name: str, method: type, people_records: eq.Records) -> None:
    """A mask that can `roll_up` gives on cells what it gives on records."""
    mask = example(name, method)
    assert isinstance(mask, Coarsening)
    cells = eq.count(people_records)
    on_records = eq.count(mask.apply(people_records, Draws(1)))
    assert_frame_equal(mask.roll_up(cells).table, on_records.table)
    assert cells.table.equals(eq.count(people_records).table)
    assert mask.apply(people_records, Draws(1)).coarsened


@on_records("measure")
def test_a_measure_is_pure_and_blind_to_order(name: str, method: type, alike: list[eq.Records], people: Any) -> None:
    """Same file, same score; another row order, same score; data untouched; the score carries the method's label."""
    measure, before = example(name, method), people.clone()
    scores = [scored(measure, records) for records in alike]
    assert_frame_equal(people, before)
    assert len({round(s.value, 12) for s in scores}) == 1
    assert {s.name for s in scores} == {label(measure)}
    assert math.isfinite(scores[0].value)
    assert scores[0].side == ("risk" if catalogue.family(method) in ("risk", "attacks") else "utility")


@on_records("measure", having="by")
def test_a_measure_of_cells_is_that_of_records(name: str, method: type, people_records: eq.Records) -> None:
    """What needs only cells gives the same on them; that is what the sweep rests on."""
    measure = example(name, method)
    assert isinstance(measure, OnCells)
    cells = eq.count(people_records, measure.by(people_records.roles))
    assert scored(measure, cells).value == pytest.approx(scored(measure, people_records).value)
    assert_frame_equal(scored(measure, cells).detail, scored(measure, people_records).detail)


@on_records("measure")
def test_a_score_shows_what_is_behind_it(name: str, method: type, people_records: eq.Records) -> None:
    """A row per cell, or per record where the measure is per record; the risk in a column `risk`, keyed by id
    in input order. A share of records is the mean of the records' risks.
    """
    score = scored(example(name, method), people_records)
    assert score.cells or score.records, "per-record or per-cell detail is available on every Score"
    if score.cells:
        assert score.detail.height > 0
    if score.side == "risk" and score.records:
        rows = score.by_record()
        assert rows.columns == ["person", "risk"]
        assert rows["risk"].is_between(0, 1).all()
        assert rows["person"].to_list() == people_records.collect("person")["person"].to_list()
        assert rows["risk"].min() <= score.value <= rows["risk"].max()
        if score.unit == "share of records":
            assert rows["risk"].mean() == pytest.approx(score.value)
            assert score.detail["risk"].is_between(0, 1).all()


@every("rule")
def test_a_rule_flags_every_cell_and_is_blind_to_order(name: str, method: type, alike: list[eq.Records]) -> None:
    rule = example(name, method)
    tables = [with_marks(eq.table(records, ("sex", "area"), "salary", request="salary")) for records in alike]
    flags = [rule.flag(table) for table in tables]
    assert all(f.dtype == pl.Boolean and f.null_count() == 0 for f in flags)
    assert len(flags[0]) == len(tables[0])
    assert all(flags[0].equals(f) for f in flags[1:])


# --- the corners of data ------------------------------------------------------------------------------------------


@every("rule", "mask", "measure")
def test_an_empty_file_never_reaches_a_method(name: str, method: type, people: Any, people_roles: eq.Roles) -> None:
    """Refused when read, in one sentence."""
    with pytest.raises(eq.DataError, match="no records"):
        eq.read(people.clear(), people_roles)


def put_through(made: Any, records: eq.Records) -> None:
    """Use a method on records: it works, or says in its own words why not."""
    said = ""
    try:
        if isinstance(made, Mask):
            eq.count(made.apply(records, Draws(1).child(0)))
        elif isinstance(made, Measure):
            score = made.measure(records, records)
            assert math.isfinite(score.value)
        else:
            assert len(made.flag(eq.count(records))) == len(eq.count(records))
    except eq.EquipoiseError as error:
        said = str(error)
    assert CANARY not in said


@every("rule", "mask", "measure")
def test_one_record(name: str, method: type, people: Any, people_roles: eq.Roles) -> None:
    put_through(example(name, method), eq.read(people.head(1), people_roles))


@every("rule", "mask", "measure")
@pytest.mark.parametrize("column", ["age", "sex", "ill"])
def test_a_column_of_nothing(name: str, method: type, people: Any, people_roles: eq.Roles, column: str) -> None:
    """All null, typed or not."""
    for dtype in (people.schema[column], pl.Null):
        table = people.with_columns(pl.lit(None, dtype=dtype).alias(column))
        put_through(example(name, method), eq.read(table, people_roles))


@every("rule", "mask", "measure")
def test_values_never_leave_in_words(name: str, method: type, people: Any, people_roles: eq.Roles) -> None:
    """A canary in every column of text, and text where numbers should be: in no repr and in no error."""
    made = example(name, method)
    text = people.with_columns(pl.lit(CANARY).alias(c) for c in ("sex", "area", "ill", "age"))
    put_through(made, eq.read(text, people_roles))
    fine: Any = eq.read(people.with_columns(ill=pl.lit(CANARY), sex=pl.lit(CANARY)), people_roles)
    fine = tabulated(fine, name) if catalogue.family(method) == "tables" else fine
    assert CANARY not in repr(made)
    if isinstance(made, Mask):
        done = made.apply(fine, Draws(1).child(0))
        assert CANARY not in repr(done) + repr(done.history)
    elif isinstance(made, Measure):
        score = made.measure(fine, fine)
        assert CANARY not in repr(score) + " ".join(score.notes)


@on_records("mask", having="column")
def test_a_column_that_is_not_there(name: str, method: type, people_records: eq.Records) -> None:
    """Misspelled columns are refused with a hint, on records."""
    mask = method(
        **(EXAMPLES.get(name, {f.name: filled(f) for f in catalogue.form(method) if f.required}) | {"column": "agee"})
    )
    with pytest.raises(eq.EquipoiseError, match="agee"):
        mask.apply(people_records, Draws(1))


# --- tables -------------------------------------------------------------------------------------------------------


@on_tables("mask", "measure")
def test_a_method_for_tables_says_so(name: str, method: type, people_records: eq.Records) -> None:
    """Records, and cells without margins, are refused in one sentence."""
    made = example(name, method)
    for data in (people_records, eq.count(people_records)):
        with pytest.raises(eq.DataError, match="table"):
            made.apply(data, Draws(1)) if isinstance(made, Mask) else made.measure(data, data)


@on_tables("mask")
def test_a_mask_of_tables_is_pure_and_keyed_by_the_cell(name: str, method: type, alike: list[eq.Records]) -> None:
    """Input untouched; same seed, same answer; row order does not matter; the law is kept without the seed."""
    mask, tables = example(name, method), [tabulated(records, name) for records in alike]
    before = tables[0].table.clone()
    found = [mask.apply(table, Draws(123456789).child(0)) for table in tables]
    assert_frame_equal(tables[0].table, before)
    for other in found[1:]:
        assert_frame_equal(found[0].table, other.table)
    assert {"published", "status"} <= set(found[0].table.columns)
    assert len(found[0].history) == 1
    assert found[0].history[0].mask == name
    assert found[0].history[0].words
    assert eq.Recipe([mask]).words()
    assert "123456789" not in repr(found[0].history)


@on_tables("measure")
def test_a_measure_of_tables_is_blind_to_order(name: str, method: type, alike: list[eq.Records]) -> None:
    measure = example(name, method)
    scores = [scored(measure, tabulated(records)) for records in alike]
    assert len({round(s.value, 12) for s in scores}) == 1
    assert {s.name for s in scores} == {label(measure)}
    assert math.isfinite(scores[0].value)
    assert scores[0].side in ("risk", "utility")
    assert scores[0].detail.height > 0


# --- engines ------------------------------------------------------------------------------------------------------


@on_records("mask", "measure")
def test_engines_agree(name: str, method: type, engine: Any, people: Any, people_roles: eq.Roles) -> None:
    """House: engines agree. Released records as a set, scores to 1e-9; an engine that cannot says so."""
    made = example(name, method)
    here, there = eq.read(people, people_roles), eq.read(engine.make(people), people_roles)
    draws = Draws(5).child(0)
    try:
        found = made.apply(there, draws) if isinstance(made, Mask) else scored(made, there)
    except eq.EngineError:
        if name in NAMED or engine.name not in ("duckdb", "pyspark"):
            raise
        pytest.skip(f"{name} says that it cannot work on {engine.name}.")
    if isinstance(made, Mask):
        expected = made.apply(here, draws).collect().sort("person")
        assert_frame_equal(engine.rows(found.to_native()).sort("person"), expected, check_dtypes=False)
    else:
        assert found.value == pytest.approx(scored(made, here).value, abs=1e-9)
