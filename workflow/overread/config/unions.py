"""A section that is one of all that are registered of its kind, told apart by its discriminator.

For the type checker it is what they have in common: nothing may ask for more of it than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.core.registry import Registry

if TYPE_CHECKING:
    from overread.config.datasets import DatasetSection
    from overread.config.models import ModelSection
    from overread.config.views import ViewSection

    Dataset = DatasetSection
    Model = ModelSection
    View = ViewSection


KINDS: dict[str, Registry[Any]] = {"Dataset": SOURCES, "Model": BACKENDS, "View": VIEWS}


def __getattr__(name: str) -> Any:
    """Made when it is asked for: who renders a view need not load every back end's section."""
    if name not in KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = KINDS[name].union()
    return found
