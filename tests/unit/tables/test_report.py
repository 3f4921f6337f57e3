"""The report holds everything, says what the tables say, gives away nothing restricted, and needs nothing else."""

from __future__ import annotations

import base64
import copy
import csv
import io
import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from typing import Any

import made
import pytest
from PIL import Image

from overread.errors import BadInput
from overread.records import read_responses, read_trials
from overread.tables.examples import examples
from overread.tables.make import make_tables
from overread.tables.plots import FIGURES, draw
from overread.tables.report import write
from overread.tables.spec import TablesSpec

CHROMIUM = Path("/usr/bin/chromium")
VOID = {"meta", "link", "img", "br", "hr", "input"}


@dataclass
class Run:
    """A small run with its tables and figures, and what a report of it is told."""

    folder: Path
    spec: dict[str, Any]

    def page(self, out: Path, **changes: Any) -> str:
        write(self.folder, {**self.spec, **changes}, out)
        return out.read_text(encoding="utf-8")


def make_run(folder: Path, *, figures: Path | None = None, **options: Any) -> Run:
    """A run of `made`, its figures drawn or taken from another run."""
    spec = made.make_results(folder, draws=200, **options)
    make_tables(folder, TablesSpec.model_validate(made.tables_spec(spec)), folder / "tables")
    if figures is None:
        draw(folder / "tables", {name: model["label"] for name, model in spec["models"].items()}, folder / "figures")
    else:
        shutil.copytree(figures, folder / "figures")
    return Run(folder, spec)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One dataset of more than the fewest patients for a verdict, and one of fewer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PATIENTS", {"mri": (1, 1, 1, 2), "xray": (1, 2, 3, 1, 1, 1, 2, 1, 1, 1, 2, 1)})
        return make_run(tmp_path_factory.mktemp("report") / "small")


@pytest.fixture(scope="module")
def page(run: Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    return run.page(tmp_path_factory.mktemp("page") / "report.html")


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements of a page in order, with the text inside each; fails on tags that are not closed."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {[one.tag for one in self.open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1].tag == tag, (
            f"</{tag}> closes {self.open[-1].tag if self.open else 'nothing'}"
        )
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, *tags: str) -> list[Element]:
        return [one for one in self.elements if one.tag in tags]

    def rows(self) -> list[list[str]]:
        """The cells of each table row."""
        found: list[list[str]] = []
        for one in self.all("tr", "th", "td"):
            if one.tag == "tr":
                found.append([])
            else:
                found[-1].append(one.text.strip().replace("\N{NO-BREAK SPACE}", " "))
        return found


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


def test_a_rerun_gives_the_same_bytes_whatever_the_order_of_the_config(run: Run, page: str, tmp_path: Path) -> None:
    turned = {
        key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in run.spec.items()
    }
    turned["cells"] = list(reversed(run.spec["cells"]))
    write(run.folder, dict(reversed(turned.items())), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_no_date_and_no_clock_time_stands_in_it(page: str) -> None:
    text = re.sub(r"data:[^\"]*", "", page)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text)


def test_the_contents_lead_to_every_section_and_every_link_to_a_place(page: str) -> None:
    parsed = Page(page)
    ids = [one.attributes["id"] for one in parsed.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = [one.attributes["href"][1:] for one in parsed.all("a")]
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


# -- it says what the tables say -------------------------------------------------------------------------------------


def test_every_accuracy_stands_in_it_with_its_interval_and_its_counts(run: Run, page: str) -> None:
    rows = Page(page).rows()
    with (run.folder / "tables" / "accuracy.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert len(table) > 20
    for one in table:
        label = run.spec["models"][one["model"]]["label"]
        (shown,) = [row for row in rows if row[:2] == [label, one["setting"]] and len(row) == 15 and row[3][0] == "["]
        low, high = (f"{100 * float(one[name]):.1f}" for name in ("low", "high"))
        assert shown[2:4] == [f"{100 * float(one['accuracy']):.1f}", f"[{low}, {high}]"]
        assert shown[4:9] == [one[name] for name in ("answered", "unparsed", "refused", "truncated", "failed")]


def test_every_flip_rate_and_every_difference_stands_in_it(run: Run, page: str) -> None:
    rows = Page(page).rows()
    with (run.folder / "tables" / "flips.csv").open(encoding="utf-8") as file:
        flips = list(csv.DictReader(file))
    curves = {"hiding-from-0", "hiding-from-8"}
    assert curves < {one["comparison"] for one in flips}
    for one in [one for one in flips if one["comparison"] not in curves]:
        label, name = run.spec["models"][one["model"]]["label"], one["group"]
        name = one["comparison"] if name == "all" else name
        wanted = [label, name, f"{100 * float(one['flip_rate']):.1f}"]
        assert [row for row in rows if row[:3] == wanted and one["pairs"] in row], wanted
    with (run.folder / "tables" / "effects.csv").open(encoding="utf-8") as file:
        effects = list(csv.DictReader(file))
    for one in effects:
        label, value = run.spec["models"][one["model"]]["label"], float(one["estimate"])
        sign = "" if abs(value) < 5e-4 else "+" if value > 0 else "\N{MINUS SIGN}"
        wanted = [label, one["effect"], f"{sign}{abs(100 * value):.1f}"]
        assert [row for row in rows if row[:3] == wanted], wanted


def scaled(text: str, digits: int = 1, scale: float = 100) -> str:
    return "\N{EN DASH}" if not text else f"{scale * float(text):.{digits}f}".replace("-0.0", "0.0")


def test_the_tables_of_the_audit_stand_in_it_row_by_row(run: Run, page: str) -> None:
    """Each row of these tables is found by its names and its number."""
    rows = Page(page).rows()
    kinds: dict[str, Callable[[dict[str, str]], list[str]]] = {
        "noise": lambda row: [row["setting"], scaled(row["flip_rate"])],
        "margins": lambda row: [row["effect"], scaled(row["moves_more"])],
        "own_label": lambda row: [
            row["comparison"],
            row["setting"],
            scaled(row["accuracy"]).replace("-", "\N{MINUS SIGN}"),
        ],
        "layers": lambda row: ["From the layer on", row["layer"], scaled(row["flip_rate"])],
        "modality": lambda row: [row["setting"], scaled(row["balanced_accuracy"]).replace("-", "\N{MINUS SIGN}")],
        "significance": lambda row: [row["dataset"], row["comparison"], scaled(row["flip_rate"])],
    }
    for name, key in kinds.items():
        with (run.folder / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        assert table, name
        for one in table:
            label, wanted = run.spec["models"][one["model"]]["label"], key(one)
            assert [row for row in rows if row[0] == label and set(wanted) <= set(row)], (name, label, wanted)


def test_each_verdict_says_in_one_sentence_whether_answers_depend_on_the_image_beyond_noise(page: str) -> None:
    cards = {one.attributes["id"]: " ".join(one.text.split()) for one in Page(page).all("article")}
    blind, reader = cards["verdict-xray-blind-reader"], cards["verdict-xray-reader"]
    assert (
        "Without a report, 0.0 % [0.0, 0.0] of its answers change when the image is swapped, which is not shown"
        in blind
    )
    assert "which is beyond a noise floor taken as none, since it was asked once (adjusted p = 0.0" in reader
    for card in (blind, reader):
        assert (
            "a stable answer is no proof that the image went unused, and accuracy beside a report is no measure" in card
        )
    assert "too few patients for a test (4)" in cards["verdict-mri-reader"]


def test_numbers_that_could_not_be_used_stand_out(page: str) -> None:
    marked = [one.text for one in Page(page).all("td") if "marked" in one.attributes.get("class", "")]
    assert marked and "0" not in marked


def test_every_figure_is_in_it_as_drawn(run: Run, page: str) -> None:
    for name in FIGURES:
        encoded = base64.b64encode((run.folder / "figures" / f"{name}.svg").read_bytes()).decode()
        assert f"data:image/svg+xml;base64,{encoded}" in page


def test_it_says_who_was_asked_under_what_and_what_was_not_run(run: Run, page: str) -> None:
    text = Page(page).all("body")[0].text
    for model in run.spec["models"].values():
        assert model["label"] in text
    for setting in {cell["setting"] for cell in run.spec["cells"]}:
        assert setting in text
    assert "left out here" in text
    assert run.spec["config_hash"] in text
    assert "1 study could not be used (the file is cut short)" in " ".join(text.split())
    assert "ModaLens" in text and "UCSF-PDGM-VQA" in text
    versions = dict(re.findall(r"(\w+) (\d+\.\d+\.\d+)", text))
    assert versions["matplotlib"] == metadata.version("matplotlib")


def test_what_was_not_run_is_told_once_for_all_settings_with_the_same_reason(run: Run, tmp_path: Path) -> None:
    shared = {"dataset": "mri", "model": "reader", "when": "later", "why": "it is too early"}
    left_out = [{**shared, "setting": "montage"}, {**shared, "setting": "layers"}]
    left_out.append({**shared, "setting": "volume", "when": "never", "why": "it takes no volumes"})
    rows = Page(run.page(tmp_path / "report.html", not_run=left_out)).rows()
    label = run.spec["models"]["reader"]["label"]
    assert ["mri", label, "layers, montage", "not in this version", "it is too early"] in rows
    assert ["mri", label, "volume", "never", "it takes no volumes"] in rows
    assert "Everything that was asked for was run." in run.page(tmp_path / "report.html", not_run=[])


def test_too_few_patients_give_no_verdict_and_enough_give_one(page: str) -> None:
    """The MRI dataset has four patients, the X-rays twelve; the reader follows images, the first option does not."""
    parsed = Page(page)
    cards = {one.attributes["id"]: one.text for one in parsed.all("article")}
    assert "Too few patients for a verdict: 4" in cards["verdict-mri-reader"]
    assert "Uses the image" not in cards["verdict-mri-reader"]
    assert "Uses the image" in cards["verdict-xray-reader"]
    assert "Shows no use of the image" in cards["verdict-xray-first-option"]
    assert "gives nearly always the same answer" in cards["verdict-xray-first-option"]


# -- semi-synthetic and restricted data ------------------------------------------------------------------------------


def test_semi_synthetic_data_are_called_so_in_large_and_beside_each_table(page: str) -> None:
    parsed = Page(page)
    (banner,) = [one for one in parsed.all("div") if "banner made" in one.attributes.get("class", "")]
    assert "Semi-synthetic data" in banner.text and "mri, xray" in banner.text
    captions = [one.text for one in parsed.all("caption") if " on mri" in one.text or " on xray" in one.text]
    assert len(captions) > 8 and all("semi-synthetic" in one for one in captions)
    assert not [one for one in parsed.all("div") if "banner restricted" in one.attributes.get("class", "")]


@pytest.fixture(scope="module")
def restricted(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("restricted") / "small"
    return make_run(folder, restricted={"xray"}, figures=run.folder / "figures")


def test_nothing_that_was_shown_of_a_restricted_study_is_in_it(restricted: Run, tmp_path: Path) -> None:
    page = restricted.page(tmp_path / "report.html")
    trials = read_trials(restricted.folder / "xray" / "trials" / "xray-report" / "run-1.parquet")
    texts = {block.text for trial in trials for block in trial.blocks if block.role in ("report", "question")}
    assert len(texts) > 10
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
    restricted: Run, run: Run, tmp_path: Path
) -> None:
    datasets = copy.deepcopy(restricted.spec["datasets"])
    datasets["xray"]["restricted"] = False
    page = restricted.page(tmp_path / "report.html", datasets=datasets)
    assert "banner restricted" in page and "Is there " not in page


def test_where_folders_lie_is_not_told(run: Run, tmp_path: Path) -> None:
    models, datasets = copy.deepcopy(run.spec["models"]), copy.deepcopy(run.spec["datasets"])
    models["reader"] |= {"weights": "/home/someone/private/models/reader-4b", "revision": "abc123"}
    datasets["mri"]["root"] = "/home/someone/private/data/UCSF-PDGM-v5"
    page = run.page(tmp_path / "report.html", models=models, datasets=datasets)
    assert "someone" not in page and "private" not in page
    assert "weights …/models/reader-4b, revision abc123" in page
    assert "root: …/data/UCSF-PDGM-v5" in page


def test_a_sheet_of_each_datasets_first_study_shows_what_the_models_saw(run: Run, page: str) -> None:
    """The picture on the sheet is the study's own: found in it pixel by pixel."""
    sheets = {one.attributes["alt"]: one for one in Page(page).all("img") if "Contact sheet" in one.attributes["alt"]}
    assert len(sheets) == 2
    for alt, element in sheets.items():
        name = alt.split()[4]
        source = run.folder / name.split("-")[0] / "images" / name / "pictures"
        content = base64.b64decode(element.attributes["src"].removeprefix("data:image/png;base64,"))
        with Image.open(io.BytesIO(content)) as drawn, Image.open(next(source.glob("*.png"))) as own:
            whole, picture = drawn.tobytes(), own.tobytes()
            rows = [picture[start : start + own.width] for start in range(0, len(picture), own.width)]
            places = [whole.find(row) for row in rows]
            assert places[0] > 0 and all(two - one == drawn.width for one, two in itertools.pairwise(places)), name


def test_a_picture_that_is_not_the_one_rendered_stops_the_report(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(run.folder, folder)
    name = min(path.name for path in (folder / "mri" / "images").iterdir() if path.name.startswith("mri"))
    path = next((folder / "mri" / "images" / name / "pictures").glob("*.png"))
    Image.new("L", (64, 64), 9).save(path)
    with pytest.raises(BadInput, match=f"{path.name}: shows other pixels than images.parquet says"):
        write(folder, run.spec, tmp_path / "report.html")


# -- every text is escaped -------------------------------------------------------------------------------------------


def test_markup_in_a_stem_a_report_an_option_a_label_or_a_reason_stays_text(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    hurt = make_run(tmp_path / "small", figures=run.folder / "figures")
    not_run = [{"dataset": "mri", "model": "reader", "setting": "own", "when": "never", "why": hostile("reason")}]
    page = hurt.page(tmp_path / "report.html", title=hostile("title"), not_run=not_run)
    assert "<script" not in page
    assert not Page(page).all("script")
    for name in ("stem", "finding", "label", "note", "reason", "title", "option"):
        assert f"&lt;script&gt;alert(&#39;{name}&#39;)" in page, name
    assert re.search(r"Findings: &lt;script&gt;alert\(&#39;finding", page)


# -- the examples ----------------------------------------------------------------------------------------------------


def flips_by_question(run: Run, dataset: str, pair: tuple[str, str]) -> dict[str, int]:
    """Flips of run 1 where every model answered both arms and the truth differs, counted the slow way."""
    counts: dict[str, int] = {}
    other = {one.question: one for one in read_trials(run.folder / dataset / "trials" / pair[1] / "run-1.parquet")}
    given = {
        (model, setting): {
            one.question: one.choice
            for one in read_responses(run.folder / dataset / "responses" / model / setting / "run-1.parquet")
        }
        for model in made.MODELS
        for setting in pair
    }
    for question, trial in other.items():
        choices = [(given[model, pair[0]][question], given[model, pair[1]][question]) for model in made.MODELS]
        if trial.label != trial.image_label and None not in [choice for both in choices for choice in both]:
            counts[question] = sum(own != swapped for own, swapped in choices)
    return counts


@pytest.mark.parametrize(
    ("dataset", "comparison", "pair"),
    [
        ("mri", "image-swap", ("single-slice", "swapped")),
        ("xray", "swap-with-report", ("xray-report", "xray-report-swapped")),
    ],
)
def test_the_examples_are_those_that_the_rule_names(
    run: Run, dataset: str, comparison: str, pair: tuple[str, str]
) -> None:
    counts = flips_by_question(run, dataset, pair)
    most, fewest = examples(run.folder, dataset, dataset, run.spec)
    trials = {one.question: one for one in read_trials(run.folder / dataset / "trials" / pair[0] / "run-1.parquet")}
    wanted = [
        min(counts, key=lambda question: (-counts[question], question)),
        min(counts, key=lambda question: (counts[question], question)),
    ]
    assert counts[wanted[0]] > counts[wanted[1]]
    for shown, question in zip((most, fewest), wanted, strict=True):
        trial = trials[question]
        assert (shown.comparison, shown.study, shown.topic) == (comparison, trial.study, trial.topic)
        assert shown.answer == shown.arms[0].truth == trial.label
        assert shown.prompt == tuple((block.role, block.text) for block in trial.blocks if block.text is not None)
        own = [one for one in shown.given if one.comparison == comparison]
        assert len(own) == len(made.MODELS)
        assert sum(bool(one.flipped) for one in own) == counts[question]
        assert all((one.own != one.other) == one.flipped for one in own)


def test_the_pictures_of_an_example_are_those_of_its_two_trials(run: Run) -> None:
    for shown in examples(run.folder, "xray", "xray", run.spec):
        studies = [arm.image_study for arm in shown.arms]
        assert studies[0] == shown.study != studies[1]
        for arm in shown.arms:
            (picture,) = arm.pictures
            content = base64.b64decode(picture.uri.removeprefix("data:image/png;base64,"))
            with (
                Image.open(io.BytesIO(content)) as embedded,
                Image.open(run.folder / "xray" / "images" / arm.image_study / "pictures" / "frontal-0.png") as file,
            ):
                assert embedded.size == file.size == (picture.width, picture.height)
                assert embedded.tobytes() == file.tobytes()


def test_without_a_swap_there_is_no_example_and_the_report_says_so(run: Run, tmp_path: Path) -> None:
    page = run.page(tmp_path / "report.html", comparisons={"gain": {"accuracy": ["xray", "xray-black"]}}, effects={})
    assert "There is no pair of trials to show" in page


def test_comparisons_of_settings_that_were_not_run_are_left_out(run: Run, page: str, tmp_path: Path) -> None:
    """The spec holds every comparison of the config, but only the settings that were run."""
    more = {**run.spec["comparisons"], "unrun-swap": {"flips": ["elsewhere", "elsewhere-swapped"], "accuracy": None}}
    more["unrun-gain"] = {"accuracy": ["xray", "elsewhere"], "flips": None}
    effects = {**run.spec["effects"], "unrun-effect": {"minus": ["unrun-swap", "swap-with-report"]}}
    other = run.page(tmp_path / "report.html", comparisons=more, effects=effects)
    body, configuration = other.split('id="settings-in-full"')
    assert "unrun" not in body.split("</nav>")[1] and "unrun-swap" in configuration
    assert body == page.split('id="settings-in-full"')[0]


def test_a_restricted_trial_is_never_shown_even_if_asked_for(restricted: Run) -> None:
    with pytest.raises(BadInput, match="is restricted"):
        examples(restricted.folder, "xray", "xray", restricted.spec)


# -- what is missing is named ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["cells", "statistics", "not_run", "config_hash"])
def test_a_spec_that_lacks_a_key_is_refused(run: Run, tmp_path: Path, key: str) -> None:
    spec = {name: value for name, value in run.spec.items() if name != key}
    with pytest.raises(BadInput, match=f"lacks {key}"):
        write(run.folder, spec, tmp_path / "report.html")


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    "name", ["tables/flips.csv", "tables/blind_hits.csv", "figures/accuracy.svg", "mri/studies.parquet",
             "mri/studies_rejected.csv", "mri/images.parquet"]
)  # fmt: skip
def test_a_missing_file_is_named_and_no_report_is_left(run: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "small"
    shutil.copytree(run.folder, folder)
    _without(name)(folder)
    with pytest.raises(BadInput, match=re.escape(name.split("/")[-1])):
        write(folder, run.spec, tmp_path / "report.html")
    assert not list(tmp_path.glob("*.html*")) and not list(tmp_path.glob(".*"))


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(f"this machine has no {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--no-first-run"]  # fmt: skip
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield chromium
        chromium.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_offline_without_an_error_and_no_wider_than_the_window(
    run: Run, tmp_path: Path, browser: Any, width: int
) -> None:
    run.page(tmp_path / "report.html")
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    tab = context.new_page()
    problems: list[str] = []
    requests: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("requestfailed", lambda request: problems.append(request.url))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto((tmp_path / "report.html").as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert problems == []
    assert {url.split(":", 1)[0] for url in requests} <= {"file", "data"}
    assert [url for url in requests if url.startswith("file:")] == [(tmp_path / "report.html").as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert tab.evaluate("getComputedStyle(document.querySelector('td.number')).textAlign") == "right"
    head = tab.evaluate("getComputedStyle(document.querySelector('thead th')).position")
    assert head == "sticky"
    tab.emulate_media(color_scheme="dark")
    ink, paper = tab.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != paper
    context.close()
