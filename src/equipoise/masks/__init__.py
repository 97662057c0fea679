"""Change records."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.masks.bottom_code import BottomCode
    from equipoise.masks.drop_direct_identifiers import DropDirectIdentifiers
    from equipoise.masks.local_recode import LocalRecode
    from equipoise.masks.local_suppress import LocalSuppress
    from equipoise.masks.matrix import Matrix
    from equipoise.masks.microaggregate import Microaggregate
    from equipoise.masks.noise import Noise
    from equipoise.masks.pram import Pram
    from equipoise.masks.pram_matrix import PramMatrix
    from equipoise.masks.rank_swap import RankSwap
    from equipoise.masks.recode import Recode
    from equipoise.masks.renumber import Renumber
    from equipoise.masks.sample import Sample
    from equipoise.masks.shuffle import Shuffle
    from equipoise.masks.shuffle_order import ShuffleOrder
    from equipoise.masks.suppress_records import SuppressRecords
    from equipoise.masks.swap import Swap
    from equipoise.masks.synthesize import Synthesize
    from equipoise.masks.top_code import TopCode

__all__ = [
    "BottomCode",
    "DropDirectIdentifiers",
    "LocalRecode",
    "LocalSuppress",
    "Matrix",
    "Microaggregate",
    "Noise",
    "Pram",
    "PramMatrix",
    "RankSwap",
    "Recode",
    "Renumber",
    "Sample",
    "Shuffle",
    "ShuffleOrder",
    "SuppressRecords",
    "Swap",
    "Synthesize",
    "TopCode",
]

export_lazily(__name__)
