"""A section that is one of all that are registered of its kind, told apart by its discriminator.

For the type checker it is what they have in common: nothing may ask for more of it than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from overread.config.datasets import DatasetSection
from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.config.models import ModelSection
from overread.config.views import ViewSection

if TYPE_CHECKING:
    Dataset = DatasetSection
    Model = ModelSection
    View = ViewSection
else:
    Dataset = SOURCES.union()
    Model = BACKENDS.union()
    View = VIEWS.union()


class ModelFile(BaseModel):
    """A model file's content, in a field so that a discriminated union can be validated and have a schema."""

    model: Model
