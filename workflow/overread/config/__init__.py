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
from overread.config.segmentation import NetworkSegmentation, Provided, Segmentation, SegResNet, SwinUnetr
from overread.config.substitutes import Substitutes
from overread.config.views import Plane, ViewSection
from overread.settings.setting import Setting

if TYPE_CHECKING:
    from overread.config.reading import build, load, load_model, read_yaml
    from overread.config.schema import json_schema
    from overread.config.study import Comparison, Config, Effect, Evaluation, Reports, Statistics
    from overread.config.unions import Dataset, Model, View

WHOLE = {
    **dict.fromkeys(("build", "load", "load_model", "read_yaml"), "reading"),
    **dict.fromkeys(("Comparison", "Config", "Effect", "Evaluation", "Reports", "Statistics"), "study"),
    **dict.fromkeys(("Dataset", "Model", "View"), "unions"),
    "json_schema": "schema",
}
"""What knows all that is registered, by module. It is imported when it is asked for: a section that is registered
imports this package itself."""


def __getattr__(name: str) -> Any:
    if name not in WHOLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{WHOLE[name]}"), name)


__all__ = [
    "FINDINGS",
    "Comparison",
    "Config",
    "Dataset",
    "DatasetSection",
    "Decoding",
    "Effect",
    "Evaluation",
    "FilePath",
    "FileQuestions",
    "FindingQuestions",
    "Folder",
    "GeneratedQuestions",
    "GrammarQuestions",
    "HumanSubset",
    "LocalModel",
    "Model",
    "ModelSection",
    "Name",
    "NetworkSegmentation",
    "OwnCodeModel",
    "Plane",
    "Provided",
    "Questions",
    "Release",
    "Reports",
    "Resources",
    "Review",
    "Section",
    "SegResNet",
    "Segmentation",
    "ServerModel",
    "Setting",
    "SettingName",
    "Statistics",
    "Substitutes",
    "SwinUnetr",
    "Takes",
    "View",
    "ViewSection",
    "Weights",
    "WeightsModel",
    "build",
    "is_folder",
    "json_schema",
    "load",
    "load_model",
    "read_yaml",
]  # fmt: skip
