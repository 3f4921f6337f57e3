"""What the models saw: of each dataset that is not restricted, the views of its first study on one small sheet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from overread.core.records import read_pictures
from overread.images.sheet import FIGURE, sheet
from overread.reporting.examples import Shown, embedded


@dataclass(frozen=True)
class Seen:
    """A dataset's sheet, of which study it is, and the names of the views on it."""

    dataset: str
    study: str
    views: tuple[str, ...]
    figure: Shown


def seen(results: Path, dataset: str) -> Seen | None:
    """The sheet of the first study by its id; None where no view was shown.

    raises  BadInput for a picture that is missing, damaged or not the one that was rendered
    """
    # Edited pictures are many and alike: `overread images sheet` and the viewer show them.
    pictures = [one for one in read_pictures(results / dataset / "images.parquet") if one.edit is None]
    if not pictures:
        return None
    study = min(picture.study for picture in pictures)
    own = [picture for picture in pictures if picture.study == study]
    views = tuple(sorted({picture.view for picture in own}))
    alt = f"Contact sheet of study {study} of {dataset}: the views {', '.join(views)}, each picture under its name."
    return Seen(dataset, study, views, embedded(sheet(results / dataset, own, None, FIGURE), alt))
