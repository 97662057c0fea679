"""Validators of plain data against a type, each made once: making one costs far more than using it."""

from dataclasses import is_dataclass
from functools import cache
from typing import Any


@cache
def type_adapter(kind: Any, arbitrary: bool = False) -> Any:
    """The pydantic validator of a type; with `arbitrary`, classes that pydantic does not know are taken as they are."""
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(arbitrary_types_allowed=True) if arbitrary and not is_dataclass(kind) else None
    return TypeAdapter(kind, config=config)
