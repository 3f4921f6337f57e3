"""The figures show what the tables say, whatever is missing, and always in the same bytes."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from overread.core.errors import BadInput
from overread.reporting import curves, forest, plots
from overread.reporting.plots import FIGURES, draw
from overread.reporting.rows import Row, declared
from overread.reporting.style import COLOURS, MARKERS, marks

Rows = list[dict[str, object]]
TABLES = (
    "accuracy", "flips", "findings", "layers", "curves", "modality", "effects", "positions", "margins", "own_label",
    "occlusion",
)  # fmt: skip


def write_tables(folder: Path, **tables: Rows) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, declared(name), lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(tables.get(name, []))
    return folder


def accuracy(model: str = "a", setting: str = "own", value: object = 0.6, **more: object) -> dict[str, object]:
    base = {"dataset": "mri", "model": model, "setting": setting, "accuracy": value, "low": 0.5, "high": 0.7}
    return base | {"chance": 0.25, "always_first": 0.847} | more


def flip(model: str = "a", group: str = "all", rate: object = 0.2, **more: object) -> dict[str, object]:
    base = {"dataset": "xray", "model": model, "comparison": "swap", "group": group, "flip_rate": rate}
    return base | {"low": 0.1, "high": 0.3} | more


def position(model: str = "a", place: int = 1, gold: object = 0.8, chosen: object = 0.5) -> dict[str, object]:
    base = {"dataset": "mri", "model": model, "setting": "own", "position": place}
    return base | {"gold_share": gold, "chosen_share": chosen}


def effect(model: str = "a", estimate: object = -0.1, **more: object) -> dict[str, object]:
    base = {"dataset": "mri", "model": model, "effect": "gain", "estimate": estimate, "low": -0.2, "high": 0.05}
    return base | more


def small() -> dict[str, Rows]:
    return {
        "accuracy": [accuracy(), accuracy("b", value=0.4, low=0.3, high=0.45), accuracy("b", "black")],
        "flips": [flip(), flip(group="Edema", rate=0.3), flip(group="label-changed", rate=0.25), flip("b", rate=0.05)],
        "effects": [effect(), effect("b", 0.2, low=0.1, high=0.3)],
        "positions": [position(place=place, gold=gold) for place, gold in ((1, 0.8), (2, 0.2))],
    }


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The first page of each figure by name, kept as it is saved; under `<name>-pages` all of them."""
    kept: dict[str, Any] = {}

    def keep(figures: list[Any], rows: list[Row], columns: list[str], out: Path, name: str) -> None:
        kept[name], kept[f"{name}-pages"] = figures[0], figures

    for module in (plots, forest, curves):
        monkeypatch.setattr(module, "save_pages", keep)
    return kept


def points(axis: Any) -> list[float]:
    """Where markers stand along x, whatever their model."""
    return sorted(
        round(float(line.get_xdata()[0]), 6) for line in axis.lines if line.get_marker() not in ("None", None, "")
    )


def bars(axis: Any) -> list[tuple[float, float]]:
    """The ends of horizontal intervals."""
    lines = [
        line.get_xdata()
        for line in axis.lines
        if line.get_marker() in ("None", None, "") and len(line.get_xdata()) == 2
    ]
    return sorted((round(float(x[0]), 6), round(float(x[1]), 6)) for x in lines if x[0] != x[1])


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# -- files -----------------------------------------------------------------------------------------------------------


def test_every_figure_comes_as_svg_png_and_csv(tmp_path: Path) -> None:
    draw(write_tables(tmp_path / "tables", **small()), {"a": "Model A"}, tmp_path / "figures")
    assert set(content(tmp_path / "figures")) == {
        f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png", "csv")
    }
    for name in FIGURES:
        assert ElementTree.parse(tmp_path / "figures" / f"{name}.svg").getroot().tag.endswith("svg")
        with Image.open(tmp_path / "figures" / f"{name}.png") as image:
            assert image.width == 1440  # 7.2 inches at 200 dots an inch


def test_the_same_tables_give_the_same_bytes_whatever_the_users_settings(tmp_path: Path) -> None:
    import matplotlib

    tables = write_tables(tmp_path / "tables", **small())
    draw(tables, {}, tmp_path / "one")
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.hashsalt": "other", "savefig.dpi": 40}):
        draw(tables, {}, tmp_path / "two")
        assert matplotlib.rcParams["font.size"] == 20
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_figure_changes_with_its_numbers(tmp_path: Path) -> None:
    draw(write_tables(tmp_path / "tables", **small()), {}, tmp_path / "one")
    changed = small()
    changed["accuracy"][0]["accuracy"] = 0.61
    draw(write_tables(tmp_path / "tables", **changed), {}, tmp_path / "two")
    one, two = content(tmp_path / "one"), content(tmp_path / "two")
    assert {name for name in one if one[name] != two[name]} == {"accuracy.svg", "accuracy.png", "accuracy.csv"}


def test_no_date_and_no_version_stands_in_a_figure(tmp_path: Path) -> None:
    draw(write_tables(tmp_path / "tables", **small()), {}, tmp_path / "figures")
    for name in FIGURES:
        text = (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert "<dc:date>" not in text
        assert "<dc:creator>" not in text
        with Image.open(tmp_path / "figures" / f"{name}.png") as image:
            assert not {"Software", "Creation Time"} & set(image.info)


def test_the_data_beside_a_figure_are_the_rows_that_it_shows(tmp_path: Path) -> None:
    tables = small()
    tables["accuracy"].append(accuracy("c", value=""))
    draw(write_tables(tmp_path / "tables", **tables), {}, tmp_path / "figures")
    lines = (tmp_path / "tables" / "accuracy.csv").read_text(encoding="utf-8").splitlines()
    assert (tmp_path / "figures" / "accuracy.csv").read_text(encoding="utf-8").splitlines() == lines[:-1]
    with (tmp_path / "figures" / "flips.csv").open(encoding="utf-8") as file:
        assert {row["group"] for row in csv.DictReader(file)} == {"all"}


# -- what is drawn ---------------------------------------------------------------------------------------------------


def test_accuracy_stands_at_its_value_between_the_ends_of_its_interval(tmp_path: Path, drawn: dict[str, Any]) -> None:
    draw(write_tables(tmp_path, **small()), {}, tmp_path)
    (axis,) = drawn["accuracy"].axes
    assert points(axis) == [40.0, 60.0, 60.0]
    assert bars(axis) == [(30.0, 45.0), (50.0, 70.0), (50.0, 70.0)]


def test_both_baselines_are_drawn_in_every_band(tmp_path: Path, drawn: dict[str, Any]) -> None:
    draw(write_tables(tmp_path, **small()), {}, tmp_path)
    (axis,) = drawn["accuracy"].axes
    upright = [
        float(line.get_xdata()[0])
        for line in axis.lines
        if len(line.get_xdata()) == 2 and line.get_xdata()[0] == line.get_xdata()[1]
    ]
    assert sorted(upright) == [25.0, 25.0, 84.7, 84.7]


def test_a_value_without_an_interval_is_hollow_and_has_no_bar(tmp_path: Path, drawn: dict[str, Any]) -> None:
    draw(write_tables(tmp_path, accuracy=[accuracy(low="", high="")]), {}, tmp_path)
    (axis,) = drawn["accuracy"].axes
    assert bars(axis) == []
    assert [line.get_markerfacecolor() for line in axis.lines if line.get_marker() == "o"] == ["white"]


def test_each_dataset_has_its_panel_with_its_own_settings(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [accuracy(), accuracy(setting="black"), accuracy(setting="xray", dataset="xray")]
    draw(write_tables(tmp_path, accuracy=rows), {}, tmp_path)
    axes = drawn["accuracy"].axes
    assert [axis.get_title(loc="left") for axis in axes] == ["mri", "xray"]
    assert [[label.get_text() for label in axis.get_yticklabels()] for axis in axes] == [["own", "black"], ["xray"]]


def test_a_model_looks_the_same_in_every_figure_and_is_called_by_its_label(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    tables = small()
    tables["effects"] = [effect("b")]
    draw(write_tables(tmp_path, **tables), {"b": "Model B"}, tmp_path)
    looks = {
        (handle.get_color(), handle.get_marker())
        for name in ("accuracy", "flips", "effects")
        for handle, text in zip(drawn[name].legends[0].legend_handles, drawn[name].legends[0].texts, strict=True)
        if text.get_text() == "Model B"
    }
    assert looks == {(COLOURS[1], MARKERS[1])}
    assert "a" not in [text.get_text() for text in drawn["effects"].legends[0].texts]


def test_differences_are_drawn_whole_on_either_side_of_zero(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [effect(), effect("b", 0.62, low=0.5, high=0.71, dataset="xray")]
    draw(write_tables(tmp_path, effects=rows), {}, tmp_path)
    for axis in drawn["effects"].axes:
        low, high = axis.get_xlim()
        assert low < -20 and high > 71
        assert 0.0 in [float(line.get_xdata()[0]) for line in axis.lines]


def test_the_forest_has_kinds_of_pairs_on_top_and_findings_in_order_below(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    groups = ["Pneumonia", "label-unchanged", "Edema", "all", "across-patients"]
    rows = [flip(group=group) for group in groups] + [flip(group="all", comparison="with-report")]
    draw(write_tables(tmp_path, flips=rows), {}, tmp_path)
    left, right = drawn["flips_by_finding"].axes
    expected = ["All pairs", "Correct answer is the same", "Image of another patient", "Edema", "Pneumonia"]
    assert [label.get_text() for label in left.get_yticklabels()] == expected
    assert [axis.get_title(loc="left") for axis in (left, right)] == ["xray\nswap", "xray\nwith-report"]
    assert (len(points(left)), len(points(right))) == (5, 1)


def test_positions_show_where_answers_should_stand_and_where_they_do(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [
        position(place=1),
        position(place=2, gold=0.2, chosen=0.1),
        position("b", 1, chosen=""),
        position("b", 2, 0.2),
    ]
    draw(write_tables(tmp_path, positions=rows), {}, tmp_path)
    axis = drawn["positions"].axes[0]
    assert [round(bar.get_height(), 6) for bar in axis.patches] == [80.0, 20.0, 80.0, 20.0]
    assert [round(float(line.get_ydata()[0]), 6) for line in axis.lines] == [50.0, 10.0, 50.0]


def test_settings_keep_their_order_where_models_lack_some(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [accuracy("a", "1"), accuracy("a", "4"), accuracy("b", "1"), accuracy("b", "2"), accuracy("b", "4")]
    draw(write_tables(tmp_path, accuracy=rows), {}, tmp_path)
    assert [label.get_text() for label in drawn["accuracy"].axes[0].get_yticklabels()] == ["1", "2", "4"]


# -- the noise floor, the forest, the layer curves, modality -----------------------------------------------------------


def floors(axis: Any) -> list[tuple[float, float]]:
    """The ends of the noise floors' bands."""
    from matplotlib.patches import Rectangle

    found = [one for one in axis.patches if isinstance(one, Rectangle) and 0.99 < one.get_height() < 1.01]
    return sorted((round(one.get_x(), 6), round(one.get_x() + one.get_width(), 6)) for one in found)


def words(axis: Any) -> list[str]:
    return [one.get_text() for one in axis.texts]


def legend_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].texts]


def test_a_noise_floor_stands_behind_its_flip_rate(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [flip(floor=0.03, floor_low=0.01, floor_high=0.06), flip("b")]
    draw(write_tables(tmp_path, flips=rows), {}, tmp_path)
    for name in ("flips", "flips_by_finding"):
        axis = drawn[name].axes[0]
        assert floors(axis) == [(1.0, 6.0)]
        assert 3.0 in [round(float(line.get_xdata()[0]), 6) for line in axis.lines if len(line.get_xdata()) == 2]
        assert words(axis) == ["?"], "said where b has none"
        assert "Noise floor (the same asked again; ?: one run)" in legend_of(drawn[name])


def test_where_no_noise_floor_was_measured_the_legend_says_so(tmp_path: Path, drawn: dict[str, Any]) -> None:
    draw(write_tables(tmp_path, **small()), {}, tmp_path)
    for name in ("flips", "flips_by_finding"):
        assert "Noise floor not measured: one run" in legend_of(drawn[name])
        assert floors(drawn[name].axes[0]) == [] and words(drawn[name].axes[0]) == []
    assert not [text for text in legend_of(drawn["accuracy"]) if "oise" in text]


def finding(group: str = "all", model: str = "a", first: float = 0.3, second: float = 0.1) -> dict[str, object]:
    return {
        "dataset": "xray", "model": model, "effect": "effect", "group": group, "first": "without", "second": "with",
        "rate_first": first, "low_first": first - 0.05, "high_first": first + 0.05, "rate_second": second,
        "low_second": second - 0.02, "high_second": second + 0.02, "difference": first - second, "low": 0.1,
        "high": 0.25, "floor": 0.01, "floor_low": 0.0, "floor_high": 0.02,
    }  # fmt: skip


def test_the_forest_has_both_rates_side_by_side_and_their_difference(tmp_path: Path, drawn: dict[str, Any]) -> None:
    rows = [finding("Edema", first=0.5), finding(), finding(model="b", first=0.4)]
    draw(write_tables(tmp_path, flips=[flip(), flip("b")], findings=rows), {}, tmp_path)
    first, second, difference = drawn["findings"].axes
    titles = [axis.get_title(loc="left") for axis in (first, second, difference)]
    assert titles == ["xray\nwithout", "\nwith", "\neffect"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["All pairs", "Edema"]
    assert (points(first), points(second), points(difference)) == ([30, 40, 50], [10, 10, 10], [20, 30, 40])
    assert bars(second).count((8.0, 12.0)) == bars(difference).count((10.0, 25.0)) == 3
    assert floors(first) == floors(second) == [(0.0, 2.0)] * 3 and floors(difference) == []


def layer(number: int, rate: float, model: str = "a", mode: str = "from") -> dict[str, object]:
    return {
        "dataset": "xray", "model": model, "mode": mode, "layer": number, "flip_rate": rate, "low": rate - 0.02,
        "high": rate + 0.02, "comparison": f"hiding-{mode}-{number}", "in_view": "with", "no_report": "without",
    }  # fmt: skip


def test_layer_curves_stand_between_their_two_lines_and_out_of_the_other_figures(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    layers = [layer(10, 0.05), layer(0, 0.08), layer(2, 0.06), layer(0, 0.02, mode="only")]
    flips = [flip(comparison=str(one["comparison"]), rate=one["flip_rate"]) for one in layers]
    flips += [flip(comparison="with", rate=0.04, floor=0.01, floor_low=0.0, floor_high=0.02)]
    flips += [flip(comparison="without", rate=0.12)]
    draw(write_tables(tmp_path, flips=flips, layers=layers), {}, tmp_path)
    whole, single = drawn["layers"].axes
    assert [axis.get_title(loc="left").splitlines()[1] for axis in (whole, single)] == [
        "Report hidden from a layer on", "Report hidden in one layer",
    ]  # fmt: skip
    curve = next(line for line in whole.lines if line.get_marker() == MARKERS[0])
    assert list(curve.get_xdata()) == [0, 2, 10], "layers in order, as numbers"
    assert [round(float(y), 6) for y in curve.get_ydata()] == [8, 6, 5]
    lines = {line.get_linestyle(): round(float(line.get_ydata()[0]), 6) for line in whole.lines}
    assert (lines["--"], lines[":"]) == (4.0, 12.0)
    assert legend_of(drawn["layers"])[1:] == [
        "Report in full view",
        "No report",
        "Noise floor (the same asked again; ?: one run)",
    ]
    assert [label.get_text() for label in drawn["flips"].axes[0].get_yticklabels()] == ["with", "without"]


def test_a_curve_has_a_panel_of_its_measure_over_its_dose(tmp_path: Path, drawn: dict[str, Any]) -> None:
    """Of layers from which the report is hidden the accuracy is drawn here, and the flips in their own figure."""

    def curve(measure: str, amount: float, rate: float, about: str, dose: str = "blur") -> dict[str, object]:
        return {
            "dataset": "xray", "model": "a", "curve": f"{dose}red", "measure": measure, "dose": dose, "amount": amount,
            "rate": rate, "low": rate - 0.1, "high": rate + 0.1, "observations": 9, "patients": 9, "about": about,
        }  # fmt: skip

    rows = [curve("accuracy", 2.5, 0.6, "b"), curve("accuracy", 0, 0.9, "a"), curve("flip_rate", 2.5, 0.3, "swap-b")]
    rows += [curve("flip_rate", 0, 0.4, "swap-a"), curve("flip_rate", 0, 0.5, "hiding-from-0", "attention-from")]
    flips = [flip(comparison="hiding-from-0")]
    draw(write_tables(tmp_path, flips=flips, layers=[layer(0, 0.5)], curves=rows), {}, tmp_path)
    correct, moved = drawn["curves"].axes
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in (correct, moved)] == [
        ("blur", "Accuracy (%)"), ("blur", "Answers that flip (%)"),
    ]  # fmt: skip
    line = next(one for one in correct.lines if one.get_marker() == MARKERS[0])
    assert (list(line.get_xdata()), [round(float(y), 6) for y in line.get_ydata()]) == ([0, 2.5], [90, 60])


def test_the_data_of_the_layer_curves_hold_their_lines_and_the_noise_floor(tmp_path: Path) -> None:
    flips = [flip(comparison="hiding-from-0"), flip(comparison="without", rate=0.12)]
    flips.append(flip(comparison="with", rate=0.04, floor=0.01, floor_low=0.0, floor_high=0.02))
    draw(write_tables(tmp_path / "tables", flips=flips, layers=[layer(0, 0.08)]), {}, tmp_path / "figures")
    with (tmp_path / "figures" / "layers.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["flip_rate"], row["in_view_rate"], row["no_report_rate"]) == ("0.08", "0.04", "0.12")
    assert (row["floor"], row["floor_low"], row["floor_high"]) == ("0.01", "0.0", "0.02")


def test_margins_stand_between_0_and_100(tmp_path: Path, drawn: dict[str, Any]) -> None:
    row = {"dataset": "xray", "model": "a", "effect": "report-effect", "moves_more": 0.829, "low": 0.8, "high": 0.85}
    draw(write_tables(tmp_path, accuracy=[accuracy()], margins=[row]), {}, tmp_path)
    (axis,) = drawn["margins"].axes
    assert (points(axis), bars(axis)) == ([82.9], [(80.0, 85.0)])
    assert axis.get_xlim()[0] < 0 and axis.get_xlim()[1] > 100


def test_both_arms_of_a_swap_are_scored_for_their_own_image_and_no_difference_is_drawn(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    base = {"dataset": "xray", "model": "a", "comparison": "swap", "low": "", "high": ""}
    rows = [
        {**base, "arm": "first", "setting": "own", "accuracy_for_image": 0.648},
        {**base, "arm": "second", "setting": "swapped", "accuracy_for_image": 0.589},
        {**base, "arm": "difference", "setting": "own - swapped", "accuracy_for_image": 0.059},
    ]
    draw(write_tables(tmp_path, accuracy=[accuracy()], own_label=rows), {}, tmp_path)
    (axis,) = drawn["own_label"].axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["swap: own", "swap: swapped"]
    assert points(axis) == [58.9, 64.8]


def test_two_sweeps_read_against_the_same_are_told_apart_by_name(tmp_path: Path, drawn: dict[str, Any]) -> None:
    other = [{**layer(place, 0.1), "comparison": f"other-from-{place}"} for place in (0, 1)]
    draw(write_tables(tmp_path, flips=[flip()], layers=[layer(0, 0.1), layer(1, 0.1), *other]), {}, tmp_path)
    assert [axis.get_title(loc="left").splitlines()[-1] for axis in drawn["layers"].axes] == ["hiding", "other"]


def test_modality_shows_each_setting_once_and_no_difference(tmp_path: Path, drawn: dict[str, Any]) -> None:
    base = {"dataset": "xray", "model": "a", "view": "frontal", "low": 0.5, "high": 0.7}
    rows = [
        {**base, "shown": "report", "setting": "r", "balanced_accuracy": 0.6},
        {**base, "shown": "both", "setting": "b", "balanced_accuracy": 0.65},
        {**base, "shown": "image added to the report", "setting": "b - r", "balanced_accuracy": 0.05},
        {**base, "shown": "report", "setting": "r", "balanced_accuracy": 0.6},
    ]
    draw(write_tables(tmp_path, accuracy=[accuracy()], modality=rows), {}, tmp_path)
    (axis,) = drawn["modality"].axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Report: r", "Image and report: b"]
    assert points(axis) == [60.0, 65.0]


# -- odd tables ------------------------------------------------------------------------------------------------------


def test_tables_without_rows_give_figures_that_say_so(tmp_path: Path) -> None:
    draw(write_tables(tmp_path / "tables"), {}, tmp_path / "figures")
    assert len(content(tmp_path / "figures")) == 3 * len(FIGURES)
    assert (tmp_path / "figures" / "flips.csv").read_text(encoding="utf-8") == ",".join(declared("flips")) + "\n"


def test_twelve_models_and_twenty_settings_with_gaps_go_over_pages_that_print_and_overlap_nowhere(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    models, settings = [f"model-{n:02d}" for n in range(12)], [f"setting-{n:02d}" for n in range(20)]
    rows = [
        accuracy(model, setting, 0.3 + 0.02 * i, low="" if (i + j) % 7 == 0 else 0.2)
        for i, model in enumerate(models)
        for j, setting in enumerate(settings)
        if (i * j) % 5 != 1
    ]
    draw(write_tables(tmp_path, accuracy=rows), {}, tmp_path)
    points_drawn, names = 0, []
    for figure in drawn["accuracy-pages"]:
        (axis,) = figure.axes
        heights = [float(line.get_ydata()[0]) for line in axis.lines if line.get_marker() in MARKERS]
        assert len(heights) == len(set(heights))
        points_drawn += len(heights)
        names += [label.get_text() for label in axis.get_yticklabels()]
        inches = figure.get_size_inches()[1]
        assert 72 * (inches - 1.5) / axis.get_ylim()[0] > 5, "points a row: a marker is 5 points high"
        assert inches < 10.2, "A4 less its margins and a caption"
        assert len(legend_of(figure)) == 14, "each page can be read by itself"
    assert points_drawn == len(rows)
    assert names == settings, "each setting once, in order"
    assert len(drawn["accuracy-pages"]) > 1


def test_a_figure_of_several_pages_is_written_under_numbers_with_all_its_data_in_one_file(tmp_path: Path) -> None:
    rows = [accuracy(f"m{model}", f"setting-{n:02d}") for model in range(6) for n in range(30)]
    draw(write_tables(tmp_path / "tables", accuracy=rows), {}, tmp_path / "figures")
    pages = {name for name in content(tmp_path / "figures") if name.startswith("accuracy")}
    assert {"accuracy.svg", "accuracy.png", "accuracy-2.svg", "accuracy-2.png", "accuracy.csv"} <= pages
    assert "accuracy-2.csv" not in pages
    with (tmp_path / "figures" / "accuracy.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 180


def test_pages_of_a_forest_keep_the_groups_of_a_dataset_together_where_they_fit(
    tmp_path: Path, drawn: dict[str, Any]
) -> None:
    """Two datasets of 16 groups and 3 models: 64 rows each, so that each has a page of its own, with all groups."""
    groups = ["all", *(f"Finding {n:02d}" for n in range(15))]
    rows = [flip(f"m{m}", group, dataset=dataset) for dataset in ("one", "two") for group in groups for m in range(3)]
    draw(write_tables(tmp_path, flips=rows), {}, tmp_path)
    first, second = drawn["flips_by_finding-pages"]
    for figure, dataset in ((first, "one"), (second, "two")):
        axis = figure.axes[0]
        assert axis.get_title(loc="left") == f"{dataset}\nswap"
        assert len(axis.get_yticklabels()) == 16 and len(points(axis)) == 48


def test_twelve_models_are_told_apart_by_marker_alone_and_by_colour_beside_it() -> None:
    looks = marks([f"model-{n:02d}" for n in range(12)], {})
    assert len({mark.marker for mark in looks.values()}) == 12
    many = marks([f"model-{n:02d}" for n in range(60)], {})
    assert len({(mark.marker, mark.colour) for mark in many.values()}) == 60


def test_colours_are_those_of_okabe_and_ito() -> None:
    published = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    assert set(COLOURS) == published - {"#F0E442"}


@pytest.mark.parametrize("name", TABLES)
def test_a_missing_table_is_named(tmp_path: Path, name: str) -> None:
    tables = write_tables(tmp_path / "tables", **small())
    (tables / f"{name}.csv").unlink()
    with pytest.raises(BadInput, match=rf"{name}\.csv: no such file"):
        draw(tables, {}, tmp_path / "figures")


def test_a_missing_column_and_a_word_for_a_number_are_named(tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables", **small())
    path = tables / "effects.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("estimate", "guess"), encoding="utf-8")
    with pytest.raises(BadInput, match=r"effects\.csv: no column estimate"):
        draw(tables, {}, tmp_path / "figures")
    write_tables(tables, accuracy=[accuracy(value="high")])
    with pytest.raises(BadInput, match="'high'"):
        draw(tables, {}, tmp_path / "figures")
