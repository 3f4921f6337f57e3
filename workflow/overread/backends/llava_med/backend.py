"""The back end: that of transformers, with LLaVA-Med's own network and prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from overread.backends.base import Answer
from overread.backends.llava_med.network import LlavaMedNetwork
from overread.backends.llava_med.prompts import LlavaMedPrompts
from overread.backends.llava_med.section import LlavaMedModel
from overread.backends.transformers.backend import TransformersBackend
from overread.backends.weights import folder_identity
from overread.config import is_folder
from overread.core.records import Trial


class LlavaMedBackend(TransformersBackend):
    """LLaVA-Med's original checkpoint."""

    version = 1
    hides = False
    model: LlavaMedModel  # type: ignore[assignment]

    def identity(self) -> dict[str, Any]:
        """The CLIP that the image part is of, too, where the model file names a folder with it."""
        identity = super().identity()
        tower = self.model.vision_tower
        if tower is not None and is_folder(tower):
            identity["vision_tower"] = folder_identity(Path(tower).expanduser(), self.model_id)
        return identity

    def _come(self, trials: Sequence[Trial], folder: Path) -> Iterator[tuple[int, Answer]]:
        # The place of a picture in its square is drawn anew for each run.
        before = 0
        for run, group in groupby(trials, key=lambda trial: trial.run):
            some = list(group)
            self._prompts.run = run
            for place, answer in super()._come(some, folder):
                yield before + place, answer
            before += len(some)

    @cached_property
    def network(self) -> LlavaMedNetwork:
        return LlavaMedNetwork(self.model, self.model_id)

    @cached_property
    def _prompts(self) -> LlavaMedPrompts:
        return LlavaMedPrompts(self.network)
