"""Demo files, made by us from public seeds."""

from equipoise.demo.kit import write
from equipoise.demo.survey import survey

__all__ = ["survey", "write"]
