"""A release in the forms of other evaluation packages: lmms-eval, VLMEvalKit and inspect_ai.

The folders' names hold a hyphen so that, run from the release, none of them hides the package it is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from overread.config.curation import Release
from overread.core.cells import harmless
from overread.core.csv_files import write_csv
from overread.core.errors import BadInput

if TYPE_CHECKING:
    from overread.curation.released import Released

TEMPLATES = Path(__file__).parent / "templates"
LETTERS = "ABCDEFGH"

# What pandas takes for a missing value when it reads a file: VLMEvalKit would drop such an option without a word.
_MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip


def task_name(section: Release) -> str:
    """The release's name as an identifier of Python."""
    name = re.sub(r"\W+", "_", section.name)
    return name if not name[0].isdigit() else f"q_{name}"


def template(name: str, /, **values: object) -> str:
    """One of the package's own templates, filled in."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # neither Markdown, YAML nor Python is HTML
    )
    return environment.get_template(name).render(values)


def write_exports(section: Release, released: Sequence[Released], folder: Path) -> None:
    most = max(len(one.question.options) for one in released)
    if most > len(LETTERS):
        raise BadInput(f"a question has {most} options; the exports take {len(LETTERS)} at most")
    task = task_name(section)
    _lmms_eval(section, task, released, folder / "for-lmms-eval")
    _vlmevalkit(task, released, folder / "for-vlmevalkit", most)
    inspect = folder / "for-inspect-ai"
    inspect.mkdir()
    text = template("inspect_task.py.j2", title=_safe(section.title), task=task, version=section.version)
    (inspect / f"{task}.py").write_text(text, encoding="utf-8")


def _lmms_eval(section: Release, task: str, released: Sequence[Released], folder: Path) -> None:
    """A task a order, both on one file of questions."""
    folder.mkdir()
    for order, name in (("shuffled", task), ("as_written", f"{task}_as_written")):
        text = template("lmms_eval.yaml.j2", task=name, order=order, data=f"{task}.jsonl", version=section.version)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "tasks.py").write_text(template("lmms_eval_tasks.py.j2", title=_safe(section.title)), encoding="utf-8")
    rows = [one.row(with_report=False) for one in released]
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (folder / f"{task}.jsonl").write_text(lines, encoding="utf-8")


def _vlmevalkit(task: str, released: Sequence[Released], folder: Path, most: int) -> None:
    """A TSV a order: index, question, a column an option, the letter of the answer, category, pictures by path."""
    folder.mkdir()
    for name, shuffled in ((task, True), (f"{task}_as_written", False)):
        pictures = ["image_path"] if any(one.pictures for one in released) else []
        names = ["index", "id", "study", "category", "question", *LETTERS[:most], "answer", *pictures]
        rows = []
        for index, one in enumerate(released):
            options = one.options if shuffled else one.question.options
            place = one.answer_index if shuffled else one.question.answer_index
            row = [str(index), one.question.question, one.question.study, one.question.topic, one.question.stem]
            row += [_not_missing(option) for option in options] + [""] * (most - len(options))
            rows.append([*row, LETTERS[place], *([_paths(one.pictures)] if pictures else [])])
        write_csv(folder / f"{name}.tsv", names, rows, delimiter="\t", guard=harmless)


def _not_missing(option: str) -> str:
    """The option, with a full stop where pandas would read it as a missing value: `None` becomes `None.`."""
    return f"{option}." if option.strip() in _MISSING else option


def _paths(pictures: Sequence[str]) -> str:
    """One path as it is, more as a list in the way VLMEvalKit reads one."""
    return pictures[0] if len(pictures) == 1 else repr(list(pictures))


def _safe(title: str) -> str:
    """A title that can stand in a docstring."""
    return title.replace("\\", "/").replace('"', "'")
