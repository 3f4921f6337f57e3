"""Questions that somebody has written already: the user's JSONL file, or the phantom's grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from overread.config import FileQuestions, GrammarQuestions
from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.core.records import Question, Study, one_line

GRAMMAR_FILE = "questions.jsonl"


def truth(study: Study, topic: str) -> str | None:
    """The study's own truth about a topic. A finding's label answers a yes/no question; an uncertain one doesn't."""
    label = study.labels.get(topic)
    return {"positive": "yes", "negative": "no", "uncertain": None}.get(label, label) if label is not None else None


def build(
    section: FileQuestions | GrammarQuestions, studies: Sequence[Study], source: Path | None = None
) -> tuple[list[Question], dict[str, int]]:
    """The file's questions about usable studies. A blank `patient` is filled in from the study.

    raises  BadInput with file and line: not a question, a study that the dataset doesn't have, another patient's study
    """
    path = Path(section.path) if isinstance(section, FileQuestions) else _grammar_file(source)
    by_name = {study.study: study for study in studies}
    questions: list[Question] = []
    left_out: Counter[str] = Counter()
    try:
        lines = regular(path).read_text(encoding="utf-8").split("\n")  # splitlines would also cut at U+2028
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; it should hold the questions, one JSON object a line") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not readable as UTF-8 text: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        question = _question(line, f"{path}:{number}", by_name)
        if by_name[question.study].problem is not None:
            left_out["the study can't be used"] += 1
        else:
            questions.append(question)
    return questions, dict(left_out)


def _grammar_file(source: Path | None) -> Path:
    if source is None:
        raise BadInput("questions of origin 'grammar' lie in the phantom's folder: give it as --source")
    return source / GRAMMAR_FILE


def _question(line: str, place: str, studies: dict[str, Study]) -> Question:
    import json

    try:
        content = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"{place}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(f"{place}: not a JSON object with the fields of a question")
    study = content.get("study")
    if study is None:
        raise BadInput(f"{place}: study: is missing")
    if study not in studies:
        message = unknown("study", str(study), studies) if len(studies) <= 20 else f"no study {study!r} in this dataset"
        raise BadInput(f"{place}: {message}")
    patient = studies[study].patient
    if not content.get("patient"):
        content["patient"] = patient
    elif content["patient"] != patient:
        raise BadInput(f"{place}: study {study!r} is of patient {patient!r}, not {content['patient']!r}")
    content.setdefault("origin", "file")
    try:
        return Question.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{place}: {one_line(error)}") from None
