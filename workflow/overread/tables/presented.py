"""The tables as the report shows them: headings in words, per cent with one decimal, models by their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from overread.tables.rows import Row, columns, number, ordered, where
from overread.tables.words import MINUS, interval, signless

DASH = "\N{EN DASH}"
BLIND_HITS_SHOWN = 20
KINDS = ("all", "label-changed", "label-unchanged", "within-patient", "across-patients")


@dataclass(frozen=True)
class Column:
    heading: str
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    text: str
    numeric: bool = True
    marked: bool = False


@dataclass(frozen=True)
class Presented:
    """A table ready to be set: no numbers are made here, they are only written."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    dataset: str = ""


Writer = Callable[[Row], Cell]


def _text(name: str, labels: Mapping[str, str] | None = None) -> Writer:
    return lambda row: Cell((labels or {}).get(row[name], row[name]) or DASH, numeric=False)


def _percent(name: str) -> Writer:
    return lambda row: Cell(_scaled(row.get(name), 100))


def _plain(name: str, digits: int) -> Writer:
    return lambda row: Cell(_scaled(row.get(name), 1, digits))


def _whole(name: str, *, marked: bool = False) -> Writer:
    """A whole number; `marked` makes it stand out where it is not 0."""

    def write(row: Row) -> Cell:
        value = number(row.get(name))
        return Cell(DASH if value is None else f"{int(value):,}", marked=marked and bool(value))

    return write


def _interval(row: Row) -> Cell:
    return Cell(interval(number(row["low"]), number(row["high"])) or DASH)


def _scaled(text: str | None, scale: float, digits: int = 1) -> str:
    value = number(text)
    return DASH if value is None else signless(scale * value, digits)


def _signed(row: Row) -> Cell:
    value = number(row["estimate"])
    if value is None:
        return Cell(DASH)
    rounded = round(100 * value, 1)
    return Cell(f"{MINUS if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded):.1f}")


def _make(caption: str, parts: Sequence[tuple[Column, Writer]], rows: Sequence[Row], *, dataset: str = "") -> Presented:
    cells = tuple(tuple(write(row) for _, write in parts) for row in rows)
    return Presented(caption, tuple(column for column, _ in parts), cells, dataset)


def accuracy(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """A table a dataset."""
    parts = [
        (Column("Model", False), _text("model", labels)),
        (Column("Setting", False), _text("setting")),
        (Column("Accuracy %"), _percent("accuracy")),
        (Column(f"{level} interval"), _interval),
        (Column("Answered"), _whole("answered")),
        (Column("Unparsed"), _whole("unparsed", marked=True)),
        (Column("Refused"), _whole("refused", marked=True)),
        (Column("Truncated"), _whole("truncated", marked=True)),
        (Column("Failed"), _whole("failed", marked=True)),
        (Column("Chance %"), _percent("chance")),
        (Column("Always first %"), _percent("always_first")),
        (Column("Balanced %"), _percent("balanced_accuracy")),
        (Column("Questions"), _whole("questions")),
        (Column("Patients"), _whole("patients")),
        (Column("Runs"), _whole("runs")),
    ]
    return [
        _make(f"Accuracy on {name}", parts, where(rows, dataset=name), dataset=name)
        for name in ordered(rows, "dataset")
    ]


def wide(rows: Sequence[Row], labels: Mapping[str, str]) -> list[Presented]:
    """Already in per cent; a condition that a dataset does not have is left out of its table."""
    tables = []
    for name in ordered(rows, "dataset"):
        own = where(rows, dataset=name)
        conditions = [column for column in columns(own)[3:] if any(row[column].strip() for row in own)]
        parts = [(Column("Model", False), _text("model", labels)), (Column("Input", False), _text("input"))]
        parts += [(Column(column[:1].upper() + column[1:]), _plain(column, 1)) for column in conditions]
        tables.append(_make(f"Accuracy by condition on {name}, per cent", parts, own, dataset=name))
    return tables


def _flip_parts(labels: Mapping[str, str], level: str, second: tuple[Column, Writer]) -> list[tuple[Column, Writer]]:
    return [
        (Column("Model", False), _text("model", labels)),
        second,
        (Column("Flips %"), _percent("flip_rate")),
        (Column(f"{level} interval"), _interval),
        (Column("Pairs"), _whole("pairs")),
        (Column("Patients"), _whole("patients")),
        (Column("Mean margin change"), _plain("mean_abs_margin_change", 2)),
        (Column("Margin moved > 0.5, %"), _percent("margin_moved_over_0_5")),
        (Column("Yes, first %"), _percent("yes_rate_a")),
        (Column("Yes, second %"), _percent("yes_rate_b")),
    ]


def flips(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """All pairs, a table a dataset."""
    parts = _flip_parts(labels, level, (Column("Comparison", False), _text("comparison")))
    if rows and "unpaired" in columns(rows):
        parts.insert(5, (Column("Pairs left out"), _whole("unpaired", marked=True)))
    own = where(rows, group="all")
    return [
        _make(f"Flips on {name}, all pairs", parts, where(own, dataset=name), dataset=name)
        for name in ordered(own, "dataset")
    ]


def flips_by_group(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """A table a dataset and comparison: the kinds of pairs first, then the findings."""
    parts = _flip_parts(labels, level, (Column("Pairs of", False), _text("group")))
    tables = []
    for name in ordered(rows, "dataset"):
        for comparison in ordered(where(rows, dataset=name), "comparison"):
            own = where(rows, dataset=name, comparison=comparison)
            order = {
                group: (KINDS.index(group) if group in KINDS else len(KINDS), group) for group in ordered(own, "group")
            }
            own.sort(key=lambda row: (order[row["group"]], row["model"]))
            tables.append(_make(f"{comparison} on {name}", parts, own, dataset=name))
    return tables


def effects(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), _text("model", labels)),
        (Column("Difference", False), _text("effect")),
        (Column("Points"), _signed),
        (Column(f"{level} interval"), _interval),
        (Column("Patients"), _whole("patients")),
    ]
    return [
        _make(f"Differences on {name}", parts, where(rows, dataset=name), dataset=name)
        for name in ordered(rows, "dataset")
    ]


def positions(rows: Sequence[Row], labels: Mapping[str, str]) -> list[Presented]:
    """A row a model and setting, three columns a place."""
    tables = []
    for name in ordered(rows, "dataset"):
        own = where(rows, dataset=name)
        places = sorted(set(ordered(own, "position")), key=float)
        merged: dict[tuple[str, str], Row] = {}
        for row in own:
            line = merged.setdefault((row["model"], row["setting"]), {k: row[k] for k in ("model", "setting", "rstd")})
            line.update({f"{kind}{row['position']}": row[kind] for kind in ("gold_share", "chosen_share", "recall")})
        parts = [(Column("Model", False), _text("model", labels)), (Column("Setting", False), _text("setting"))]
        for place in places:
            parts += [
                (Column(f"Correct at {place}, %"), _percent(f"gold_share{place}")),
                (Column(f"Chosen {place}, %"), _percent(f"chosen_share{place}")),
                (Column(f"Recall at {place}, %"), _percent(f"recall{place}")),
            ]
        parts.append((Column("RStd"), _plain("rstd", 1)))
        tables.append(_make(f"Places of the answers on {name}", parts, list(merged.values()), dataset=name))
    return tables


def datasets(rows: Sequence[Row]) -> Presented:
    """All datasets in one table."""
    parts = [
        (Column("Dataset", False), _text("dataset")),
        (Column("Questions"), _whole("questions")),
        (Column("Studies"), _whole("studies")),
        (Column("Patients"), _whole("patients")),
        (Column("Words a question"), _plain("words_per_question", 1)),
        (Column("Series a study"), _plain("series_per_study", 1)),
        (Column("Slices a series"), _plain("slices_per_series", 1)),
    ]
    for column in columns(rows):
        if column.startswith("answer_position_"):
            parts.append((Column(f"Correct at {column.removeprefix('answer_position_')}, %"), _percent(column)))
    return _make("The datasets", parts, rows)


def blind_hits(rows: Sequence[Row], labels: Mapping[str, str]) -> Presented:
    """The first few; the stem of a restricted dataset is blank in the table already."""

    def models(row: Row) -> Cell:
        return Cell(", ".join(labels.get(model, model) for model in row.get("models", "").split(";")), numeric=False)

    parts = [
        (Column("Dataset", False), _text("dataset")),
        (Column("Topic", False), _text("topic")),
        (Column("Question", False), _text("stem")),
        (Column("Answered correctly by", False), models),
        (Column("Of the models asked, %"), _percent("share_of_models")),
    ]
    shown = rows[:BLIND_HITS_SHOWN]
    return _make(f"Correct without image and report: the first {len(shown)} of {len(rows):,} questions", parts, shown)
