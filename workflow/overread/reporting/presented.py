"""The tables as the report shows them: headings in words, per cent with one decimal, models by their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from overread.reporting.rows import Row, columns, number, ordered, where
from overread.reporting.words import MINUS, interval, signless

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


def text(name: str, labels: Mapping[str, str] | None = None) -> Writer:
    """A column's text, or what `labels` has for it."""
    return lambda row: Cell((labels or {}).get(row[name], row[name]) or DASH, numeric=False)


def percent(name: str) -> Writer:
    return lambda row: Cell(_scaled(row.get(name), 100))


def plain(name: str, digits: int) -> Writer:
    return lambda row: Cell(_scaled(row.get(name), 1, digits))


def whole(name: str, *, marked: bool = False) -> Writer:
    """A whole number; `marked` makes it stand out where it is not 0."""

    def write(row: Row) -> Cell:
        value = number(row.get(name))
        return Cell(DASH if value is None else f"{int(value):,}", marked=marked and bool(value))

    return write


def _interval(row: Row) -> Cell:
    return Cell(interval(number(row["low"]), number(row["high"])) or DASH)


def _scaled(cell: str | None, scale: float, digits: int = 1) -> str:
    value = number(cell)
    return DASH if value is None else signless(scale * value, digits)


def signed(name: str) -> Writer:
    """A difference of shares, in points."""

    def write(row: Row) -> Cell:
        value = number(row[name])
        if value is None:
            return Cell(DASH)
        rounded = round(100 * value, 1)
        return Cell(f"{MINUS if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded):.1f}")

    return write


def make(caption: str, parts: Sequence[tuple[Column, Writer]], rows: Sequence[Row], *, dataset: str = "") -> Presented:
    cells = tuple(tuple(write(row) for _, write in parts) for row in rows)
    return Presented(caption, tuple(column for column, _ in parts), cells, dataset)


def accuracy(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """A table a dataset."""
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Accuracy %"), percent("accuracy")),
        (Column(f"{level} interval"), _interval),
        (Column("Answered"), whole("answered")),
        (Column("Unparsed"), whole("unparsed", marked=True)),
        (Column("Refused"), whole("refused", marked=True)),
        (Column("Truncated"), whole("truncated", marked=True)),
        (Column("Failed"), whole("failed", marked=True)),
        (Column("Chance %"), percent("chance")),
        (Column("Always first %"), percent("always_first")),
        (Column("Balanced %"), percent("balanced_accuracy")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
        (Column("Runs"), whole("runs")),
    ]
    return [
        make(f"Accuracy on {name}", parts, where(rows, dataset=name), dataset=name) for name in ordered(rows, "dataset")
    ]


def _flip_parts(labels: Mapping[str, str], level: str, second: tuple[Column, Writer]) -> list[tuple[Column, Writer]]:
    return [
        (Column("Model", False), text("model", labels)),
        second,
        (Column("Flips %"), percent("flip_rate")),
        (Column(f"{level} interval"), _interval),
        (Column("Noise floor %"), percent("floor")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
        (Column("Mean margin change"), plain("mean_abs_margin_change", 2)),
        (Column("Margin moved > 0.5, %"), percent("margin_moved_over_0_5")),
        (Column("Yes, first %"), percent("yes_rate_a")),
        (Column("Yes, second %"), percent("yes_rate_b")),
    ]


def flips(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """All pairs, a table a dataset."""
    parts = _flip_parts(labels, level, (Column("Comparison", False), text("comparison")))
    if rows and "unpaired" in columns(rows):
        parts.insert(6, (Column("Pairs left out"), whole("unpaired", marked=True)))
    own = where(rows, group="all")
    return [
        make(f"Flips on {name}, all pairs", parts, where(own, dataset=name), dataset=name)
        for name in ordered(own, "dataset")
    ]


def flips_by_group(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    """A table a dataset and comparison: the kinds of pairs first, then the findings."""
    parts = _flip_parts(labels, level, (Column("Pairs of", False), text("group")))
    tables = []
    for name in ordered(rows, "dataset"):
        for comparison in ordered(where(rows, dataset=name), "comparison"):
            own = where(rows, dataset=name, comparison=comparison)
            order = {
                group: (KINDS.index(group) if group in KINDS else len(KINDS), group) for group in ordered(own, "group")
            }
            own.sort(key=lambda row: (order[row["group"]], row["model"]))
            tables.append(make(f"{comparison} on {name}", parts, own, dataset=name))
    return tables


def effects(rows: Sequence[Row], labels: Mapping[str, str], level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Difference", False), text("effect")),
        (Column("Points"), signed("estimate")),
        (Column(f"{level} interval"), _interval),
        (Column("Patients"), whole("patients")),
    ]
    return [
        make(f"Differences on {name}", parts, where(rows, dataset=name), dataset=name)
        for name in ordered(rows, "dataset")
    ]


def positions(rows: Sequence[Row], accuracy: Sequence[Row], labels: Mapping[str, str]) -> list[Presented]:
    """A row a model and setting, three columns a place, and how many answers and patients stand behind it."""
    counts = {(row["dataset"], row["model"], row["setting"]): row for row in accuracy}
    tables = []
    for name in ordered(rows, "dataset"):
        own = where(rows, dataset=name)
        places = sorted(set(ordered(own, "position")), key=float)
        merged: dict[tuple[str, str], Row] = {}
        for row in own:
            line = merged.setdefault((row["model"], row["setting"]), {k: row[k] for k in ("model", "setting")})
            behind = counts.get((name, row["model"], row["setting"]), {})
            line.update({column: behind.get(column, "") for column in ("answered", "patients")})
            line.update({f"{kind}{row['position']}": row[kind] for kind in ("gold_share", "chosen_share", "recall")})
        parts = [(Column("Model", False), text("model", labels)), (Column("Setting", False), text("setting"))]
        for place in places:
            parts += [
                (Column(f"Correct at {place}, %"), percent(f"gold_share{place}")),
                (Column(f"Chosen {place}, %"), percent(f"chosen_share{place}")),
                (Column(f"Recall at {place}, %"), percent(f"recall{place}")),
            ]
        parts += [
            (Column("Answers"), whole("answered")),
            (Column("Patients"), whole("patients")),
        ]
        tables.append(make(f"Answer positions on {name}", parts, list(merged.values()), dataset=name))
    return tables


def datasets(rows: Sequence[Row]) -> Presented:
    """All datasets in one table."""
    parts = [
        (Column("Dataset", False), text("dataset")),
        (Column("Questions"), whole("questions")),
        (Column("Studies"), whole("studies")),
        (Column("Patients"), whole("patients")),
        (Column("Words per question"), plain("words_per_question", 1)),
        (Column("Series per study"), plain("series_per_study", 1)),
        (Column("Slices a series"), plain("slices_per_series", 1)),
    ]
    for column in columns(rows):
        if column.startswith("answer_position_"):
            parts.append((Column(f"Correct at {column.removeprefix('answer_position_')}, %"), percent(column)))
    return make("The datasets", parts, rows)


def blind_hits(rows: Sequence[Row], labels: Mapping[str, str]) -> Presented:
    """The first few; the stem of a restricted dataset is blank in the table already."""

    def models(row: Row) -> Cell:
        return Cell(", ".join(labels.get(model, model) for model in row.get("models", "").split(";")), numeric=False)

    parts = [
        (Column("Dataset", False), text("dataset")),
        (Column("Topic", False), text("topic")),
        (Column("Question", False), text("stem")),
        (Column("Answered correctly by", False), models),
        (Column("Of the models asked"), _of_models),
    ]
    shown = rows[:BLIND_HITS_SHOWN]
    return make(f"Correct without image and report: the first {len(shown)} of {len(rows):,} questions", parts, shown)


def _of_models(row: Row) -> Cell:
    """`1 of 4`: the models that are named, and those that their share says were asked."""
    found, share = len(row["models"].split(";")), number(row["share_of_models"])
    return Cell(DASH if not share else f"{found} of {round(found / share)}")


def cost(rows: Sequence[Row], labels: Mapping[str, str]) -> Presented:
    """A row a dataset and model, over all its settings."""
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Dataset", False), text("dataset")),
        (Column("Answers"), whole("requests")),
        (Column("Prompt tokens"), whole("prompt_tokens")),
        (Column("Shared %"), _shared),
        (Column("Pictures encoded"), whole("images_encoded")),
        (Column("Hours"), lambda row: Cell(_scaled(row.get("seconds"), 1 / 3600, 2))),
        (Column("GPU-hours"), plain("gpu_hours", 2)),
        (Column("Dollars"), plain("dollars", 2)),
        (Column("Device", False), text("device")),
    ]
    return make("What answering cost", parts, where(rows, setting="all"))


def _shared(row: Row) -> Cell:
    asked, through = number(row.get("prompt_tokens")), number(row.get("prefilled_tokens"))
    return Cell(DASH if not asked or through is None else f"{100 * (1 - through / asked):.1f}")
