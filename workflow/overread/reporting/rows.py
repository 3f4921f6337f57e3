"""The tables as they are read back: rows of text by column, so that what is shown is what stands in the file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from overread.core.errors import BadInput

Row = dict[str, str]

COLUMNS: dict[str, tuple[str, ...]] = {
    "dataset": ("dataset", "questions", "studies", "patients", "words_per_question"),
    "accuracy": (
        "dataset", "model", "setting", "runs", "questions", "patients", "accuracy", "low", "high", "balanced_accuracy",
        "answered", "unparsed", "refused", "truncated", "failed", "chance", "always_first",
    ),
    "flips": (
        "dataset", "model", "comparison", "group", "pairs", "patients", "flip_rate", "low", "high",
        "mean_abs_margin_change", "margin_moved_over_0_5", "yes_rate_a", "yes_rate_b", "floor", "floor_low",
        "floor_high",
    ),
    "effects": ("dataset", "model", "effect", "estimate", "low", "high", "patients"),
    "findings": (
        "dataset", "model", "effect", "group", "first", "second", "pairs", "patients", "rate_first", "low_first",
        "high_first", "rate_second", "low_second", "high_second", "difference", "low", "high", "floor", "floor_low",
        "floor_high",
    ),
    "human": (
        "rater", "subset", "questions", "accuracy", "low", "high", "agreement", "relevance", "confidence",
        "answerable", "kind", "dataset", "model", "setting", "runs", "patients", "raters", "cant_tell",
        "no_consensus", "unparsed", "refused", "truncated", "failed", "chance", "always_first", "agreement_low",
        "agreement_high", "relevance_low", "relevance_high", "answerable_low", "answerable_high", "seconds_median",
    ),
    "human_differences": (
        "subset", "rater", "kind", "dataset", "model", "setting", "questions", "patients", "human", "model_accuracy",
        "difference", "low", "high",
    ),
    "human_agreement": ("subset", "of", "statistic", "raters", "items", "value", "low", "high", "note"),
    "layers": (
        "dataset", "model", "mode", "layer", "flip_rate", "low", "high", "pairs", "patients", "comparison", "in_view",
        "no_report",
    ),
    "margins": (
        "dataset", "model", "effect", "pairs", "patients", "mean_abs_change_first", "mean_abs_change_second",
        "moves_more", "low", "high",
    ),
    "modality": (
        "dataset", "model", "images", "shown", "setting", "questions", "patients", "balanced_accuracy", "low", "high",
    ),
    "noise": ("dataset", "model", "setting", "runs", "pairs", "patients", "flip_rate", "low", "high", "unpaired"),
    "own_label": (
        "dataset", "model", "comparison", "arm", "setting", "pairs", "patients", "accuracy", "low", "high",
        "balanced_accuracy", "balanced_low", "balanced_high",
    ),
    "significance": (
        "dataset", "model", "comparison", "report", "floor", "pairs", "patients", "flip_rate", "floor_rate", "surplus",
        "p", "p_holm",
    ),
    "positions": ("dataset", "model", "setting", "position", "gold_share", "chosen_share", "recall", "rstd"),
    "accuracy_wide": ("dataset", "model", "input"),
    "cost": (
        "dataset", "model", "setting", "requests", "prompt_tokens", "prefilled_tokens", "images_encoded", "seconds",
        "device", "gpu_hours", "dollars",
    ),
    "blind_hits": ("dataset", "question", "topic", "stem", "models", "share_of_models"),
}  # fmt: skip
"""Columns that a table must have for the figures and the report; it may have more."""


def read(folder: Path, table: str) -> list[Row]:
    """The rows of `<folder>/<table>.csv`.

    raises  BadInput if there is no such file, or a column of `COLUMNS` is missing
    """
    path = folder / f"{table}.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = [{name: text or "" for name, text in row.items()} for row in reader]
            present = reader.fieldnames or []
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; make the tables first") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not readable as CSV: {error}; make the tables again") from None
    missing = [name for name in COLUMNS[table] if name not in present]
    if missing:
        raise BadInput(f"{path}: no column {', '.join(missing)}; make the tables again")
    return rows


def number(text: str | None) -> float | None:
    """The number of a cell; none for a blank one and for nan."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"a table holds {text!r} where a number should be; make the tables again") from None
    return value if math.isfinite(value) else None


def ordered(rows: Iterable[Row], column: str) -> list[str]:
    """The values of a column, each once, in the order they are met."""
    return list(dict.fromkeys(row[column] for row in rows))


def where(rows: Iterable[Row], **values: str) -> list[Row]:
    """The rows whose columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def columns(rows: Sequence[Row]) -> list[str]:
    """The columns of a table, in the file's order."""
    return list(rows[0]) if rows else []
