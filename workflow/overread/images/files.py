"""The files of one study: each is read when it is first needed, and never twice."""

from __future__ import annotations

from pathlib import Path

from overread.images.volume import BadFile, Volume, read_volume
from overread.records import Study

BRAIN, TUMOUR = "brain_segmentation", "tumor_segmentation"


class StudyFiles:
    """Volumes of a study by series name."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._read: dict[str, Volume] = {}

    def has(self, series: str) -> bool:
        return series in self._study.images

    def volume(self, series: str) -> Volume:
        """The series, checked. BadFile if the study has none, or none that can be used."""
        if series not in self._read:
            if not self.has(series):
                why = self._study.attributes.get(f"unusable {series}", "missing: the study has no such series")
                raise BadFile(f"{series}: {why}")
            self._read[series] = read_volume(Path(self._study.images[series]), may_be_empty=series == TUMOUR)
        return self._read[series]
