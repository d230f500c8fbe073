"""What the fit of one question gives, whichever models were fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from crowdtree.learning.label_models import FittedModel
    from crowdtree.learning.stating import CrowdMap

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

MAX_CELLS = 30_000_000
"""Numbers (worker, label, state) of a model; a larger one is left out."""


@dataclass(frozen=True, eq=False)
class LabelFit:
    """The fit of one question.

    `posterior` (item, class) is the average of the models, `blind` the same without any gold;
    `crowd_map` is what probabilities are stated by (None: as they are); `models` are the models
    that are averaged with the shares of the votes, `left_out` the names of those that did not
    converge; `row` is the row of each worker in their tables; `copies` are groups of workers whose
    answers count as one; `trace` is the sum of the models' bounds after each step.
    """

    posterior: FloatArray
    blind: FloatArray
    trace: tuple[float, ...] = ()
    crowd_map: CrowdMap | None = None
    models: tuple[FittedModel, ...] = ()
    left_out: tuple[str, ...] = ()
    row: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    copies: tuple[tuple[int, ...], ...] = ()

    @property
    def converged(self) -> bool:
        """Whether every model converged."""
        return not self.left_out
