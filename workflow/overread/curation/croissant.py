"""The description of a release for programs: MLCommons Croissant 1.0, made by the format's own package.

Files with their checksums, and the fields of a question with where each is read from, so that the records can be loaded
from the description alone.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from overread.config.curation import Release
from overread.core.outputs import sha256
from overread.curation.card import FIELDS

FORMATS = {
    "questions.jsonl": "application/jsonlines",
    "questions.csv": "text/csv",
    "questions.parquet": "application/x-parquet",
    "positions.csv": "text/csv",
    "funnel.csv": "text/csv",
    "reports.jsonl": "application/jsonlines",
}
_LISTS = {"options", "options_as_written", "permutation", "pictures"}
_WHOLE = {"answer_position", "answer_position_as_written", "permutation"}


def write_croissant(section: Release, folder: Path) -> None:
    """`croissant.json` about the files that lie in the folder by now."""
    import mlcroissant as mlc  # type: ignore[import-untyped]

    files = [
        mlc.FileObject(
            id=name,
            name=name,
            description=name,
            content_url=name,
            content_size=f"{(folder / name).stat().st_size} B",
            encoding_formats=[kind],
            sha256=sha256(folder / name),
        )
        for name, kind in FORMATS.items()
        if (folder / name).is_file()
    ]
    fields = [
        mlc.Field(
            id=f"questions/{name}",
            name=name,
            description=meaning,
            data_types=[mlc.DataType.INTEGER if name in _WHOLE else mlc.DataType.TEXT],
            repeated=name in _LISTS,
            source=mlc.Source(file_object="questions.parquet", extract=mlc.Extract(column=name)),
        )
        for name, meaning in FIELDS.items()
        if name != "evidence" or section.with_report
    ]
    published = datetime.datetime.fromisoformat(section.published) if section.published else None
    metadata = mlc.Metadata(
        name=section.name,
        description=section.description or section.title,
        license=[section.license] if section.license else None,
        url=section.url or None,
        version=section.version,
        cite_as=section.citation or None,
        date_published=published,
        distribution=files,
        record_sets=[mlc.RecordSet(id="questions", name="questions", key=["questions/question"], fields=fields)],
    )
    text = json.dumps(metadata.to_json(), indent=2, ensure_ascii=False, default=str)
    (folder / "croissant.json").write_text(f"{text}\n", encoding="utf-8")
