"""The configuration: one pydantic model a section, and the only source of its defaults, checks and JSON schema.

base       what every section shares            datasets   sources and questions
curation   review and release of questions      views      what every view shares
models     one file a model                     study      evaluations, comparisons, effects
segmentation  tumour and brain masks of MRI
resolving  extends, sweep, <sweep>-*
reading    from files to a checked config       messages   errors in words          schema   for editors
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overread.config.base import FilePath, Name, Section, SettingName, Weights, is_folder
    from overread.config.curation import Release, Review
    from overread.config.datasets import (
        FINDINGS,
        DatasetSection,
        FileQuestions,
        FindingQuestions,
        Folder,
        GeneratedQuestions,
        GrammarQuestions,
        Questions,
    )
    from overread.config.human import HumanSubset
    from overread.config.models import (
        Decoding,
        LocalModel,
        ModelSection,
        OwnCodeModel,
        Resources,
        ServerModel,
        Takes,
        WeightsModel,
    )
    from overread.config.reading import build, load, load_model, read_yaml
    from overread.config.schema import json_schema
    from overread.config.segmentation import NetworkSegmentation, Provided, Segmentation, SegResNet, SwinUnetr
    from overread.config.study import Comparison, Config, Effect, Evaluation, Reports, Statistics
    from overread.config.substitutes import Substitutes
    from overread.config.unions import Dataset, Model, View
    from overread.config.views import Plane, ViewSection
    from overread.settings.setting import Setting

MODULES = {
    "overread.config.base": ("FilePath", "Name", "Section", "SettingName", "Weights", "is_folder"),
    "overread.config.curation": ("Release", "Review"),
    "overread.config.datasets": ("DatasetSection", "FINDINGS", "FileQuestions", "FindingQuestions", "Folder",
        "GeneratedQuestions", "GrammarQuestions", "Questions"),
    "overread.config.human": ("HumanSubset",),
    "overread.config.models": ("Decoding", "LocalModel", "ModelSection", "OwnCodeModel", "Resources", "ServerModel",
        "Takes", "WeightsModel"),
    "overread.config.reading": ("build", "load", "load_model", "read_yaml"),
    "overread.config.schema": ("json_schema",),
    "overread.config.segmentation": ("NetworkSegmentation", "Provided", "SegResNet", "Segmentation", "SwinUnetr"),
    "overread.config.study": ("Comparison", "Config", "Effect", "Evaluation", "Reports", "Statistics"),
    "overread.config.substitutes": ("Substitutes",),
    "overread.config.unions": ("Dataset", "Model", "View"),
    "overread.config.views": ("Plane", "ViewSection"),
    "overread.settings.setting": ("Setting",),
}  # fmt: skip
"""What each module has of the names below. It is imported when somebody asks for one: a job loads the sections that it
needs, and a section that is registered imports this package itself."""
_FROM = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_FROM[name]), name)
    return found


__all__ = [
    "FINDINGS", "Comparison", "Config", "Dataset", "DatasetSection", "Decoding", "Effect", "Evaluation",
    "FilePath", "FileQuestions", "FindingQuestions", "Folder", "GeneratedQuestions", "GrammarQuestions",
    "HumanSubset", "LocalModel", "Model", "ModelSection", "Name", "NetworkSegmentation", "OwnCodeModel",
    "Plane", "Provided", "Questions", "Release", "Reports", "Resources", "Review", "Section", "SegResNet",
    "Segmentation", "ServerModel", "Setting", "SettingName", "Statistics", "Substitutes", "SwinUnetr",
    "Takes", "View", "ViewSection", "Weights", "WeightsModel", "build", "is_folder", "json_schema", "load",
    "load_model", "read_yaml",
]  # fmt: skip
