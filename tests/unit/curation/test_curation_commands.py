import csv
import json

import pytest
from typer.testing import CliRunner

from overread.config.curation import Release
from overread.core.errors import BadInput
from overread.core.records import Study, read_questions, write_studies
from overread.curation.candidates import Candidate, write_candidates
from overread.curation.curation_commands import app


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False).output


@pytest.fixture
def made(tmp_path):
    """Twelve studies with a good question each, and a stable one about the first."""
    studies = [
        Study(
            study=f"s{k:02d}", patient=f"p{k:02d}", dataset="d", modality="mri", images={}, labels={}, restricted=True,
            report={"findings": f"The left mass number {k} shows thick rim enhancement."},
        )
        for k in range(12)
    ]  # fmt: skip
    write_studies(studies, tmp_path / "studies.parquet")
    options = ("Thick rim", "Thin rim", "Solid", "None")
    good = {
        "options": options,
        "answer": "Thick rim",
        "origin": "author",
        "request": "r",
        "tag": "YES",
        "reasoning": "",
    }
    candidates = [
        Candidate(
            study=one.study, patient=one.patient, index=0, stem=f"How does left mass {k} enhance?",
            evidence=(one.report["findings"],), **good,
        )
        for k, one in enumerate(studies)
    ]  # fmt: skip
    candidates.append(candidates[0].model_copy(update={"index": 1, "stem": "Is the left mass stable?"}))
    write_candidates(candidates, tmp_path / "candidates.jsonl")
    return tmp_path


def filled(path, reviewer, decisions):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, decision in zip(rows, decisions, strict=False):
        row.update(reviewer=reviewer, decision=decision, reason="vague" if decision == "reject" else "")
    out = path.with_name(f"{path.stem}-{reviewer}.csv")
    with out.open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return out


def test_from_candidates_to_a_release(made):
    said = run("filter", made / "candidates.jsonl", made / "studies.parquet", "--out", made / "questions.jsonl")
    assert "1 dropped: keywords, stable" in said
    assert "12 of 13 questions kept" in said
    for name in ("rejected.jsonl", "trail.csv", "funnel.csv", "funnel-figure.png", "funnel-figure.svg"):
        assert (made / name).is_file()
    with (made / "trail.csv").open(newline="") as file:
        trail = list(csv.DictReader(file))
    assert [row["question"] for row in trail] == [one.question for one in read_questions(made / "questions.jsonl")]

    run("sample", made / "questions.jsonl", "--out", made / "sheet.csv", "--count", 4)
    sheets = [
        filled(made / "sheet.csv", "ann", ["accept", "accept", "reject", "reject"]),
        filled(made / "sheet.csv", "bob", ["accept", "accept", "reject", "accept"]),
        filled(made / "sheet.csv", "cid", ["accept", "reject", "reject", "accept"]),
    ]
    said = run("agreement", *sheets, "--out", made / "agreement.csv")
    assert "Fleiss' kappa, all 3, 4 questions" in said
    out = ["--out", made / "final.jsonl", "--outcomes", made / "outcomes.csv"]
    said = run("apply-review", made / "questions.jsonl", *sheets, *out)
    assert said == "3 kept, 0 edited, 1 rejected; 11 questions\n"

    section = Release(title="T", name="t").model_dump_json()
    said = run(
        "release",
        made / "final.jsonl",
        made / "studies.parquet",
        "--section",
        section,
        "--out",
        made / "t",
        "--funnel",
        made / "funnel.csv",
    )
    assert "| keywords | stable | 13 | 1 | 12 |" in (made / "t" / "README.md").read_text()
    assert "the right option's place, as-written: 100.0 / 0.0 / 0.0 / 0.0 %" in said
    assert (made / "t" / "SHA256SUMS").is_file()
    run(
        "sample",
        made / "final.jsonl",
        "--out",
        made / "readers.csv",
        "--count",
        3,
        "--readers",
        "--release",
        made / "t",
    )
    rows = {json.loads(line)["question"]: json.loads(line) for line in (made / "t" / "questions.jsonl").open()}
    with (made / "readers.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert [row[f"option_{k}"] for k in range(1, 5)] == rows[row["question"]]["options"]


def test_nothing_left_is_an_error_that_names_where_it_says_why(made):
    stable = json.loads((made / "candidates.jsonl").read_text().splitlines()[1])
    assert stable["stem"] == "Is the left mass stable?"
    (made / "only.jsonl").write_text(json.dumps(stable) + "\n")
    with pytest.raises(BadInput, match=r"only\.jsonl: no question is left; .*rejected\.jsonl says why"):
        run("filter", made / "only.jsonl", made / "studies.parquet", "--out", made / "questions.jsonl")
    assert not (made / "questions.jsonl").exists()
    assert (made / "rejected.jsonl").read_text().count("\n") == 1


def test_a_wrong_rule_names_the_right_ones(made):
    run("filter", made / "candidates.jsonl", made / "studies.parquet", "--out", made / "questions.jsonl")
    run("sample", made / "questions.jsonl", "--out", made / "sheet.csv", "--count", 4)
    out = ["--out", made / "final.jsonl", "--outcomes", made / "outcomes.csv"]
    with pytest.raises(BadInput, match="--rule: no rule 'most'; there are: all, any, majority"):
        run("apply-review", made / "questions.jsonl", made / "sheet.csv", *out, "--rule", "most")


def test_agreement_needs_two_raters_and_a_column(made):
    run("filter", made / "candidates.jsonl", made / "studies.parquet", "--out", made / "questions.jsonl")
    run("sample", made / "questions.jsonl", "--out", made / "sheet.csv", "--count", 4)
    one = filled(made / "sheet.csv", "ann", ["accept"] * 4)
    two = filled(made / "sheet.csv", "bob", ["accept"] * 4)
    with pytest.raises(BadInput, match="agreement needs two at least"):
        run("agreement", one, "--out", made / "a.csv")
    with pytest.raises(BadInput, match="no column 'relevant'"):
        run("agreement", one, "--out", made / "a.csv", "--of", "relevant")
    with pytest.raises(BadInput, match="needs the order of the values"):
        run("agreement", one, two, "--out", made / "a.csv", "--level", "ordinal")
