"""The command line has what the options of a verb declare: names, words, defaults."""

from dataclasses import fields

import pytest

from equipoise.doors.cli.command import command
from equipoise.doors.cli.declared_options import flag
from equipoise.intrusion.attack import AttackOptions
from equipoise.publishing.publish import PublishOptions
from equipoise.releases.balance import BalanceOptions, ProtectOptions
from equipoise.releases.tabulate import TableOptions

VERBS = {
    "attack": AttackOptions, "publish": PublishOptions, "balance": BalanceOptions, "protect": ProtectOptions,
    "table": TableOptions,
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_options_are_those_of_the_verb(verb: str) -> None:
    parameters = {one.name: one for one in command().commands[verb].params}
    declared = [part for part in fields(VERBS[verb]) if "cli" in part.metadata]
    assert declared
    for part in declared:
        assert parameters[flag(part)].help == part.metadata["help"]
        assert f"--{flag(part).replace('_', '-')}" in parameters[flag(part)].opts
