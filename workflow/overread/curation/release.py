"""A released dataset: the questions in three formats, options shuffled and as written, and what others need to use it.

    questions.jsonl .csv .parquet     shuffled options as the default, the order as written beside it
    positions.csv                     how often the right option stands at each place, in both orders
    funnel.csv                        what was written, dropped by which rule, and kept
    README.md croissant.json          data card and machine-readable description
    for-lmms-eval/ for-vlmevalkit/ for-inspect-ai/       ready to run
    pictures/ reports.jsonl           only if the config says so
    SHA256SUMS                        of every other file

The same input gives the same bytes. Evidence is text of the report, so it is left out with the reports.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from overread.config.curation import Release
from overread.core.cells import harmless
from overread.core.csv_files import write_csv
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.outputs import OutputFolder, replacing_folder, sha256
from overread.core.records import Picture, Question, Study
from overread.curation.filter import Count
from overread.curation.released import Released, positions
from overread.settings.options import Permutation
from overread.trials.options import balanced

CHECKSUMS = "SHA256SUMS"


def release(
    section: Release,
    questions: Sequence[Question],
    studies: Sequence[Study],
    out: Path,
    *,
    pictures: Sequence[Picture] = (),
    images: Path | None = None,
    earlier: Path | None = None,
    funnel: Sequence[Count] = (),
) -> list[Released]:
    """Write a release into the folder `out`, which is new or an older release.

    pictures   of all views; those of `section.view` are copied
    images     the folder that their paths are relative to
    earlier    the folder of the release before: its questions keep their orders
    funnel     what the filter kept and dropped; without it, the card says nothing of any checks
    raises     BadInput for a question whose study is not there, a study without a picture of the view, a folder that
               holds a file which no earlier release wrote
    """
    from overread.curation.card import write_card
    from overread.curation.croissant import write_croissant
    from overread.curation.exports import write_exports
    from overread.curation.funnel import write_funnel

    if not questions:
        raise BadInput("there is no question to release")
    asked = {one.study for one in questions}
    known = {one.study: one for one in studies}
    if missing := sorted(asked - set(known)):
        raise BadInput(f"question of study {missing[0]!r}: no such study among the studies")
    shown = [known[name] for name in sorted(asked)]
    orders = balanced(questions, section.seed, read_orders(earlier) if earlier is not None else None)
    with replacing_folder(OutputFolder(out, "questions release")) as folder:
        copied = _copy_pictures(section, shown, pictures, images, folder)
        released = [
            Released(one, orders[one.question], copied.get(one.study, ()))
            for one in sorted(questions, key=lambda one: (one.study, one.question))
        ]
        _write_questions(section, released, folder)
        _write_positions(released, folder / "positions.csv")
        if section.with_report:
            _write_lines([{"study": one.study, **one.report} for one in shown], folder / "reports.jsonl")
        write_exports(section, released, folder)
        if funnel:
            write_funnel(funnel, folder / "funnel.csv")
        write_card(section, released, shown, funnel, folder)
        write_croissant(section, folder)
        _write_checksums(folder)
    return released


def read_orders(folder: Path) -> dict[str, Permutation]:
    """The order of each question of a release, by id."""
    path = folder / "questions.jsonl"
    try:
        rows = [json.loads(line) for line in regular(path).read_text(encoding="utf-8").split("\n") if line.strip()]
        return {row["question"]: tuple(place - 1 for place in row["permutation"]) for row in rows}
    except FileNotFoundError:
        raise BadInput(f"{folder}: no release there: it has no questions.jsonl") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not the questions of a release: {error}") from None


def _write_questions(section: Release, released: Sequence[Released], folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [one.row(with_report=section.with_report) for one in released]
    _write_lines(rows, folder / "questions.jsonl")
    places, text = pa.int16(), pa.string()
    kinds = {"options": pa.list_(text), "options_as_written": pa.list_(text), "pictures": pa.list_(text)}
    kinds |= {"answer_position": places, "answer_position_as_written": places, "permutation": pa.list_(places)}
    schema = pa.schema([(name, kinds.get(name, text)) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "questions.parquet", compression="zstd")
    most = max(len(one.question.options) for one in released)
    flat = [_flat(row, most) for row in rows]
    write_csv(folder / "questions.csv", list(flat[0]), flat, decimals=None)


def _flat(row: Mapping[str, Any], most: int) -> dict[str, Any]:
    """A row of the CSV: a column an option; lists of numbers and paths joined by spaces; no cell a formula."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("options", "options_as_written"):
            stem = "option" if name == "options" else "option_as_written"
            flat |= {f"{stem}_{k + 1}": value[k] if k < len(value) else "" for k in range(most)}
        else:
            flat[name] = " ".join(map(str, value)) if isinstance(value, list) else value
    return {name: harmless(value) if isinstance(value, str) else value for name, value in flat.items()}


def _write_positions(released: Sequence[Released], path: Path) -> None:
    write_csv(path, ("order", "position", "questions", "share"), positions(released))


def _write_lines(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def _copy_pictures(
    section: Release, studies: Sequence[Study], pictures: Sequence[Picture], images: Path | None, folder: Path
) -> dict[str, tuple[str, ...]]:
    """The pictures of the view by study, copied to `pictures/<study>/`, in their order."""
    if section.view is None:
        return {}
    if images is None:
        raise BadInput(f"the pictures of view {section.view!r} go into the release: say where the images are")
    copied: dict[str, tuple[str, ...]] = {}
    for study in studies:
        own = sorted(
            (one for one in pictures if (one.study, one.view) == (study.study, section.view)), key=lambda one: one.order
        )
        if not own:
            raise BadInput(f"study {study.study}: no picture of view {section.view!r}; render it, or release without")
        names = []
        for one in own:
            name = f"pictures/{study.study}/{Path(one.path).name}"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copyfile(images / one.path, folder / name)
            except OSError as error:
                raise BadInput(f"{images / one.path}: the picture can't be copied: {error.strerror}") from None
            names.append(name)
        copied[study.study] = tuple(names)
    return copied


def files_of(folder: Path) -> list[Path]:
    """All files of a release but the checksums, by their path relative to the folder."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS)


def _write_checksums(folder: Path) -> None:
    """In the form that `sha256sum --check` reads."""
    lines = [f"{sha256(folder / name)}  {name.as_posix()}\n" for name in files_of(folder)]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
