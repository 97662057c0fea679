"""Change records."""

from equipoise.masks.bottom_code import BottomCode
from equipoise.masks.pram import Pram
from equipoise.masks.pram_matrix import PramMatrix
from equipoise.masks.recode import Recode
from equipoise.masks.top_code import TopCode

__all__ = ["BottomCode", "Pram", "PramMatrix", "Recode", "TopCode"]
