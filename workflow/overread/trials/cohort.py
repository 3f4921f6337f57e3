"""How many patients, studies, images, questions and paired trials there are at each step, beside a paper's.

A case is a study with a picture, with questions and with a substitute; a paired trial is a question about a case, which
is asked with its own picture and with the substitute's.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from overread.core.columns import PATIENT, STUDY, count, text
from overread.core.csv_files import CsvFile
from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread.core.records import read_questions, read_studies, read_substitutes

MODALENS = {
    # The test split of MIMIC-CXR-JPG 2.1.0, by its metadata and split tables.
    "images listed": 5159, "frontal images (AP, PA)": 3653, "lateral images (LATERAL, LL)": 1502, "studies": 3269,
    "patients": 293,
    # Cajas Ordóñez et al., ModaLens (2026).
    "patients of the cases": 293, "cases": 3199, "cases with a substitute of the same patient": 3180,
    "cases with a substitute of another patient": 19, "topics asked about": 14, "paired trials": 44786,
}  # fmt: skip
PAPERS = {"modalens": MODALENS}


class Step(NamedTuple):
    what: str
    counted: int
    paper: int | None


class LeftOut(NamedTuple):
    study: str
    patient: str
    why: str


COHORT = CsvFile(
    "<dataset>/cohort.csv",
    "How many patients, studies, images, questions and paired trials there are at each step, beside a paper's.",
    (
        text("what", "what is counted"),
        count("counted", "how many there are here"),
        count("paper", "how many the paper had", blank="the paper does not say, or is not named"),
    ),
)
LEFT_OUT = CsvFile(
    "<dataset>/cohort_left_out.csv",
    "The studies that are no case.",
    (STUDY, PATIENT, text("why", "the reason")),
)


def cohort(folder: Path, paper: str | None = None) -> tuple[list[Step], list[LeftOut]]:
    """The counts of a dataset's folder in the order of the steps, and each study that is no case, with the reason.

    raises   BadInput for a file that is missing or damaged
    """
    read = read_studies(folder / "studies.parquet", with_problems=True)
    usable = {study.study: study for study in read if study.problem is None}
    rejected = {row["study"]: row.get("reason", "") for row in _rows(folder / "studies_rejected.csv", "study")}
    shown = {name: study for name, study in usable.items() if name not in rejected}
    questions = [one for one in read_questions(folder / "questions.jsonl") if one.study in shown]
    asked = Counter(one.study for one in questions)
    chosen = [one for one in read_substitutes(folder / "substitutes.csv") if one.number == 1]
    within = {one.study: one.within_patient for one in sorted(chosen, key=lambda one: (one.study, one.topic))}
    topics = {(one.study, one.topic) for one in chosen}
    paired = [one for one in questions if {(one.study, ""), (one.study, one.topic)} & topics]
    cases = {one.study for one in paired}

    counts = {row["what"]: int(row["count"]) for row in _rows(folder / "studies_counts.csv", "what", "count")}
    counts |= {
        "studies with pictures": len(shown),
        "questions": len(questions),
        "topics asked about": len({one.topic for one in questions}),
        "cases": len(cases),
        "patients of the cases": len({shown[name].patient for name in cases}),
        "cases with a substitute of the same patient": sum(within[name] for name in cases),
        "cases with a substitute of another patient": sum(not within[name] for name in cases),
        "paired trials": len(paired),
    }
    known = PAPERS[paper] if paper is not None else {}
    steps = [Step(what, count, known.get(what)) for what, count in counts.items()]

    left_out: list[LeftOut] = []
    for study in sorted(read, key=lambda study: study.study):
        if study.study in cases:
            continue
        why = study.problem or rejected.get(study.study)
        if why is None:
            why = "no substitute" if asked[study.study] else "no question about it"
        left_out.append(LeftOut(study.study, study.patient, why))
    return steps, left_out


def _rows(path: Path, *columns: str) -> list[dict[str, str]]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            missing = set(columns) - set(table.fieldnames or ())
            if missing:
                raise BadInput(f"{path}: no column {', '.join(sorted(missing))}")
            return list(table)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; read the studies and index the images of this dataset first") from None
