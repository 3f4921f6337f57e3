"""The tables of the image-swap audit as the report shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overread.reporting.forest import GROUPS, in_order
from overread.reporting.presented import (
    DASH,
    Cell,
    Column,
    Presented,
    Writer,
    make,
    percent,
    plain,
    signed,
    text,
    whole,
)
from overread.reporting.rows import Row, number, ordered, where
from overread.reporting.words import interval

Labels = Mapping[str, str]
MEASURES = {"accuracy": "Accuracy", "flip_rate": "Flips"}
SHOWN = {"question": "Question alone", "report": "Report", "image": "Image", "both": "Image and report"}
MODES = {"from": "From the layer on", "only": "In the layer alone"}


def significance(rows: Sequence[Row], flips: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """All tests in one table, since they are adjusted together. The interval is that of the rate over all pairs, of
    which a test with reruns uses a part.
    """
    whole_rates = {(row["dataset"], row["model"], row["comparison"]): row for row in where(flips, group="all")}

    def over_all(row: Row) -> Cell:
        found = whole_rates.get((row["dataset"], row["model"], row["comparison"]))
        return (
            Cell(DASH)
            if found is None
            else Cell(f"{percent('flip_rate')(found).text} {between('low', 'high')(found).text}")
        )

    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Dataset", False), text("dataset")),
        (Column("Image swap", False), text("comparison")),
        (Column("Report", False), text("report_shown")),
        (Column(f"Flips % [{level}]"), over_all),
        (Column("In the test %"), percent("flip_rate")),
        (Column("Asked again %"), _floor_of_test),
        (Column("Surplus, points"), signed("surplus")),
        (Column("p, one-sided"), _p("p")),
        (Column("p, Holm"), _p("p_holm")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
    ]
    return [make(f"Image swaps against the noise floor: {len(rows)} tests", parts, rows)] if rows else []


def following(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """Over all findings; each finding stands in the file."""
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Image swap", False), text("comparison")),
        (Column("Decides", False), text("primary")),
        (Column("Towards %"), percent("towards")),
        (Column("Away %"), percent("away")),
        (Column("Following, points"), signed("following")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("p, Holm"), _p("p_holm")),
        (Column("p, too small to matter"), _p("p_equivalent")),
        (Column("Whatever is missing, points"), between("bound_low", "bound_high")),
        (Column("Pairs"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Following", parts, where(rows, group="all"))


def reacting(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Image swap", False), text("comparison")),
        (Column("Floor", False), text("floor_kind")),
        (Column("Changes %"), percent("flip_rate")),
        (Column("Floor %"), percent("floor_rate")),
        (Column("Surplus, points"), signed("surplus")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Reacting", parts, rows)


def gain(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Opponent", False), text("opponent")),
        (Column("Balanced %"), percent("balanced_within")),
        (Column("Opponent's %"), percent("opponent_balanced")),
        (Column("Gain, points"), signed("gain")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Gain of the image", parts, rows)


def margin_auc(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Image swap", False), text("comparison")),
        (Column("AUC %"), percent("margin_auc")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("AUC of the margin for the label of the picture shown", parts, rows)


def noise(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Flips %"), percent("flip_rate")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
        (Column("Runs"), whole("runs")),
        (Column("Pairs left out"), whole("unpaired", marked=True)),
    ]
    return _by_dataset("The same asked again", parts, rows)


def margins(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Difference", False), text("effect")),
        (Column("Moves more in the first, %"), percent("moves_more")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Mean move, first"), plain("mean_abs_change_first", 3)),
        (Column("Mean move, second"), plain("mean_abs_change_second", 3)),
        (Column("Questions"), whole("pairs")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Moves of the margin", parts, rows)


def own_label(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """Differences are in points, like the rest of the column."""
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Comparison", False), text("comparison")),
        (Column("Setting", False), text("setting")),
        (Column("Accuracy %"), percent("accuracy_for_image")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Balanced %"), percent("balanced_accuracy_for_image")),
        (Column(f"{level} interval"), between("balanced_low", "balanced_high")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Accuracy for the image shown", parts, rows)


def modality(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Shown", False), text("shown", SHOWN)),
        (Column("Setting", False), text("setting")),
        (Column("Balanced accuracy, % or points"), percent("balanced_accuracy")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("What image and report add", parts, rows)


def layers(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Report hidden", False), text("mode", MODES)),
        (Column("Layer"), whole("layer")),
        (Column("Flips %"), percent("flip_rate")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Pairs"), whole("pairs")),
        (Column("Patients"), whole("patients")),
        (Column("Comparison", False), text("comparison")),
    ]
    return _by_dataset("The report hidden", parts, rows)


def curves(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Curve", False), text("curve")),
        (Column("Of", False), text("measure", MEASURES)),
        (Column("Dose", False), text("dose")),
        (Column("Amount"), plain("amount", 2)),
        (Column("%"), percent("rate")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Questions or pairs"), whole("observations")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Curves by dose", parts, rows)


def grounding(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """All questions first, then by topic."""
    rows = sorted(rows, key=lambda row: (row["erased"], row["asked_about"] != "all", row["asked_about"], row["model"]))
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Lesion erased", False), text("erased")),
        (Column("Control", False), text("control")),
        (Column("Questions about", False), text("asked_about", {"all": "All questions"})),
        (Column("Own picture, % correct"), percent("accuracy_own")),
        (Column("Lesion erased"), percent("accuracy_erased")),
        (Column("Control erased"), percent("accuracy_control")),
        (Column("Lesion erased, % flipped"), percent("flips_erased")),
        (Column("Control erased"), percent("flips_control")),
        (Column("Grounding, points"), signed("grounding")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("Answers"), whole("triples")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Grounding: the lesion erased, and an equal region without lesion", parts, rows)


def sight(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """All questions first, then by topic."""
    rows = sorted(rows, key=lambda row: (row["setting"], row["asked_about"] != "all", row["asked_about"], row["model"]))
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Questions about", False), text("asked_about", {"all": "All questions"})),
        (Column("Correct %"), percent("accuracy")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Chance %"), percent("chance")),
        (Column("p, one-sided"), _p("p")),
        (Column("Sees", False), text("sees")),
        (Column("Questions"), whole("questions")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Sight: questions about marks drawn on the picture", parts, rows)


def occlusion_lesion(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Setting", False), text("setting")),
        (Column("Cells per side"), whole("grid")),
        (Column("Lesion covered, % changed"), percent("changed_lesion")),
        (Column("Elsewhere"), percent("changed_elsewhere")),
        (Column("Difference, points"), signed("in_lesion")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("p, one-sided"), _p("p")),
        (Column("Weight in the lesion %"), percent("weight_in_lesion")),
        (Column("Anywhere %"), percent("area")),
        (Column("Maps"), whole("maps")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("Occlusion: cells of the lesion covered, and cells elsewhere", parts, rows)


def half_doses(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Curve", False), text("curve")),
        (Column("Dose", False), text("dose")),
        (Column("As it is, % correct"), percent("accuracy_as_is")),
        (Column("Best blind arm", False), text("blind_setting")),
        (Column("% correct"), percent("accuracy_blind")),
        (Column("Half of the gain is lost at"), text("half_dose")),
        (Column(f"{level} from"), text("half_low")),
        (Column("to"), text("half_high")),
    ]
    return _by_dataset("Half doses: how much of an edit takes half of what the picture adds", parts, rows)


RELATIONS = {"stay": "stays", "swap-sides": "changes sides", "no-finding": "denies the finding"}


def metamorphic(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    parts = [
        (Column("Model", False), text("model", labels)),
        (Column("Edited", False), text("edited")),
        (Column("The answer", False), text("relation", RELATIONS)),
        (Column("Kept %"), percent("kept")),
        (Column(f"{level} interval"), between("low", "high")),
        (Column("Unreadable %"), percent("unreadable")),
        (Column("Under the placebo %"), percent("placebo_kept")),
        (Column("Difference, points"), signed("beyond_placebo")),
        (Column(f"{level} interval"), between("beyond_low", "beyond_high")),
        (Column("Answers"), whole("expected")),
        (Column("Patients"), whole("patients")),
    ]
    return _by_dataset("What an edit must do to the answers, and how often it does", parts, rows)


def findings(rows: Sequence[Row], labels: Labels, level: str) -> list[Presented]:
    """A table a dataset and difference, in the order of the forest plot."""
    tables = []
    for dataset, effect in dict.fromkeys((row["dataset"], row["effect"]) for row in rows):
        own = where(rows, dataset=dataset, effect=effect)
        order = in_order(ordered(own, "group"))
        own.sort(key=lambda row: (order.index(row["group"]), row["model"]))
        parts = [
            (Column("Model", False), text("model", labels)),
            (Column("Pairs of", False), text("group", GROUPS)),
            (Column(f"{own[0]['first']} %"), percent("rate_first")),
            (Column(f"{level} interval"), between("low_first", "high_first")),
            (Column(f"{own[0]['second']} %"), percent("rate_second")),
            (Column(f"{level} interval"), between("low_second", "high_second")),
            (Column("Difference, points"), signed("difference")),
            (Column(f"{level} interval"), between("low", "high")),
            (Column("Noise floor %"), percent("floor")),
            (Column("Pairs"), whole("pairs")),
            (Column("Patients"), whole("patients")),
        ]
        tables.append(make(f"{effect} on {dataset}, by finding", parts, own, dataset=dataset))
    return tables


def between(low: str, high: str) -> Writer:
    """The interval between two columns."""
    return lambda row: Cell(interval(number(row[low]), number(row[high])) or DASH)


def _by_dataset(caption: str, parts: list[tuple[Column, Writer]], rows: Sequence[Row]) -> list[Presented]:
    return [
        make(f"{caption}: {name}", parts, where(rows, dataset=name), dataset=name) for name in ordered(rows, "dataset")
    ]


def _floor_of_test(row: Row) -> Cell:
    return percent("floor_rate")(row) if row["floor_basis"] == "measured" else Cell("not measured")


def _p(name: str) -> Writer:
    def write(row: Row) -> Cell:
        value = number(row[name])
        return Cell(DASH if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}")

    return write
