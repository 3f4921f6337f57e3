"""From files to a checked config.

`load` reads a config file with the model files of `models/` beside it and raises one `BadConfig` that lists every
problem, a line each, with the file, the key, the value and what is allowed. Relative paths are relative to the file
that names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from overread.config.base import NAME
from overread.config.messages import Problem, validated
from overread.config.resolving import name_settings, resolve, sweep_comparisons
from overread.config.study import Config
from overread.config.unions import Model
from overread.core.errors import BadConfig
from overread.core.inputs import regular


class ModelFile(BaseModel):
    """A model file's content, in a field so that a discriminated union can be validated and have a schema."""

    model: Model


def load(path: Path) -> Config:
    """The config of a YAML file with the model files of `models/` beside it. BadConfig lists every problem."""
    return build(read_yaml(path), path)


def build(content: Mapping[str, Any], path: Path) -> Config:
    """The config of a mapping already read (Snakemake's), as if it stood in the file `path`.

    Settings are resolved first: `extends` takes another setting's fields, `sweep` makes one setting for each value.
    """
    whole: dict[str, Any] = {str(key): value for key, value in content.items()}
    problems: list[Problem] = []
    lines: list[str] = []
    if "models" in whole:
        problems.append(("models", f"models are files in {path.parent / 'models'}, not a key of the config"))
    if "sweeps" in whole:
        problems.append(("sweeps", "is no key of the config: write `sweep` in a setting"))
    settings = resolve(whole["settings"] if isinstance(whole.get("settings"), Mapping) else {})
    problems.extend(settings.problems)
    if isinstance(whole.get("settings"), Mapping):
        # One that is broken stays away; a config of nothing but broken ones is not "empty" as well.
        whole["settings"] = settings.fields or ({"broken": {}} if settings.broken else {})
    for key, carry_out in (("evaluations", name_settings), ("comparisons", sweep_comparisons)):
        if key in whole:
            whole[key], wrong = carry_out(whole[key], settings)
            problems.extend(wrong)
    whole["sweeps"] = {name: tuple(made.values()) for name, made in settings.sweeps.items()}
    whole["models"], broken_models, model_lines = _load_models(path.parent / "models")
    context = {
        "folder": str(path.parent.resolve()),
        "broken": {"model": broken_models, "setting": frozenset(settings.broken)},
    }
    found: list[Problem] = []
    config = validated(lambda: Config.model_validate(whole, context=context), Config, found)
    problems.extend(settings.once(found))
    lines.extend(_line(path, problem) for problem in problems)
    lines.extend(model_lines)
    if lines or config is None:
        raise BadConfig("\n".join(dict.fromkeys(lines)))
    return config


def load_model(path: Path) -> Model:
    """One model file."""
    problems: list[Problem] = []
    context = {"folder": str(path.parent.resolve())}
    content = {"model": read_yaml(path)}
    parsed = validated(lambda: ModelFile.model_validate(content, context=context), ModelFile, problems)
    if parsed is None:
        inside = [(where.removeprefix("model").removeprefix("."), what) for where, what in problems]
        raise BadConfig("\n".join(_line(path, problem) for problem in inside))
    return parsed.model


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping. A key that stands twice is an error: YAML would keep the last one in silence."""
    try:
        content = yaml.load(regular(path).read_text(encoding="utf-8"), Loader=_StrictLoader)
    except FileNotFoundError:
        raise BadConfig(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise BadConfig(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise BadConfig(f"{path}: must be a mapping of keys to values")
    return content


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice (what comes in by `<<` is there to be overridden), and reads only `true` and
    `false` as truth values, as YAML 1.2 does: `yes` is the answer to a question here, and a key of its own.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        met: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key in met and key != "<<":
                line = key_node.start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: duplicate key {key!r}; remove or rename one of them")
            if key is not None:
                met.add(key)
        return super().construct_mapping(node, deep)


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def _load_models(folder: Path) -> tuple[dict[str, Model], frozenset[str], list[str]]:
    """The models of a folder by id, the ids whose file is broken, and what is wrong with those."""
    models: dict[str, Model] = {}
    broken: set[str] = set()
    lines: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            if not re.fullmatch(NAME, path.stem):
                raise BadConfig(f"{path}: a model's id is small letters, digits, dots and hyphens; rename the file")
            models[path.stem] = load_model(path)
        except BadConfig as error:
            broken.add(path.stem)
            lines.append(str(error))
    return models, frozenset(broken), lines


def _line(path: Path, problem: Problem) -> str:
    where, what = problem
    return f"{path}: {where}: {what}" if where else f"{path}: {what}"
