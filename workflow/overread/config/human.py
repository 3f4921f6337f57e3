"""Reader studies whose ratings stand beside the models: one section a subset of the questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from overread.config.base import Distinct, FilePath, Name, Section


class HumanSubset(Section):
    """People's answers to a part of a dataset's questions. Its name is the reader study's, which every rating holds."""

    dataset: Name
    ratings: Annotated[tuple[FilePath, ...], Distinct] = Field(
        default=(), description="ratings.csv of the reader study; none while the readers still read"
    )
