"""Options of a verb declared once: they are its parameters in Python, with their errors and their signature."""

import inspect
from dataclasses import FrozenInstanceError, fields

import polars as pl
import pytest

import equipoise as eq
from equipoise.intrusion.attack import AttackOptions
from equipoise.publishing.publish import PublishOptions
from equipoise.releases.balance import BalanceOptions, ProtectOptions
from equipoise.releases.tabulate import TableOptions

VERBS = [
    (eq.attack, AttackOptions), (eq.publish, PublishOptions), (eq.balance, BalanceOptions),
    (eq.protect, ProtectOptions), (eq.tabulate, TableOptions),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "options"), VERBS, ids=lambda one: one.__name__)
def test_every_option_is_a_parameter_with_its_default_and_its_words(verb, options):
    shape = inspect.signature(verb).parameters
    for part in fields(options):
        assert shape[part.name].default == part.default, part.name
        assert part.metadata["help"].endswith("."), part.name
    assert "options" not in shape


@pytest.mark.parametrize(("verb", "options"), VERBS, ids=lambda one: one.__name__)
def test_a_name_that_is_none_is_refused_with_the_nearest(verb, options):
    name = fields(options)[0].name
    with pytest.raises(eq.ParameterError, match=f"{verb.__name__} has no parameter '{name}x'. Did you mean '{name}'?"):
        verb("nothing", **{f"{name}x": 1})


def test_what_is_said_is_checked_before_any_data_is_read():
    with pytest.raises(eq.ParameterError, match="Give one of risk_at_most"):
        PublishOptions()
    with pytest.raises(eq.ParameterError, match="Say which cells are sensitive"):
        TableOptions(by="k")
    options = TableOptions(by="k", rule="min-count:3")
    assert (options.by, options.method) == (("k",), eq.tables.Suppress(eq.rules.MinCount(3)))
    with pytest.raises(FrozenInstanceError):
        options.by = ()


def test_the_first_two_may_stand_in_their_place():
    records = eq.read(pl.DataFrame({"k": [*"aaaabbbb"], "x": range(8)}), eq.Roles())
    one, two = (
        eq.tabulate(records, "k", "x", rule="min-count:2"),
        eq.tabulate(records, by="k", value="x", rule="min-count:2"),
    )
    assert one.public.equals(two.public)
    with pytest.raises(TypeError, match="too many positional"):
        eq.tabulate(records, "k", "x", "min-count:2")
