"""The JSON schema: valid for every policy that loads, and says no to what does not."""

import copy
import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from equipoise.policies.json_schema import schema, schema_text
from equipoise.policies.policy_file import INTERNAL_FIELDS, Job
from equipoise.policies.presets import presets
from equipoise.recipe.catalogue import methods

DEMOS = sorted((Path(__file__).parents[2] / "src/equipoise/demo").glob("*.toml"))
KINDS = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
}  # fmt: skip


def faults(value: Any, rule: Any, root: dict[str, Any], at: str = "") -> list[str]:
    """What a value breaks: the part of JSON schema that ours uses, written out."""
    if rule is True:
        return []
    if "$ref" in rule:
        return faults(value, root["$defs"][rule["$ref"].rpartition("/")[2]], root, at)
    found = []
    if "type" in rule:
        kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        fits = any(
            isinstance(value, KINDS[k]) and not (isinstance(value, bool) and k in ("integer", "number")) for k in kinds
        )
        if not fits:
            return [f"{at}: not {rule['type']}"]
    if "const" in rule and value != rule["const"]:
        found.append(f"{at}: not {rule['const']}")
    if "enum" in rule and value not in rule["enum"]:
        found.append(f"{at}: none of the choices")
    if "pattern" in rule and isinstance(value, str) and not re.search(rule["pattern"], value):
        found.append(f"{at}: not like {rule['pattern']}")
    if "anyOf" in rule and not any(not faults(value, one, root, at) for one in rule["anyOf"]):
        found.append(f"{at}: fits none of {len(rule['anyOf'])}")
    if isinstance(value, list):
        found += [f"{at}: too few"] if len(value) < rule.get("minItems", 0) else []
        for i, item in enumerate(value):
            found += faults(item, rule.get("items", {}), root, f"{at}[{i}]")
    if isinstance(value, dict):
        found += [f"{at}: lacks {name}" for name in rule.get("required", []) if name not in value]
        for key, item in value.items():
            found += [f"{at}.{key}: bad name" for f in [faults(key, rule.get("propertyNames", {}), root, at)] if f]
            inner = rule.get("properties", {}).get(key, rule.get("additionalProperties", {}))
            found += [f"{at}.{key}: not known"] if inner is False else faults(item, inner or {}, root, f"{at}.{key}")
    return found


@pytest.fixture(scope="module")
def rules() -> dict[str, Any]:
    return schema()


@pytest.mark.parametrize("path", DEMOS, ids=lambda p: p.stem)
def test_every_demo_policy_is_valid(path: Path, rules: dict[str, Any]) -> None:
    assert faults(tomllib.loads(path.read_text(encoding="utf-8")), rules, rules) == []


@pytest.mark.parametrize("name", list(presets()))
def test_every_preset_is_valid_with_data(name: str, rules: dict[str, Any]) -> None:
    """A number that a preset asks for is filled in, and given under [slots]."""
    text = json.dumps(dict(presets()[name].plain)).replace('"@oldest"', "1936")
    slots = {"slots": {"oldest": 1936}} if "1936" in text else {}
    plain = {**json.loads(text), **slots, "data": {"path": "x"}, "extends": name}
    assert faults(plain, rules, rules) == []


def test_the_policy_of_the_guide_is_valid(rules: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs/guides/policy.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(# policy.toml.*?)```", text, re.DOTALL)
    assert block
    assert faults(tomllib.loads(block[1]), rules, rules) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"lmits": {}}, ".lmits"),
        ({"format": 2}, ".format"),
        ({"data": {}}, ".data"),
        ({"draws": "many"}, ".draws"),
        ({"extends": "emma"}, ".extends"),
        ({"limits": {"uniques": "about 1"}}, ".limits.uniques"),
        ({"limits": {"uniquess": "< 1"}}, ".limits.uniquess"),
        ({"limits": {"uniques": {"limit": "< 1", "because": "x"}}}, ".limits.uniques"),
        ({"candidates": []}, ".candidates"),
        ({"candidates": [{"masks": [{"use": "recod"}]}]}, ".candidates[0].masks[0]"),
        ({"candidates": [{"masks": [{"use": "recode", "column": "age"}]}]}, ".candidates[0].masks[0]"),
        ({"candidates": [{"masks": [{"use": "top_code", "column": "a", "at": "x"}]}]}, ".candidates[0].masks[0]"),
        ({"choose": {"prefer": "speed"}}, ".choose.prefer"),
        ({"roles": {"kyes": ["a"]}}, ".roles.kyes"),
        ({"roles": {"hierarchies": {"age": {"kind": "bands"}}}}, ".roles.hierarchies.age"),
        ({"search": {"processes": "all"}}, ".search.processes"),
        ({"scenarios": [{"name": "x"}]}, ".scenarios[0]"),
    ],
)
def test_what_does_not_load_is_not_valid(change: dict[str, Any], where: str, rules: dict[str, Any]) -> None:
    plain = {"data": {"path": "x"}, "roles": {"keys": ["a"]}, "limits": {"uniques": "< 2%"}}
    assert faults(plain, rules, rules) == []
    found = faults(copy.deepcopy(plain) | change, rules, rules)
    assert any(text.startswith(where) for text in found), found


@pytest.mark.parametrize(
    "masks",
    [
        [{"use": "top-code", "column": "age", "at": [80, 90]}],
        [{"use": "noise", "columns": "pay", "scale": {"from": 0.1, "to": 0.5, "steps": 3}}],
        [{"use": "suppress_records", "rule": ["min-count:3", "min-count:5"]}],
        [{"use": "swap", "keys": ["a"], "attribute": "b", "protected": ["c"], "rate": "10%"}],
    ],
)
def test_grids_are_valid(masks: list[dict[str, Any]], rules: dict[str, Any]) -> None:
    plain = {"data": {"path": "x"}, "candidates": [{"masks": masks}]}
    assert faults(plain, rules, rules) == []


def test_it_has_every_key_and_every_method(rules: dict[str, Any]) -> None:
    assert set(rules["properties"]) == {f.name for f in fields(Job) if f.name not in INTERNAL_FIELDS}
    masks = [model for model in rules["$defs"].values() if "use" in model.get("properties", {})]
    assert {model["title"] for model in masks} == set(methods("mask"))
    assert json.loads(schema_text()) == rules
