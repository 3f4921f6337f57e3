"""The back end: that of transformers, with Med3DVLM's own network, volumes and prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from overread.backends.base import Answer
from overread.backends.med3dvlm.network import Med3dvlmNetwork
from overread.backends.med3dvlm.prompts import LETTERS, Med3dvlmPrompts
from overread.backends.med3dvlm.section import Med3dvlmModel
from overread.backends.transformers.backend import TransformersBackend, _NoPicture
from overread.backends.transformers.prompts import Shown
from overread.backends.weights import versions
from overread.core.errors import BadInput
from overread.core.records import Trial


class Med3dvlmBackend(TransformersBackend):
    """Med3DVLM, and checkpoints whose repository's code is like its."""

    version = 1
    hides = False
    pictures_at_once = 8  # a volume made ready is 34 MB
    model: Med3dvlmModel  # type: ignore[assignment]

    def identity(self) -> dict[str, Any]:
        """What reads and resizes the volume, too."""
        identity = super().identity()
        identity["versions"] |= versions("nibabel", "scipy")
        return identity

    def _come(self, trials: Sequence[Trial], folder: Path) -> Iterator[tuple[int, Answer]]:
        for place, answer in super()._come(trials, folder):
            lettered = trials[place].readout == "choice" and answer.chosen is not None
            yield place, replace(answer, text=LETTERS[answer.chosen or 0]) if lettered else answer

    @cached_property
    def network(self) -> Med3dvlmNetwork:
        return Med3dvlmNetwork(self.model, self.model_id)

    @cached_property
    def _prompts(self) -> Med3dvlmPrompts:
        return Med3dvlmPrompts(self.network)

    def _check(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            place = f"model {self.model_id!r}: setting {trial.setting}"
            files = [str(block.image) for block in trial.images]
            if len(files) != 1 or not files[0].endswith(".nii.gz"):
                raise BadInput(f"{place}: it takes one volume; this trial shows {', '.join(files) or 'none'}")
            if trial.blocks[0].role != "image":
                raise BadInput(f"{place}: its prompts begin with the volume; order text-first can't be shown to it")
            if len(trial.options) > len(LETTERS):
                raise BadInput(f"{place}: {len(trial.options)} options are more than there are letters")
        super()._check(trials)

    def _picture(self, block: Any, folder: Path, shown: dict[str, Shown]) -> Shown:
        from overread.images.model_arrays import med3dvlm_array

        pixels = str(block.pixels)
        if pixels not in shown:
            try:
                array = med3dvlm_array(folder / str(block.image), pixels)
            except BadInput as error:
                raise _NoPicture(str(error)) from None
            shown[pixels] = self._prompts.volume(array, pixels)
        return shown[pixels]
