"""The catalogue: methods by name, from one line, and from plain data."""

from typing import Any

import pytest

import equipoise as eq
from equipoise.masks import Recode, TopCode
from equipoise.methods.method import label
from equipoise.recipe.catalogue import build, find, form, parse, summary, typed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniques", eq.risk.Uniques()),
        ("uniques(k=3)", eq.risk.Uniques(3)),
        ("uniques(3)", eq.risk.Uniques(3)),
        ("uniques:3", eq.risk.Uniques(3)),
        ("unsafe:diversity:ill,2", eq.risk.Unsafe(eq.rules.Diversity("ill", 2))),
        (
            "unsafe:rule=min-count:n=3 | diversity:ill,2",
            eq.risk.Unsafe(eq.rules.MinCount(3) | eq.rules.Diversity("ill", 2)),
        ),
        ("uniques:k=3", eq.risk.Uniques(3)),
        ("Uniques", eq.risk.Uniques()),
        ("risk.Uniques", eq.risk.Uniques()),
        ("population-uniques:5%", eq.risk.PopulationUniques(0.05)),
        ("population_uniques(fraction=0.05)", eq.risk.PopulationUniques(0.05)),
        ("attribute_disclosure(sensitive='ill', range=50)", eq.risk.AttributeDisclosure("ill", range=50)),
        ("attribute-disclosure:ill,share=0.8", eq.risk.AttributeDisclosure("ill", 0.8)),
        ("attribute-disclosure(sensitive='a-b')", eq.risk.AttributeDisclosure("a-b")),
    ],
)
def test_measures_from_one_line(text: str, expected: Any) -> None:
    """House: `name:v1,v2` sets fields in order; kebab-case, snake-case or class name."""
    assert parse(text, "measure") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recode:age,5", Recode("age", "5")),
        ("recode:age,level=5", Recode("age", "5")),
        ("recode(column='age', level=1)", Recode("age", 1)),
        ("top-code:salary,1e5,median", TopCode("salary", 1e5, "median")),
        ("top_code: salary , at=100000", TopCode("salary", 1e5)),
    ],
)
def test_masks_from_one_line(text: str, expected: Any) -> None:
    assert parse(text, "mask") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("uniqes", "Did you mean 'uniques'"),
        ("uniqes(k=3)", "Did you mean 'uniques'"),
        ("population-uniqes(fraction=0.1)", "Did you mean 'population_uniques'"),
        ("uniqes:3", "Did you mean 'uniques'"),
        ("uniques(kk=3)", "no parameter 'kk'. Did you mean 'k'"),
        ("uniques:kk=3", "no parameter 'kk'. Did you mean 'k'"),
        ("uniques(k=3", "No measure"),
        ("uniques(k=)", "Cannot read"),
        ("uniques(__import__('os'))", "Cannot read"),
        ("uniques(1, 2)", "Cannot read"),
        ("uniques:1,2", "takes at most 1"),
        ("uniques:l=2", "no parameter 'l'"),
        ("uniques:two", "uniques: k"),
        ("uniques:0", "at least 1"),
        ("population_uniques", "needs fraction"),
        ("population_uniques:5", "Write 5 % as 0.05"),
        ("recode:age,1", "No measure"),
    ],
)
def test_lines_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(eq.ParameterError, match=said):
        parse(text, "measure")


@pytest.mark.parametrize("use", ["suppress_records", "local_suppress"])
def test_a_misspelt_rule_inside_a_mask_is_told(use: str) -> None:
    with pytest.raises(eq.ParameterError, match="Did you mean 'min_count'"):
        build(use, "mask", {"rule": "min_cout(n=3)"})


def test_forms_are_made_from_fields() -> None:
    """Doors show these; nothing else has to be edited."""
    fields = {f.name: f for f in form(TopCode)}
    assert list(fields) == ["column", "at", "replace_by"]
    assert [f.required for f in fields.values()] == [True, True, False]
    assert fields["replace_by"].kind == "'mean' | 'median' | 'threshold'"
    assert fields["replace_by"].default == "mean"
    assert summary(TopCode).startswith("Replace the values of `column` that are above `at`")


@pytest.mark.parametrize(("value", "kind", "expected"), [("10%", float, 0.1), ("3", int, 3), (2, float, 2.0)])
def test_plain_values_take_the_type_of_the_field(value: Any, kind: Any, expected: Any) -> None:
    assert typed(value, kind, "x") == expected


def test_types_are_checked() -> None:
    with pytest.raises(eq.ParameterError, match="top_code: replace_by"):
        build("top_code", "mask", {"column": "a", "at": 1, "replace_by": "mode"})
    with pytest.raises(eq.ParameterError, match="uniques: k"):
        build("uniques", "measure", {"k": 2.5})


def test_a_mask_is_no_measure() -> None:
    with pytest.raises(eq.ParameterError, match="No measure 'recode'"):
        find("recode", "measure")


def test_rules_are_joined_in_text_as_in_python() -> None:
    rules = eq.rules
    made = parse("p-percent:10%,2 | min-count:5 & zero", "rule")
    assert made == rules.PPercent(0.1, 2) | rules.MinCount(5) & rules.Zero()
    assert label(made) == "p_percent(coalition=2) | min_count(n=5) & zero"
    assert parse(label(made), "rule") == made
