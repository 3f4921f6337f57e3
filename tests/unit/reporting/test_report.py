"""The report holds everything, says what the tables say, gives away nothing restricted, and needs nothing else."""

from __future__ import annotations

import base64
import copy
import csv
import io
import itertools
import re
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import made
import pytest
from PIL import Image
from report_run import Page, Run, make_run

from overread.core.errors import BadInput
from overread.core.records import read_trials
from overread.reporting.plots import FIGURES
from overread.reporting.report import write


@pytest.fixture(scope="module")
def page(small: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    return small.page(tmp_path_factory.mktemp("page") / "report.html")


# -- one file that needs nothing else --------------------------------------------------------------------------------


def test_the_file_is_whole_and_asks_for_nothing(page: str) -> None:
    parsed = Page(page)
    for element in parsed.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = element.attributes.get(name, "#")
            assert value.startswith(("data:", "#")), f"<{element.tag} {name}={value[:60]}>"
    assert not parsed.all("script", "iframe", "object", "embed", "base", "form")
    assert not re.search(r"\burl\(|@import", page)
    assert not [name for one in parsed.elements for name in one.attributes if name.startswith("on")]
    policy = next(one for one in parsed.all("meta") if one.attributes.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy.attributes["content"]


def test_a_rerun_gives_the_same_bytes_whatever_the_order_of_the_config(small: Run, page: str, tmp_path: Path) -> None:
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in small.spec.items()
    }
    turned["cells"] = list(reversed(small.spec["cells"]))
    write(small.folder, dict(reversed(turned.items())), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_no_date_and_no_clock_time_stands_in_it(page: str) -> None:
    text = re.sub(r"data:[^\"]*", "", page)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text)


def test_the_contents_lead_to_every_section_and_every_link_to_a_place(page: str) -> None:
    parsed = Page(page)
    ids = [one.attributes["id"] for one in parsed.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = [one.attributes["href"][1:] for one in parsed.all("a") if "download" not in one.attributes]
    assert set(targets) <= set(ids)
    assert {one.attributes["id"] for one in parsed.all("h2") if "id" in one.attributes} <= set(targets)


def test_headings_leave_no_level_out_and_pictures_say_what_they_show(page: str) -> None:
    parsed = Page(page)
    levels = [int(one.tag[1]) for one in parsed.all("h1", "h2", "h3", "h4", "h5")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(len(one.attributes["alt"]) > 10 for one in parsed.all("img"))
    assert parsed.all("html")[0].attributes["lang"].startswith("en")


def test_every_labelled_region_has_its_label(page: str) -> None:
    parsed = Page(page)
    ids = {one.attributes.get("id") for one in parsed.elements}
    for one in parsed.elements:
        if "aria-labelledby" in one.attributes:
            assert one.attributes["aria-labelledby"] in ids


def test_tables_and_figures_are_numbered_in_order_and_every_table_has_a_caption_and_heads(page: str) -> None:
    parsed = Page(page)
    captions = [" ".join(one.text.split()) for one in parsed.all("caption")]
    assert len(captions) == len(parsed.all("table")) > 20
    assert [int(one.split(".")[0].removeprefix("Table ")) for one in captions] == list(range(1, len(captions) + 1))
    figures = [one.text.strip() for one in parsed.all("figcaption") if one.text.strip().startswith("Figure")]
    assert [int(one.split(".")[0].removeprefix("Figure ")) for one in figures] == list(range(1, len(FIGURES) + 1))
    assert all(one.attributes.get("scope") in ("col", "row") for one in parsed.all("th"))


def test_every_figure_and_every_table_of_estimates_is_given_along_as_the_file_on_disk(small: Run, page: str) -> None:
    links = {one.text: one.attributes for one in Page(page).all("a") if "download" in one.attributes}
    kept = {f"figures/{name}.csv" for name in FIGURES}
    kept |= {f"tables/{path.name}" for path in (small.folder / "tables").glob("*.csv")} - {"tables/blind_hits.csv"}
    assert set(links) == kept
    for path, attributes in links.items():
        start, content = attributes["href"].split(",")
        assert start == "data:text/csv;charset=utf-8;base64"
        assert base64.b64decode(content) == (small.folder / path).read_bytes()
        assert attributes["download"] == path.split("/")[1]


# -- it says what the tables say -------------------------------------------------------------------------------------


def test_every_accuracy_stands_in_it_with_its_interval_and_its_counts(small: Run, page: str) -> None:
    rows = Page(page).rows()
    with (small.folder / "tables" / "accuracy.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert len(table) > 20
    for one in table:
        label = small.spec["models"][one["model"]]["label"]
        (shown,) = [row for row in rows if row[:2] == [label, one["setting"]] and len(row) == 15 and row[3][0] == "["]
        low, high = (f"{100 * float(one[name]):.1f}" for name in ("low", "high"))
        assert shown[2:4] == [f"{100 * float(one['accuracy']):.1f}", f"[{low}, {high}]"]
        assert shown[4:9] == [one[name] for name in ("answered", "unparsed", "refused", "truncated", "failed")]


def test_every_flip_rate_and_every_difference_stands_in_it(small: Run, page: str) -> None:
    rows = Page(page).rows()
    with (small.folder / "tables" / "flips.csv").open(encoding="utf-8") as file:
        flips = list(csv.DictReader(file))
    curves = {"hiding-from-0", "hiding-from-8"}
    assert curves < {one["comparison"] for one in flips}
    for one in [one for one in flips if one["comparison"] not in curves]:
        label, name = small.spec["models"][one["model"]]["label"], one["group"]
        name = one["comparison"] if name == "all" else name
        wanted = [label, name, f"{100 * float(one['flip_rate']):.1f}"]
        assert [row for row in rows if row[:3] == wanted and one["pairs"] in row], wanted
    with (small.folder / "tables" / "effects.csv").open(encoding="utf-8") as file:
        effects = list(csv.DictReader(file))
    for one in effects:
        label, value = small.spec["models"][one["model"]]["label"], float(one["estimate"])
        sign = "" if abs(value) < 5e-4 else "+" if value > 0 else "\N{MINUS SIGN}"
        wanted = [label, one["effect"], f"{sign}{abs(100 * value):.1f}"]
        assert [row for row in rows if row[:3] == wanted], wanted


def scaled(text: str, digits: int = 1, scale: float = 100) -> str:
    return "\N{EN DASH}" if not text else f"{scale * float(text):.{digits}f}".replace("-0.0", "0.0")


def test_the_tables_of_the_audit_stand_in_it_row_by_row(small: Run, page: str) -> None:
    """Each row of these tables is found by its names and its number."""
    rows = Page(page).rows()
    kinds: dict[str, Callable[[dict[str, str]], list[str]]] = {
        "noise": lambda row: [row["setting"], scaled(row["flip_rate"])],
        "margins": lambda row: [row["effect"], scaled(row["moves_more"])],
        "own_label": lambda row: [
            row["comparison"],
            row["setting"],
            scaled(row["accuracy_for_image"]).replace("-", "\N{MINUS SIGN}"),
        ],
        "layers": lambda row: ["From the layer on", row["layer"], scaled(row["flip_rate"])],
        "modality": lambda row: [row["setting"], scaled(row["balanced_accuracy"]).replace("-", "\N{MINUS SIGN}")],
        "significance": lambda row: [row["dataset"], row["comparison"], scaled(row["flip_rate"])],
    }
    for name, key in kinds.items():
        with (small.folder / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        assert table, name
        for one in table:
            label, wanted = small.spec["models"][one["model"]]["label"], key(one)
            assert [row for row in rows if row[0] == label and set(wanted) <= set(row)], (name, label, wanted)


def test_each_verdict_says_how_far_answers_follow_and_which_floor_was_not_measured(page: str) -> None:
    cards = {one.attributes["id"]: " ".join(one.text.split()) for one in Page(page).all("article")}
    blind, reader = cards["verdict-xray-blind-reader"], cards["verdict-xray-reader"]
    assert "Cannot tell whether it uses the image.Its answers follow the picture that is shown by 0.0" in blind
    assert "Reads the image.Its answers follow the picture that is shown by +68.3" in reader
    for card in (blind, reader):
        assert "neither a rerun nor a placebo was run" in card
    assert "too few patients" in cards["verdict-mri-reader"]


def test_the_first_screen_tells_each_data_set_in_a_sentence(page: str) -> None:
    told = [one.text for one in Page(page).all("p") if one.attributes.get("class") == "summary"]
    assert len(told) == 2
    assert told[1].startswith("Of 3 models, 1 reads the image and 2 are undecided")


def test_numbers_that_could_not_be_used_stand_out(page: str) -> None:
    marked = [one.text for one in Page(page).all("td") if "marked" in one.attributes.get("class", "")]
    assert marked and "0" not in marked


def test_every_figure_is_in_it_as_drawn_with_all_its_pages(small: Run, page: str) -> None:
    drawn = list((small.folder / "figures").glob("*.svg"))
    assert len(drawn) >= len(FIGURES)
    for path in drawn:
        assert f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}" in page, path.name


def test_it_says_who_was_asked_under_what_and_what_was_not_run(small: Run, page: str) -> None:
    text = Page(page).all("body")[0].text
    for model in small.spec["models"].values():
        assert model["label"] in text
    for setting in {cell["setting"] for cell in small.spec["cells"]}:
        assert setting in text
    assert "left out here" in text
    assert small.spec["config_hash"] in text
    assert "1 study could not be used (the file is cut short)" in " ".join(text.split())
    assert "ModaLens" in text and "UCSF-PDGM-VQA" in text
    versions = dict(re.findall(r"(\w+) (\d+\.\d+\.\d+)", text))
    assert versions["matplotlib"] == metadata.version("matplotlib")


def test_what_was_not_run_is_told_once_for_all_settings_with_the_same_reason(small: Run, tmp_path: Path) -> None:
    shared = {"dataset": "mri", "model": "reader", "when": "missing", "why": "its weights are not here"}
    left_out = [{**shared, "setting": "montage"}, {**shared, "setting": "layers"}]
    left_out.append({**shared, "setting": "volume", "when": "never", "why": "it takes no volumes"})
    rows = Page(small.page(tmp_path / "report.html", not_run=left_out)).rows()
    label = small.spec["models"]["reader"]["label"]
    assert ["mri", label, "layers, montage", "something is missing", "its weights are not here"] in rows
    assert ["mri", label, "volume", "never", "it takes no volumes"] in rows
    assert "Everything that was asked for was run." in small.page(tmp_path / "report.html", not_run=[])


def test_too_few_patients_give_no_verdict_and_enough_give_one(page: str) -> None:
    """The MRI dataset has four patients, the X-rays twelve; the reader follows images, the first option does not."""
    parsed = Page(page)
    cards = {one.attributes["id"]: one.text for one in parsed.all("article")}
    assert "too few patients" in cards["verdict-mri-reader"]
    assert "Reads the image" not in cards["verdict-mri-reader"]
    assert "Reads the image" in cards["verdict-xray-reader"]
    assert "Cannot tell whether it uses the image" in cards["verdict-xray-first-option"]
    assert "It gives nearly always the same answer" in cards["verdict-xray-first-option"]


# -- semi-synthetic and restricted data ------------------------------------------------------------------------------


def test_semi_synthetic_data_are_called_so_in_large_and_beside_each_table(page: str) -> None:
    parsed = Page(page)
    (banner,) = [one for one in parsed.all("div") if "banner made" in one.attributes.get("class", "")]
    assert "Semi-synthetic data" in banner.text and "mri, xray" in banner.text
    captions = [one.text for one in parsed.all("caption") if " on mri" in one.text or " on xray" in one.text]
    assert len(captions) > 8 and all("semi-synthetic" in one for one in captions)
    assert not [one for one in parsed.all("div") if "banner restricted" in one.attributes.get("class", "")]


def test_nothing_that_was_shown_of_a_restricted_study_is_in_it(restricted: Run, tmp_path: Path) -> None:
    page = restricted.page(tmp_path / "report.html")
    trials = read_trials(restricted.folder / "xray" / "trials" / "xray-report" / "run-1.parquet")
    texts = {block.text for trial in trials for block in trial.blocks if block.role in ("report", "question")}
    assert len(texts) > 10
    # Also not in the files that it gives along.
    files = re.findall(r'href="data:text/csv;charset=utf-8;base64,([^"]*)"', page)
    assert len(files) > 15
    page += "".join(base64.b64decode(one).decode() for one in files)
    for text in texts:
        assert text is not None and text not in page and text.split("\n")[-1] not in page
    assert "Is there " not in page
    for picture in (restricted.folder / "xray" / "images").rglob("*.png"):
        assert base64.b64encode(picture.read_bytes()).decode()[40:] not in page
    assert "the file is cut short" not in page.split("xray", 1)[0] or "by stage: studies" in page


def test_restriction_is_said_with_its_reason_and_the_rest_is_still_shown(restricted: Run, tmp_path: Path) -> None:
    page = restricted.page(tmp_path / "report.html")
    parsed = Page(page)
    (banner,) = [one for one in parsed.all("div") if "banner restricted" in one.attributes.get("class", "")]
    assert "xray" in banner.text and "mri" not in banner.text and "forbid" in banner.text
    assert "Where does the mass lie?" in page or "How large is the mass" in page or "How does the mass enhance?" in page
    shown = [one.attributes["alt"] for one in parsed.all("img") if one.attributes["src"].startswith("data:image/png")]
    assert len(shown) == 5 and [alt for alt in shown if alt.startswith("Contact sheet")] == [
        "Contact sheet of study mri-01-1 of mri: the views flair-axial, each picture under its name."
    ]


def test_one_restricted_study_restricts_its_dataset_whatever_the_config_says(
    restricted: Run, small: Run, tmp_path: Path
) -> None:
    datasets = copy.deepcopy(restricted.spec["datasets"])
    datasets["xray"]["restricted"] = False
    page = restricted.page(tmp_path / "report.html", datasets=datasets)
    assert "banner restricted" in page and "Is there " not in page


def test_where_folders_lie_is_not_told(small: Run, tmp_path: Path) -> None:
    models, datasets = copy.deepcopy(small.spec["models"]), copy.deepcopy(small.spec["datasets"])
    models["reader"] |= {"weights": "/home/someone/private/models/reader-4b", "revision": "abc123"}
    datasets["mri"]["root"] = "/home/someone/private/data/UCSF-PDGM-v5"
    page = small.page(tmp_path / "report.html", models=models, datasets=datasets)
    assert "someone" not in page and "private" not in page
    assert "weights …/models/reader-4b, revision abc123" in page
    assert "root: …/data/UCSF-PDGM-v5" in page


def test_a_sheet_of_each_datasets_first_study_shows_what_the_models_saw(small: Run, page: str) -> None:
    """The picture on the sheet is the study's own: found in it pixel by pixel."""
    sheets = {one.attributes["alt"]: one for one in Page(page).all("img") if "Contact sheet" in one.attributes["alt"]}
    assert len(sheets) == 2
    for alt, element in sheets.items():
        name = alt.split()[4]
        source = small.folder / name.split("-")[0] / "images" / name / "pictures"
        content = base64.b64decode(element.attributes["src"].removeprefix("data:image/png;base64,"))
        with Image.open(io.BytesIO(content)) as drawn, Image.open(next(source.glob("*.png"))) as own:
            whole, picture = drawn.tobytes(), own.tobytes()
            rows = [picture[start : start + own.width] for start in range(0, len(picture), own.width)]
            places = [whole.find(row) for row in rows]
            assert places[0] > 0 and all(two - one == drawn.width for one, two in itertools.pairwise(places)), name


def test_a_picture_that_is_not_the_one_rendered_stops_the_report(small: Run, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(small.folder, folder)
    name = min(path.name for path in (folder / "mri" / "images").iterdir() if path.name.startswith("mri"))
    path = folder / "mri" / "images" / name / "pictures" / "flair-axial-0.png"
    Image.new("L", (64, 64), 9).save(path)
    with pytest.raises(BadInput, match=f"{path.name}: shows other pixels than images.parquet says"):
        write(folder, small.spec, tmp_path / "report.html")


# -- every text is escaped -------------------------------------------------------------------------------------------


def test_markup_in_a_stem_a_report_an_option_a_label_or_a_reason_stays_text(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(name: str) -> str:
        return f"<script>alert('{name}')</script>"

    stems = {
        topic: (f"{topic} {hostile('stem')}", (hostile("option"), *options[1:]))
        for topic, (_, options) in made.STEMS.items()
    }
    monkeypatch.setattr(made, "STEMS", stems)
    monkeypatch.setattr(made, "FINDINGS", (hostile("finding"), "Pleural Effusion", "Pneumonia"))
    models = copy.deepcopy(made.MODELS)
    models["reader"] |= {"label": hostile("label"), "note": hostile("note")}
    monkeypatch.setattr(made, "MODELS", models)
    hurt = make_run(tmp_path / "small", figures=small.folder / "figures")
    not_run = [{"dataset": "mri", "model": "reader", "setting": "own", "when": "never", "why": hostile("reason")}]
    page = hurt.page(tmp_path / "report.html", title=hostile("title"), not_run=not_run)
    assert "<script" not in page
    assert not Page(page).all("script")
    for name in ("stem", "finding", "label", "note", "reason", "title", "option"):
        assert f"&lt;script&gt;alert(&#39;{name}&#39;)" in page, name
    assert re.search(r"Findings: &lt;script&gt;alert\(&#39;finding", page)


def test_comparisons_of_settings_that_were_not_run_are_left_out(small: Run, page: str, tmp_path: Path) -> None:
    """The spec holds every comparison of the config, but only the settings that were run."""
    more = {**small.spec["comparisons"], "unrun-swap": {"flips": ["elsewhere", "elsewhere-swapped"], "accuracy": None}}
    more["unrun-gain"] = {"accuracy": ["xray", "elsewhere"], "flips": None}
    effects = {**small.spec["effects"], "unrun-effect": {"minus": ["unrun-swap", "swap-with-report"]}}
    other = small.page(tmp_path / "report.html", comparisons=more, effects=effects)
    body, configuration = other.split('id="settings-in-full"')
    assert "unrun" not in body.split("</nav>")[1] and "unrun-swap" in configuration
    assert body == page.split('id="settings-in-full"')[0]


# -- what is missing is named ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["cells", "statistics", "not_run", "config_hash"])
def test_a_spec_that_lacks_a_key_is_refused(small: Run, tmp_path: Path, key: str) -> None:
    spec = {name: value for name, value in small.spec.items() if name != key}
    with pytest.raises(BadInput, match=f"lacks {key}"):
        write(small.folder, spec, tmp_path / "report.html")


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    "name", ["tables/flips.csv", "tables/blind_hits.csv", "figures/accuracy.svg", "mri/studies.parquet",
             "mri/studies_rejected.csv", "mri/images.parquet"]
)  # fmt: skip
def test_a_missing_file_is_named_and_no_report_is_left(small: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "small"
    shutil.copytree(small.folder, folder)
    _without(name)(folder)
    with pytest.raises(BadInput, match=re.escape(name.split("/")[-1])):
        write(folder, small.spec, tmp_path / "report.html")
    assert not list(tmp_path.glob("*.html*")) and not list(tmp_path.glob(".*"))
