"""A section that is one of all that are registered of its kind, told apart by its discriminator.

For the type checker it is what they have in common: nothing may ask for more of it than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from overread.config.datasets import DatasetSection
from overread.config.kinds import SOURCES, VIEWS
from overread.config.views import ViewSection

if TYPE_CHECKING:
    Dataset = DatasetSection
    View = ViewSection
else:
    Dataset = SOURCES.union()
    View = VIEWS.union()
