"""The kinds of which any package may register one: where they are looked for. Asking one imports its sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overread.core.registry import Registry

if TYPE_CHECKING:
    from overread.config.datasets import DatasetSection
    from overread.config.models import ModelSection
    from overread.config.views import ViewSection

SOURCES: Registry[DatasetSection] = Registry(
    "overread.sources", kind="source", by="source", base="overread.config.datasets:DatasetSection"
)
VIEWS: Registry[ViewSection] = Registry(
    "overread.views", kind="kind of view", by="kind", base="overread.config.views:ViewSection"
)
BACKENDS: Registry[ModelSection] = Registry(
    "overread.backends", kind="back end", by="backend", base="overread.config.models:ModelSection", only_folders=True
)
