"""Demo files: invented data, generated from public seeds."""

from equipoise.demo.business import business
from equipoise.demo.folder import KITS as KITS
from equipoise.demo.folder import Kit as Kit
from equipoise.demo.folder import find_kit as find_kit
from equipoise.demo.folder import write
from equipoise.demo.hospital import hospital
from equipoise.demo.survey import survey

__all__ = ["business", "hospital", "survey", "write"]
