"""Questions from a file: each belongs to a study that is there, and an error names file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overread.config import FileQuestions, FindingQuestions, GeneratedQuestions, GrammarQuestions
from overread.core.errors import BadInput
from overread.core.records import Study
from overread.questions import build, truth


def study(name: str, problem: str | None = None, labels: dict[str, str] | None = None) -> Study:
    return Study(
        study=name,
        patient=f"patient of {name}",
        dataset="mri",
        modality="mri",
        images={},
        report={},
        labels=labels or {},
        restricted=False,
        problem=problem,
    )


STUDIES = [study("a"), study("b", problem="truncated")]


def line(**changed: object) -> str:
    whole: dict[str, object] = {
        "study": "a",
        "stem": "Which lobe?",
        "options": ["frontal", "temporal"],
        "answer": "frontal",
    }
    whole |= {"topic": "location", "origin": "by hand"} | changed
    return json.dumps({key: value for key, value in whole.items() if value is not None})


def from_file(path: Path, *lines: str) -> FileQuestions:
    path.write_text("\n".join(lines) + "\n")
    return FileQuestions(origin="file", path=str(path))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_a_line_ends_at_a_line_feed_and_nowhere_else(tmp_path: Path, separator: str) -> None:
    """Word processors leave U+2028 behind, and JSON may hold it as it is."""
    stem = f"Which{separator}lobe?"
    text = line(stem="MARK").replace("MARK", stem if separator > "\x1f" else json.dumps(stem)[1:-1])
    section = from_file(tmp_path / "q.jsonl", text, line(stem="Which side?"))
    questions, _ = build(section, STUDIES)
    assert {one.stem for one in questions} == {stem, "Which side?"}


def test_nobody_splits_lines_of_json_at_other_than_a_line_feed() -> None:
    """`str.splitlines` is for text that is shown; what it is used on is listed."""
    root = Path(__file__).resolve().parents[3] / "workflow"
    found = {
        f"{path.relative_to(root)}: {row.strip()}"
        for path in root.rglob("*.py")
        for row in path.read_text(encoding="utf-8").split("\n")
        if "splitlines(" in row and not any(word in row for word in ("error", "text.", "meminfo", "# splitlines"))
    }
    assert all(
        one.startswith(
            ("overread_viewer/commands.py", "overread_viewer/asking.py", "overread/core/frozen.py", "overread/slurm.py")
        )
        for one in found
    ), found


def test_a_blank_patient_is_filled_in_and_a_right_one_kept(tmp_path: Path) -> None:
    section = from_file(tmp_path / "q.jsonl", line(), "", line(stem="Which side?", patient="patient of a"))
    questions, left_out = build(section, STUDIES)
    assert [question.patient for question in questions] == ["patient of a", "patient of a"]
    assert [question.origin for question in questions] == ["by hand", "by hand"]
    assert left_out == {}


def test_a_question_about_an_unusable_study_is_dropped_and_counted(tmp_path: Path) -> None:
    questions, left_out = build(from_file(tmp_path / "q.jsonl", line(), line(study="b")), STUDIES)
    assert [question.study for question in questions] == ["a"]
    assert left_out == {"the study can't be used": 1}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (line(study="aa"), r"no study 'aa'; there are: a, b"),
        (line(study=None), "study: is missing"),
        (line(patient="somebody else"), "is of patient 'patient of a', not 'somebody else'"),
        (line(answer="parietal"), "is not an option"),
        (line(options=["frontal"]), "options"),
        (line(options=["frontal", "frontal"]), "not distinct"),
        (line(stem=None), "stem"),
        (line(colour="red"), "colour"),
        (line(question="0123456789abcdef"), "has other content"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(tmp_path: Path, bad: str, reason: str) -> None:
    path = tmp_path / "q.jsonl"
    with pytest.raises(BadInput, match=reason) as caught:
        build(from_file(path, line(), "", bad), STUDIES)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        build(FileQuestions(origin="file", path=str(tmp_path / "none.jsonl")), STUDIES)


def test_grammar_questions_lie_in_the_source_folder(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(line() + "\n" + line(study="b") + "\n")
    questions, left_out = build(GrammarQuestions(origin="grammar"), STUDIES, tmp_path)
    assert len(questions) == 1 and left_out == {"the study can't be used": 1}
    with pytest.raises(BadInput, match="--source"):
        build(GrammarQuestions(origin="grammar"), STUDIES)


def test_the_truth_is_the_label_and_a_finding_answers_yes_or_no() -> None:
    section = GrammarQuestions(origin="grammar")
    one = study(
        "a", labels={"location": "frontal", "Edema": "positive", "Fracture": "negative", "Pneumonia": "uncertain"}
    )
    assert [truth(section, one, topic) for topic in ("location", "Edema", "Fracture", "Pneumonia", "size")] == [
        "frontal",
        "yes",
        "no",
        None,
        None,
    ]
    assert truth(FindingQuestions(origin="findings"), one, "Pneumonia") == "no"


def test_generated_questions_are_not_built_in_one_step() -> None:
    section = GeneratedQuestions(origin="generated", author="a", validator="b")
    with pytest.raises(BadInput, match="`overread questions generate`, `validate` and `filter`"):
        build(section, STUDIES)
