"""Export of a session as a Python script that repeats its steps and makes the same release."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pprint import pformat
from typing import Any

from equipoise.doors.web.session import Draft, Session
from equipoise.doors.web.work.publish_settings import publication_arguments

HEAD_CODE = '''"""{title}: every step that was taken in the workbench, and the release they led to.

Run it in the working folder: python {name}
"""

from pathlib import Path

import tomli_w

import equipoise as eq

policy = {{}}
'''
TABLE_CODE = """
# The protected table of the page Tables
table = {plain}
Path({policy!r}).write_text(tomli_w.dumps(table), encoding="utf-8")
print(eq.balance({policy!r}, out={out!r}).folder)
"""
PUBLISH_CODE = """
# The decision of the page Publish or suppress
records = eq.read(policy["data"]["path"], eq.Roles.from_plain(policy["roles"]))
records = eq.Recipe(({masks})).run(records)
asked = {asked}
print(eq.publish(records, **asked, out={out!r}).words)
"""
RELEASE_CODE = """
Path({policy!r}).write_text(tomli_w.dumps(policy), encoding="utf-8")
release = eq.balance({policy!r}, out={out!r})
print(release.folder)
print(eq.verify(release.folder).words)
"""


def script(session: Session, stem: str, policy: str, *, table: Any = None, publish: Any = None) -> str:
    """The script of the steps in effect; `policy` is the file it writes, `stem` the beginning of its folder names.

    `table` is the policy of the page Tables, `publish` the settings of the page Publish, where they are used.
    """
    title = str(session.policy.get("title", "A release"))
    parts = [HEAD_CODE.format(title=_flat(title), name=f"{stem}.py"), "\n".join(_steps(session)), "\n"]
    if session.policy.get("limits"):
        parts.append(RELEASE_CODE.format(policy=policy, out=f"{stem}-release"))
    if table:
        plain = pformat(table, width=100, sort_dicts=False)
        parts.append(TABLE_CODE.format(plain=plain, policy=f"{stem}-table-policy.toml", out=f"{stem}-table"))
    if publish:
        parts.append(_decision_code(publish, f"{stem}-decision"))
    return "".join(parts)


def _decision_code(settings: Mapping[str, Any], out: str) -> str:
    """The decision as code: the loss by its name, the levels as recodes."""
    arguments = {**publication_arguments(settings), "risk_at_most": settings["risk"]}
    lines = "".join(f"    {name!r}: {_code(value)},\n" for name, value in arguments.items() if value is not None)
    masks = "".join(f"eq.masks.Recode({column!r}, {level!r}), " for column, level in settings["levels"].items())
    return PUBLISH_CODE.format(masks=masks, asked=f"{{\n{lines}}}", out=out)


def _code(value: Any) -> str:
    return f"eq.losses.{value!r}" if is_dataclass(value) else repr(value)


def _steps(session: Session) -> Iterator[str]:
    before: Mapping[str, Any] = {}
    for number, step in enumerate(session.steps[: session.at], start=1):
        yield f"\n# {number}. {_flat(step.words)}"
        yield from _changes(before, step.draft)
        before = step.draft["policy"]


def _changes(before: Mapping[str, Any], draft: Draft) -> Iterator[str]:
    """Code for what a step changed in the policy, section by section."""
    after: Mapping[str, Any] = draft["policy"]
    for section in (name for name in before if name not in after):
        yield f"del policy[{section!r}]"
    for section, value in after.items():
        if before.get(section) != value:
            yield f"policy[{section!r}] = {pformat(value, width=100, sort_dicts=False)}"


def _flat(text: str) -> str:
    """Text that stays inside a comment or a docstring."""
    return "".join(c if c.isprintable() and c not in '"\\' else " " for c in text)
