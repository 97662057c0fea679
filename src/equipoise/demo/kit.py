"""A demo folder: the data, and a policy that balances it."""

from importlib.resources import files
from pathlib import Path

from equipoise.core.errors import DataError
from equipoise.demo.survey import survey


def write(folder: str | Path) -> Path:
    """Write the housing survey and its policy into a folder; give the policy's path."""
    place = Path(folder)
    policy, data = place / "survey.toml", place / "survey.parquet"
    if policy.exists() or data.exists():
        raise DataError(f"{str(place)!r} holds a demo already: name another folder.")
    place.mkdir(parents=True, exist_ok=True)
    survey().write_parquet(data)
    policy.write_text(files("equipoise.demo").joinpath("survey.toml").read_text(encoding="utf-8"), encoding="utf-8")
    return policy
