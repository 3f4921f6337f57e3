"""Trials to look at: for a dataset, the question whose answers moved most when the image was swapped, and least.

The choice is by rule, so that nobody picks what suits: see `RULE`. Nothing of a restricted dataset is ever shown.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overread.core.errors import BadInput
from overread.core.records import Picture, Response, Trial, read_columns, read_pictures
from overread.images.sheet import preview, spread
from overread.reporting.contrasts import contrast
from overread.settings.attention import Hiding
from overread.settings.image import Image as ImageAspect

if TYPE_CHECKING:
    from PIL import Image

RULE = (
    "Chosen by rule, not by hand: of the questions of this comparison (run 1) that every model answered under both "
    "images, those whose correct answer differs between the two images if there are any; of these the one with the {} "
    "flips, and among equals the first by its id."
)
MOST_PICTURES = 4
"""A trial may show dozens of images; the report shows a few of them, evenly spaced."""

LONGEST_EDGE = 512
"""Pixels; larger pictures are shown smaller, to keep the file small enough to be sent."""


@dataclass(frozen=True)
class Shown:
    """A picture as it is embedded."""

    uri: str
    alt: str
    width: int
    height: int


@dataclass(frozen=True)
class Arm:
    """One of the two sides of a pair: its setting, whose images it shows, and what would be correct for them."""

    setting: str
    image_study: str
    truth: str | None
    pictures: tuple[Shown, ...]
    left_out: int


@dataclass(frozen=True)
class Given:
    """What one model gave in both arms of one comparison: option texts, or what became of the response."""

    model: str
    comparison: str
    own: str
    other: str
    flipped: bool | None


@dataclass(frozen=True)
class Example:
    """A question asked with the study's own image and with a substitute."""

    dataset: str
    modality: str
    comparison: str
    kind: str
    rule: str
    study: str
    topic: str
    arms: tuple[Arm, Arm]
    prompt: tuple[tuple[str, str], ...]
    options: tuple[str, ...]
    answer: str
    given: tuple[Given, ...]


def examples(results: Path, dataset: str, modality: str, spec: Mapping[str, Any]) -> list[Example]:
    """The two examples of a dataset that is not restricted, or fewer where there are no pairs to choose from.

    spec    the report's
    raises  BadInput if a file of the run is missing or damaged, or if a trial turns out to be restricted
    """
    ran = {(cell["model"], cell["setting"]) for cell in spec["cells"] if cell["dataset"] == dataset}
    models_of = {name: _models(pair, ran) for name, pair in swap_pairs(spec).items()}
    models_of = {name: models for name, models in models_of.items() if models}
    if not models_of:
        return []
    chosen = min(models_of, key=lambda name: (-len(models_of[name]), name))
    pair = swap_pairs(spec)[chosen]
    answers = _Answers(results / dataset)
    flips = _flips(answers, pair, models_of[chosen])
    trials = {setting: _heads(results / dataset / "trials" / setting / "run-1.parquet") for setting in pair}
    both = [question for question in sorted(flips) if question in trials[pair[0]] and question in trials[pair[1]]]
    changed = [
        question
        for question in both
        if trials[pair[1]][question]["image_label"] not in (None, trials[pair[0]][question]["label"])
    ]
    pool = changed or both
    if not pool:
        return []
    most = min(pool, key=lambda question: (-flips[question], question))
    fewest = min(pool, key=lambda question: (flips[question], question))
    wanted = {"most": most} if most == fewest else {"most": most, "fewest": fewest}
    names = {picture.path: picture for picture in read_pictures(results / dataset / "images.parquet")}

    def arm(trial: Trial, truth: str | None) -> Arm:
        return _arm(results / dataset, trial, truth, names)

    found = []
    for kind, question in wanted.items():
        own, other = (_trial(results, dataset, setting, trials[setting][question]["row"]) for setting in pair)
        found.append(
            Example(
                dataset=dataset, modality=modality, comparison=chosen, kind=kind, rule=RULE.format(kind),
                study=own.study, topic=own.topic,
                arms=(arm(own, own.label), arm(other, other.image_label)),
                prompt=tuple((block.role, block.text) for block in own.blocks if block.text is not None),
                options=own.options, answer=own.options[own.answer],
                given=tuple(_given(answers, question, _written(own), models_of, spec)),
            )
        )  # fmt: skip
    return found


# -- which comparisons, which models ---------------------------------------------------------------------------------


def swap_pairs(spec: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Comparisons of flips that swap the image alone: the setting with the own image, then the substitute's.

    Those that hide the report from layers are left out: a sweep would bury the others.
    """
    pairs: dict[str, tuple[str, str]] = {}
    for name, comparison in sorted(spec["comparisons"].items()):
        first, second = comparison.get("flips") or ("", "")
        if first not in spec["settings"] or second not in spec["settings"]:
            continue
        a, b = spec["settings"][first], spec["settings"][second]
        swapped = a[ImageAspect].shows_the_study() and b[ImageAspect].shows_the_study()
        if swapped and contrast(a, b) == "image" and a[Hiding].layer is None:
            pairs[name] = (first, second) if a[ImageAspect].own else (second, first)
    return pairs


def _models(pair: tuple[str, str], ran: set[tuple[str, str]]) -> list[str]:
    return sorted({model for model, setting in ran if setting == pair[0] and (model, pair[1]) in ran})


# -- what was answered -----------------------------------------------------------------------------------------------


class _Answers:
    """Choice and status by question, of run 1; each file is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: dict[tuple[str, str], dict[str, tuple[int | None, str]]] = {}

    def of(self, model: str, setting: str) -> dict[str, tuple[int | None, str]]:
        if (model, setting) not in self.read:
            path = self.folder / "responses" / model / setting / "run-1.parquet"
            columns = read_columns(path, Response, ["question", "choice", "status"]).to_pydict()
            values = zip(columns["choice"], columns["status"], strict=True)
            self.read[model, setting] = dict(zip(columns["question"], values, strict=True))
        return self.read[model, setting]


def _flips(answers: _Answers, pair: tuple[str, str], models: Sequence[str]) -> dict[str, int]:
    """How many models flip, by question; only questions that each of them answered under both images."""
    flips: dict[str, int] = {}
    for place, model in enumerate(models):
        own, other = (answers.of(model, setting) for setting in pair)
        answered = {
            question: int(choice != other[question][0])
            for question, (choice, _) in own.items()
            if choice is not None and question in other and other[question][0] is not None
        }
        known = answered if place == 0 else {question: flips[question] for question in flips if question in answered}
        flips = {question: (0 if place == 0 else flips[question]) + answered[question] for question in known}
    return flips


def _given(
    answers: _Answers,
    question: str,
    written: Sequence[str],
    models_of: Mapping[str, Sequence[str]],
    spec: Mapping[str, Any],
) -> list[Given]:
    rows = []
    for comparison, models in sorted(models_of.items()):
        pair = swap_pairs(spec)[comparison]
        for model in models:
            own, other = (answers.of(model, setting).get(question) for setting in pair)
            if own is None or other is None:
                continue
            flipped = None if own[0] is None or other[0] is None else own[0] != other[0]
            texts = [status if choice is None else written[choice] for choice, status in (own, other)]
            label = spec["models"].get(model, {}).get("label", model)
            rows.append(Given(label, comparison, texts[0], texts[1], flipped))
    return rows


# -- what was shown --------------------------------------------------------------------------------------------------


def _heads(path: Path) -> dict[str, dict[str, Any]]:
    """The row number and truths of each question's trial."""
    columns = ["question", "label", "image_label"]
    rows = read_columns(path, Trial, columns).to_pylist()
    return {row["question"]: {**row, "row": place} for place, row in enumerate(rows)}


def _trial(results: Path, dataset: str, setting: str, row: int) -> Trial:
    path = results / dataset / "trials" / setting / "run-1.parquet"
    trial = Trial.model_validate(read_columns(path, Trial).slice(row, 1).to_pylist(maps_as_pydicts="strict")[0])
    if trial.restricted:
        raise BadInput(
            f"{path}: trial {trial.trial} is restricted, but no study of {dataset} is; read the studies again"
        )
    return trial


def _written(trial: Trial) -> list[str]:
    """The options as written, from those shown."""
    return [text for _, text in sorted(zip(trial.permutation, trial.options, strict=True))]


def _arm(folder: Path, trial: Trial, truth: str | None, names: Mapping[str, Picture]) -> Arm:
    images = trial.images
    shown = []
    for place in spread(len(images), MOST_PICTURES):
        block = images[place]
        assert block.image is not None
        picture = names.get(block.image)
        title = picture.name if picture else "Image"
        shown.append(_embedded(folder / block.image, f"{title}, study {trial.image_study}"))
    return Arm(trial.setting, trial.image_study or "", truth, tuple(shown), len(images) - len(shown))


def _embedded(path: Path, alt: str) -> Shown:
    """A picture as a PNG data URI, at most `LONGEST_EDGE` pixels long; of a volume its middle slices."""
    from PIL import Image

    image = preview(path)
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    image.thumbnail((LONGEST_EDGE, LONGEST_EDGE), Image.Resampling.LANCZOS)
    return embedded(image, alt)


def embedded(image: Image.Image, alt: str) -> Shown:
    """A picture as a PNG data URI, as large as it is."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=9)
    return Shown(
        f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}", alt, image.width, image.height
    )
