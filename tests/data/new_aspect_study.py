"""A study with the aspects of `new_aspects`, from config to viewer: run in a Python where they are installed.

It prints what a person would meet at each stage as one JSON object; the test knows what that must be.
"""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path
from typing import Any

from data import configs, made
from overread import plan
from overread.config import json_schema, load
from overread.core.records import Picture, Question, Study
from overread.estimates.make import make_tables
from overread.estimates.spec import TablesSpec
from overread.estimates.tables.significance import is_tested
from overread.plan.view import in_words
from overread.reporting import plots, report
from overread.reporting.contrasts import contrast
from overread.reporting.presented_conditions import condition_of
from overread.reporting.rows import read
from overread.trials.build import build_trials
from overread.trials.prompt import Prompts
from overread_viewer.catalogue import Catalogue
from overread_viewer.twins import twins

STUDY = Study(
    study="a", patient="p", dataset="xray", modality="xray", images={}, report={}, labels={}, restricted=False
)
QUESTION = Question(
    study="a", patient="p", stem="Is there oedema?", options=("yes", "no"), answer="yes", topic="Edema", origin="test"
)
EXTRA = {
    "shrunk": {"images": "frontal", "readout": "yes-no", "sweep": {"shrink": [0.25, 0.5]}},
    "greeted": {"images": "frontal", "readout": "yes-no", "greeting": "Hello."},
}


def picture(view: str) -> Picture:
    return Picture(
        study="a", view=view, order=0, name="F", path=f"{view}.png", pixels=view, width=4, height=3, series="f"
    )


PICTURES = [picture(view) for view in ("frontal", "frontal.shrunk-0.25", "frontal.shrunk-0.5")]


def before_the_models(folder: Path) -> dict[str, Any]:
    """Config, plan and trials."""
    settings = {**configs.SMALL["settings"], **EXTRA}
    asked = {"dataset": "xray", "models": ["reader"], "settings": ["shrunk-*", "greeted"]}
    config = configs.config_of(folder, settings=settings, evaluations=[*configs.SMALL["evaluations"], asked])
    found = {}
    for name in ("shrunk-0.25", "shrunk-0.5", "greeted"):
        setting = config.settings[name]
        ((trial,), _) = build_trials(
            [QUESTION], [STUDY], PICTURES, [],
            setting=setting, name=name, run=1, truth=lambda *_: None, prompts=Prompts(), seed=0,
        )  # fmt: skip
        found[name] = {
            "blocks": [block.image or block.text for block in trial.blocks][:2],
            "trial": trial.trial,
            "words": in_words(setting),
            "rendered": setting.view_section(config.views["frontal"].model_dump(mode="json")).get("size"),
        }
    wrong = dict(settings, bad={"images": "frontal", "shrink": 2})
    (folder / "wrong").mkdir()
    try:
        load(configs.written(folder / "wrong", configs.small(settings=wrong)))
        error = ""
    except Exception as refused:
        error = str(refused).rpartition("yaml: ")[2]
    schema = json.loads(json_schema())["$defs"]["Setting"]["properties"]
    return {"trials": found, "errors": plan.check(config)[0], "error": error, "schema": schema["shrink"]["description"]}


def after_the_models(results: Path) -> dict[str, Any]:
    """Tables, report and viewer."""
    xray = made.SETTINGS["xray"]
    xray |= {f"shrunk-{share}": {**xray["xray"], "shrink": share} for share in (0.25, 0.5)}
    xray |= {f"shrunk-{share}-swapped": {**xray["xray-swapped"], "shrink": share} for share in (0.25, 0.5)}
    xray["question-only"] = {"readout": "yes-no"}
    xray["shrunk-question"] = {"readout": "yes-no", "shrink": 0.5}
    made.COMPARISONS |= {
        f"swap-{share}": {"flips": [f"shrunk-{share}", f"shrunk-{share}-swapped"]} for share in (0.25, 0.5)
    }
    made.COMPARISONS |= {f"shrinking-{share}": {"flips": ["xray", f"shrunk-{share}"]} for share in (0.25, 0.5)}
    spec = made.make_results(results)
    make_tables(results, TablesSpec.model_validate(made.tables_spec(spec)), results / "tables")
    plots.draw(results / "tables", {name: one["label"] for name, one in spec["models"].items()}, results / "figures")
    (results / "study.json").write_text(json.dumps(spec))
    report.write(results, spec, results / "report.html")
    catalogue = Catalogue(results)
    settings = catalogue.spec["settings"]
    comparisons = TablesSpec.model_validate(made.tables_spec(spec)).comparisons
    question = sorted(catalogue.questions("xray"))[0]
    by_name = {one.setting: one for one in twins(catalogue, "xray", "xray", 1, question)}
    curves, modality = (read(results / "tables", name) for name in ("curves", "modality"))
    wide = (results / "tables" / "accuracy_wide.csv").read_text().splitlines()
    page = html.unescape((results / "report.html").read_text())
    return {
        "heads": wide[0].split(","),
        "inputs": sorted({line.split(",")[2] for line in wide[1:]}),
        "conditions": {name: condition_of(one, catalogue.spec) for name, one in settings.items() if "shrunk" in name},
        "plain": condition_of(settings["xray"], catalogue.spec),
        "tested": {name: is_tested(one, settings) for name, one in comparisons.items() if "sw" in name},
        "modality": [one["setting"] for one in modality if "shrunk" in one["setting"]],
        "contrast": contrast(settings["shrunk-0.5"], settings["shrunk-0.5-swapped"]),
        "twin": [by_name["shrunk-0.5"].aspects, by_name["shrunk-0.5"].changes],
        "curves": sorted(
            {(one["curve"], one["measure"], one["dose"], float(one["amount"]), one["about"]) for one in curves
             if one["dose"] == "shrink"}
        ),
        "drawn": (results / "figures" / "curves.svg").is_file(),
        "described": settings["shrunk-0.5"].describe(),
        "in_report": settings["shrunk-0.5"].describe() in page,
        "changed_in_report": "Only how small the image is differs." in page,
    }  # fmt: skip


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "config").mkdir()
    told = before_the_models(place / "config") | after_the_models(place / "results")
    print(json.dumps(told))
