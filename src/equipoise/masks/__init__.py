"""Change records."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.masks.bottom_code import BottomCode as BottomCode
    from equipoise.masks.coarsen_weights import CoarsenWeights as CoarsenWeights
    from equipoise.masks.drop_direct_identifiers import DropDirectIdentifiers as DropDirectIdentifiers
    from equipoise.masks.local_recode import LocalRecode as LocalRecode
    from equipoise.masks.local_suppress import LocalSuppress as LocalSuppress
    from equipoise.masks.local_swap import LocalSwap as LocalSwap
    from equipoise.masks.matrix import Matrix as Matrix
    from equipoise.masks.microaggregate import Microaggregate as Microaggregate
    from equipoise.masks.noise import Noise as Noise
    from equipoise.masks.pram import Pram as Pram
    from equipoise.masks.pram_matrix import PramMatrix as PramMatrix
    from equipoise.masks.rank_swap import RankSwap as RankSwap
    from equipoise.masks.recode import Recode as Recode
    from equipoise.masks.renumber import Renumber as Renumber
    from equipoise.masks.sample import Sample as Sample
    from equipoise.masks.shuffle import Shuffle as Shuffle
    from equipoise.masks.shuffle_order import ShuffleOrder as ShuffleOrder
    from equipoise.masks.suppress_records import SuppressRecords as SuppressRecords
    from equipoise.masks.swap import Swap as Swap
    from equipoise.masks.synthesize import Synthesize as Synthesize
    from equipoise.masks.top_code import TopCode as TopCode

export_lazily(__name__)
