"""The back end: that of transformers, with LLaVA-Med's own network and prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from overread.config import LlavaMedModel, is_folder
from overread.records import Trial
from overread.responses.backends import Answer
from overread.responses.backends.llava_med.network import LlavaMedNetwork
from overread.responses.backends.llava_med.prompts import LlavaMedPrompts
from overread.responses.backends.transformers import TransformersBackend
from overread.responses.backends.weights import folder_identity


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

    def answer(self, trials: Sequence[Trial], folder: Path) -> Iterator[Answer]:
        # The place of a picture in its square is drawn anew for each run.
        for run, some in groupby(trials, key=lambda trial: trial.run):
            self._prompts.run = run
            yield from super().answer(list(some), folder)

    @cached_property
    def network(self) -> LlavaMedNetwork:
        return LlavaMedNetwork(self.model, self.model_id)

    @cached_property
    def _prompts(self) -> LlavaMedPrompts:
        return LlavaMedPrompts(self.network)
