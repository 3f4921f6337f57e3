"""Questions that are answered correctly although nothing of the study is shown: neither its picture nor its report.

Such a question can be answered from its wording, from what is usual, or by luck. A setting is blind if nothing of a
study reaches the model by any of its fields: no image or a black one, and no report. A model hits a question if it
answers it correctly in every run of every blind setting that asks it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from overread.config import Setting
from overread.core.columns import DATASET, QUESTION, STEM, TOPIC, share, text
from overread.estimates.scored import CellKey
from overread.estimates.source import Source
from overread.estimates.tables import Table

TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, QUESTION, TOPIC, STEM.but(blank="the data set is restricted"),
        text("settings", "the blind settings that asked it, joined by semicolons"),
        text("models", "the models that hit it, joined by semicolons"),
        share("share_of_models", "these as a share of the models that were asked it blind"),
    ),
    lambda run: blind_hits_table(run.cells, run.spec.settings, run.sources),
)  # fmt: skip


def blind_hits_table(
    cells: Mapping[CellKey, pd.DataFrame], settings: Mapping[str, Setting], sources: Mapping[str, Source]
) -> pd.DataFrame:
    """A row a question that a model hits, sorted by dataset and question.

    `settings` are the blind settings that asked it, `models` those that hit it, both joined by semicolons;
    `share_of_models` is over the models asked it blind. The stem is blank for a restricted dataset.
    """
    rows: list[list[object]] = []
    for dataset in sorted({key[0] for key in cells}):
        blind = [
            rows for key, rows in sorted(cells.items()) if key[0] == dataset and not settings[key[2]].shows_the_study
        ]
        if not blind:
            continue
        trials = pd.concat(blind)
        trials = trials[trials["status"] != "failed"]
        hits = trials.groupby(["question", "model"], sort=True)["right"].all().reset_index()
        asked = hits["question"].value_counts().to_dict()
        models = hits[hits["right"]].groupby("question")["model"].agg(list).to_dict()
        shown = trials.groupby("question")["setting"].agg(lambda names: ";".join(sorted(set(names)))).to_dict()
        topics = dict(zip(trials["question"], trials["topic"], strict=True))
        stems = {} if sources[dataset].restricted else {one.question: one.stem for one in sources[dataset].questions}
        for question, names in sorted(models.items()):
            what = [topics[question], stems.get(str(question), ""), shown[question], ";".join(names)]
            rows.append([dataset, question, *what, len(names) / asked[question]])
    return TABLE.frame(rows)
