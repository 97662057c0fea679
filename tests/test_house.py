"""The architecture keeps its limits: `python tools/house.py` prints them."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


def test_every_limit_holds(house: ModuleType) -> None:
    assert house.problems(house.read_house()) == []


def test_a_broken_limit_is_seen(house: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class name twice, a filler, an engine of another room, and a module beside nobody who uses it."""
    files = {
        "__init__": "",
        "masks/__init__": '__all__ = ["Swap"]\n',
        "masks/_engine": "class Swap:\n    pass\n",
        "masks/swap": "class Swap:\n    def apply(self, found):\n        return found\n",
        "masks/shuffle": "from equipoise.masks.swap import Swap\n",
        "search/__init__": "",
        "search/only": "x = 1\n",
        "search/sweep": "from equipoise.masks._engine import Swap\n",
        "doors/__init__": "",
        "doors/page": "from equipoise.search.only import x\n",
    }
    for name, text in files.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(house, "SOURCE", tmp_path)
    monkeypatch.setattr(house, "MAX_FILLER_FUNCTIONS", 1)
    monkeypatch.setattr(house, "MAX_CHAIN", 2)
    assert house.problems(house.read_house(tmp_path)) == [
        "Class Swap stands in masks._engine, masks.swap.",
        "1 functions use a filler word.",
        "masks._engine is used by search.sweep alone, in another room.",
        "search.only is used by doors.page alone, in another room.",
        "masks.shuffle -> masks.swap: not allowed.",
        "search.sweep -> masks._engine: not allowed.",
    ]
