"""What the Balance page shows of the settings: limits, candidates in words, scenarios, and how to search."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from equipoise.doors.web.app_state import Office
from equipoise.doors.web.work import balance as work
from equipoise.doors.web.work import method_forms, revealing_columns
from equipoise.doors.web.work.limits import known_scenarios, slots, with_preset
from equipoise.ground.errors import EquipoiseError
from equipoise.policies.checks import WAIVABLE_ATTACK
from equipoise.policies.presets import presets, slots_of
from equipoise.policies.scoped_measures import scale
from equipoise.presentation.numbers import title
from equipoise.recipe.catalogue import family, find

Plain = dict[str, Any]
Steps = Literal["masks", "then", "always"]


def shown_settings(office: Office) -> Plain:
    """Facts about all current settings, with every problem of the policy."""
    policy, folder = office.need_file(), office.workspace.folder
    plain = with_preset(policy, folder)
    preset_name = policy.get("extends")
    return {
        "checked": office.ask(work.check),
        "file": office.ask(work.columns),
        "slots": [slot.to_plain(place) for place, slot in enumerate(slots(policy, folder))],
        "measured": [{"name": name, "title": title(str(name))} for name in policy.get("measures", ())],
        "candidates": candidate_rows([*candidates_of(office), *step_lists(office, "always")]),
        "others": office.ask(revealing_columns.declarations),
        "masks": method_forms.methods_by_heading("mask"),
        "measures": method_forms.methods_by_heading("measure"),
        "presets": [preset for preset in presets().values() if preset.about == "records"],
        "preset": presets().get(str(preset_name)) if preset_name else None,
        "preset_slots": slots_of(presets()[str(preset_name)]) if preset_name in presets() else (),
        "scenarios": [{"reason": "", **one} for one in plain.get("scenarios", ())],
        "settings": _settings(plain),
        "uses": _uses(plain, office),
        "bare": not plain.get("limits"),
    }


def _settings(plain: Mapping[str, Any]) -> Plain:
    choose, how = plain.get("choose", {}), plain.get("search", {})
    return {
        "prefer": choose.get("prefer", "utility"),
        "weights": _weights(plain),
        "search": how.get("search", "grid"),
        "budget": how.get("budget", ""),
        "seconds": how.get("seconds", ""),
        "draws": plain.get("draws", 1),
        "waive": plain.get("waive", {}).get(WAIVABLE_ATTACK, ""),
    }


def _weights(plain: Mapping[str, Any]) -> Mapping[str, float]:
    return plain.get("choose", {}).get("weights", {})


def _uses(plain: Mapping[str, Any], office: Office) -> list[Plain]:
    """The utility measures, which may be weighted."""
    rows = []
    for name in dict.fromkeys([*plain.get("limits", {}), *plain.get("measures", ()), *_weights(plain)]):
        try:
            measure = scale(str(name), known_scenarios(plain, office.workspace.folder))
        except EquipoiseError:
            continue
        if family(type(getattr(measure, "inner", measure))) == "utility":
            rows.append({"name": name, "title": title(str(name))})
    return rows


def candidates_of(office: Office) -> list[Plain]:
    """The candidates, those of the preset included; every combination of levels where there are none."""
    candidates = with_preset(office.need_file(), office.workspace.folder).get("candidates")
    return [{"coarsenings": True}] if candidates is None else [dict(one) for one in candidates]


def step_lists(office: Office, steps: Steps) -> list[Plain]:
    """What holds lists of steps: the candidates, or the masks that are always used, in one place."""
    if steps != "always":
        return candidates_of(office)
    return [{"always": [*with_preset(office.need_file(), office.workspace.folder).get("always", ())]}]


def candidate_rows(candidates: Sequence[Mapping[str, Any]]) -> list[Plain]:
    """Candidates in words, for the list on the page."""
    return [
        {
            "coarsenings": bool(one.get("coarsenings")),
            "short": _short(one.get("masks", ())),
            "masks": [_mask_words(mask) for mask in one.get("masks", ())],
            "then": [_mask_words(mask) for mask in one.get("then", ())],
            "always": [_mask_words(mask) for mask in one.get("always", ())],
        }
        for one in candidates
    ]


def _short(masks: Sequence[Mapping[str, Any]]) -> str:
    """A recipe in a line: what is recoded and how far, then the other methods."""
    recoded = [f"{one.get('column')} {one.get('level')}" for one in masks if one.get("use") == "recode"]
    others = [_method_in_short(one) for one in masks if one.get("use") != "recode"]
    return "; ".join([*([", ".join(recoded)] if recoded else []), *others])


def _method_in_short(mask: Mapping[str, Any]) -> str:
    """A method by its name and what is said of it beside rule and columns, which tells recipes apart."""
    parameters = [name for name in mask if name not in ("use", "rule", "column", "columns")]
    return str(mask.get("use", "")).replace("_", " ") + (f" with {', '.join(parameters)}" if parameters else "")


def _mask_words(mask: Mapping[str, Any]) -> Plain:
    """A mask in words: its name, and its parameters as a user would type them."""
    try:
        form = method_forms.form_of(find(str(mask.get("use", "")), "mask"), mask)
    except EquipoiseError:
        return {"use": str(mask.get("use", "")), "given": [], "about": ""}
    texts = {field["name"]: ", ".join(field["picked"]) or field["value"] for field in form["fields"]}
    texts |= {name: _values_text(value) for name, value in mask.items() if isinstance(value, list) and name in texts}
    parameters = [(name.replace("_", " "), texts[name]) for name in texts if name in mask]
    return {"use": form["words"], "given": parameters, "about": form["about"]}


def _values_text(values: Sequence[Any]) -> str:
    """The text of values, or of several alternative lists of them."""
    return ", ".join(" + ".join(map(str, one)) if isinstance(one, list) else str(one) for one in values)
