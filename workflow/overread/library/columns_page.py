"""docs/tables.md: what every column of every file of a run means. It is printed from the columns as they are declared.

Write it anew with `python -m overread.library.columns_page > docs/tables.md`; a test fails when the two drift apart.
"""

from __future__ import annotations

import importlib
import sys
import types
import typing
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from overread.core import columns as shared
from overread.core.columns import Column, Kind
from overread.core.csv_files import CsvFile
from overread.core.inputs import regular
from overread.core.records import Picture, Question, Record, Response, Study, Substitute, Trial
from overread.estimates import tables
from overread.estimates.ratings import Rating
from overread.library.results import QUESTION_NAMES, RESPONSE_NAMES, TRIAL_NAMES

PACKAGE = Path(__file__).resolve().parents[1]
RECORDS: dict[str, tuple[type[Record], str]] = {
    "<dataset>/studies.parquet": (Study, "One row per study, also those that cannot be used."),
    "<dataset>/questions.jsonl": (Question, "One question per line, as JSON."),
    "<dataset>/images.parquet": (Picture, "One row per picture of a view of a study."),
    "<dataset>/substitutes.csv": (Substitute, "Whose image replaces a study's own."),
    "<dataset>/trials/<setting>/run-<k>.parquet": (Trial, "One row per question, as it is asked under a setting."),
    "<dataset>/responses/<model>/<setting>/run-<k>.parquet": (
        Response, "One row per trial, in the trials' order: what the model gave.",
    ),
    "ratings.csv": (Rating, "A reader study's export: one row per rater and question."),
}  # fmt: skip
IN_FRAMES = {Question: QUESTION_NAMES, Trial: TRIAL_NAMES, Response: RESPONSE_NAMES}
"""Names that `overread.open` changes, since the same name means another thing in another file."""
SHARED = {column.name: column for column in vars(shared).values() if isinstance(column, Column)}
INTRODUCTION = """# The files of a run and their columns

Everything lies beneath `results/<name>/`. This page is printed from the declarations that the files are written by and
read back by: `python -m overread.library.columns_page > docs/tables.md`.

A name means the same thing in every file, with three exceptions, which `overread.open` renames in its data frames:
`answer` is the text of the correct option in questions, its place in trials, and the place of the option given in
responses; `options` are as written in questions and as shown in trials; `dropped` counts questions in funnel.csv and
lists the sentences that were taken out of a trial's report.

Shares go from 0 to 1. Places count from 0 unless a meaning says otherwise. `low` and `high` are the ends of an interval
clustered by patient, at the level of the config's `statistics` (95 % unless it says otherwise). A margin is
log p(yes) - log p(no), or log p(correct option) less the largest of the others, in nat.

```python
import overread

results = overread.open("results/demo")
results.studies, results.questions, results.trials  # one row per study, question, trial
results.answers  # one row per answer, beside what was asked and what is correct
results.tables["accuracy"]  # each table below `tables/`
results.answers.groupby(["dataset", "model", "setting"])["correct"].mean()  # accuracy.csv, recomputed
```

Join by `dataset`, `setting`, `run` and `question`, as `answers` does, and never by `trial` alone: trials of two runs
or settings that show the same have the same id.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## Tables\n"]
    files = declared()
    for path in sorted(path for path in files if path.startswith("tables/")):
        parts.append(_section(path, files[path].holds, [*files[path].columns, *files[path].more], {}))
    parts.append("## Lists\n")
    for path in sorted(path for path in files if not path.startswith("tables/")):
        parts.append(_section(path, files[path].holds, [*files[path].columns, *files[path].more], {}))
    parts.append("## Records\n")
    for path, (kind, holds) in RECORDS.items():
        parts.append(_section(path, holds, columns_of(kind), IN_FRAMES.get(kind, {})))
    return "\n".join(parts)


def declared() -> dict[str, CsvFile]:
    """Every CSV file that a module of the package declares, by its path."""
    names = (*tables.names(), *tables.names(readers=True))
    of_tables = {tables.table(name).path for name in names}
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.parent != PACKAGE / "core" and "= CsvFile(" in regular(file).read_text(encoding="utf-8"):
            parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
    # What else was declared in this process, such as a test's own table, is no file of the package.
    return {
        name: file
        for name, file in CsvFile.declared.items()
        if not name.startswith("test/") and (name in of_tables or not name.startswith("tables/"))
    }


def columns_of(kind: type[Record]) -> list[Column]:
    """The fields of a record as columns: a field without a description is one that several files share."""
    found = []
    for name, field in kind.model_fields.items():
        about, optional = _about(field.annotation)
        bounds: dict[str, float] = {}
        for one in field.metadata:
            bounds |= {end: getattr(one, end) for end in ("ge", "le") if getattr(one, end, None) is not None}
        plain = SHARED.get(name)
        if field.description is None and plain is None:
            raise ValueError(f"{kind.__name__}.{name} says nowhere what it means")
        meaning = field.description or (plain.meaning if plain is not None else "")
        unit = plain.unit if plain is not None else ""
        values = get_args(about) if get_origin(about) is Literal else ()
        blank = "not known, or not so" if optional else ""
        limits = (bounds.get("ge"), bounds.get("le"))
        found.append(Column(name, meaning, _kind(about), unit, limits, tuple(map(str, values)), blank))
    return found


def _about(annotation: Any) -> tuple[Any, bool]:
    """A field's type without None, and whether it may be None."""
    if get_origin(annotation) in (types.UnionType, typing.Union):
        rest = [one for one in get_args(annotation) if one is not type(None)]
        return rest[0], len(rest) < len(get_args(annotation))
    return annotation, False


def _kind(about: Any) -> Kind:
    kinds: dict[Any, Kind] = {int: "whole", float: "number", bool: "yes/no", str: "text"}
    return kinds.get(about, "text" if get_origin(about) is Literal else "list")


def _section(path: str, holds: str, columns: list[Column], renamed: dict[str, str]) -> str:
    lines = [
        f"### `{path}`\n",
        f"{holds}\n",
        "| column | meaning | type | range or values | blank where |",
        "|---|---|---|---|---|",
    ]
    for column in columns:
        name = f"`{column.name}`"
        if column.name in renamed:
            name += f" (in frames `{renamed[column.name]}`)"
        kind = column.kind + (f", {column.unit}" if column.unit else "")
        limits = ", ".join(f"`{value}`" for value in column.values) or column.bounds
        cells = (name, column.meaning, kind, limits, column.blank)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
