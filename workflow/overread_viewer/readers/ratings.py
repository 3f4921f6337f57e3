"""What raters stored, as `ratings.csv`: a row for each finished question that counts."""

from __future__ import annotations

from pathlib import Path

from overread.core.cells import harmless
from overread.core.csv_files import csv_text
from overread.core.records import replacing
from overread_viewer.readers.database import Database, seconds_between

COLUMNS = (
    "rater", "subset", "dataset", "study", "patient", "question", "place", "chosen", "agrees", "relevant", "confidence",
    "answerable", "comment", "seconds", "started_at", "answered_at", "seconds_in_view",
)  # fmt: skip


def rows(database: Database) -> list[dict[str, str]]:
    """By rater and place. `seconds` runs from the first view of a question to its stored own answer."""
    begun = database.begun()
    if begun is None:
        return []
    subset, dataset, _ = begun
    found = []
    for row in database.finished():
        chosen = "" if row["chosen"] is None else row["options"][row["chosen"]]
        values = {name: row[name] for name in COLUMNS if name in row}
        values |= {"subset": subset, "dataset": dataset, "chosen": chosen}
        values |= {name: "yes" if row[name] else "no" for name in ("agrees", "relevant", "answerable")}
        values |= {"seconds": f"{seconds_between(row['started'], row['answered']):.1f}"}
        values |= {"started_at": row["started"], "answered_at": row["answered"]}
        in_view = row["seconds_in_view"]
        values |= {"seconds_in_view": "" if in_view is None else f"{in_view:.1f}"}
        found.append({name: str(values[name]) for name in COLUMNS})
    return found


def as_csv(database: Database) -> str:
    """The text of ratings.csv: the same rows give the same bytes."""
    return csv_text(COLUMNS, rows(database), guard=harmless)


def export(database: Database, path: Path) -> int:
    """Write ratings.csv in one step; returns how many ratings it holds."""
    text = as_csv(database)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
    return len(rows(database))
