from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overread.core.errors import BadInput
from overread.core.records import Question
from overread.curation.candidates import (
    Candidate,
    StudyReply,
    Wording,
    read_candidates,
    read_replies,
    write_candidates,
    write_replies,
)


def candidate(index: int = 0, **changes: object) -> Candidate:
    return Candidate.model_validate(
        {
            "study": "UCSF-PDGM-0004", "patient": "0004", "index": index, "stem": "Where is it?",
            "options": ("left", "right", "both", "neither"), "answer": "left", "reasoning": "It is said.",
            "evidence": ("It is on the left.",), "origin": "author", "request": "key", **changes,
        }
    )  # fmt: skip


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(stem=texts, options=st.lists(texts, max_size=5), answer=texts, evidence=st.lists(texts, max_size=3))
def test_whatever_an_author_writes_comes_back_from_the_file(
    stem: str, options: list[str], answer: str, evidence: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("candidates") / "candidates.jsonl"
    one = candidate(stem=stem, options=tuple(options), answer=answer, evidence=tuple(evidence))
    write_candidates([one], path)
    assert read_candidates(path) == [one]


def test_the_order_of_the_file_is_that_of_studies_and_places(tmp_path: Path) -> None:
    many = [candidate(index, study=study) for study in ("b", "a") for index in (10, 2, 0)]
    for name, order in (("one", many), ("two", many[::-1])):
        write_candidates(order, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert [(one.study, one.index) for one in read_candidates(tmp_path / "one")] == [
        ("a", 0), ("a", 2), ("a", 10), ("b", 0), ("b", 2), ("b", 10),
    ]  # fmt: skip


def test_the_name_stays_and_the_content_changes_when_a_candidate_is_reworded() -> None:
    before = candidate()
    after = before.model_copy(update={"stem": "Where is the mass?", "before": before.wording, "rewritten": True})
    assert before.name == after.name == "UCSF-PDGM-0004-00"
    assert before.content != after.content
    assert after.before == Wording(stem="Where is it?", options=before.options, answer="left")


def test_the_content_is_the_id_of_the_question_that_a_candidate_becomes() -> None:
    one = candidate()
    question = Question(
        study=one.study, patient=one.patient, stem=one.stem, options=one.options, answer=one.answer, topic="location",
        origin=one.origin,
    )  # fmt: skip
    assert question.question == one.content


def test_replies_come_back_from_the_file_sorted_by_study(tmp_path: Path) -> None:
    rows = [
        StudyReply(study=study, patient="p", outcome="written", text='{"a": "\u2028"}\n', questions=2)
        for study in ("b", "a")
    ]
    write_replies(rows, tmp_path / "replies.jsonl")
    assert read_replies(tmp_path / "replies.jsonl") == rows[::-1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Invalid JSON"),
        (candidate().model_dump_json().replace('"index":0', '"index":-1'), "index"),
        (candidate().model_dump_json().replace('"tag":null', '"tag":"MAYBE"'), "tag"),
        (candidate().model_dump_json().replace('"stem"', '"question"'), "stem"),
    ],
)
def test_a_line_that_is_no_candidate_is_named(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    path.write_text(f"{candidate().model_dump_json()}\n\n{line}\n")
    with pytest.raises(BadInput, match=rf"candidates.jsonl:3: .*{problem}"):
        read_candidates(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere\.jsonl: no such file"):
        read_candidates(tmp_path / "nowhere.jsonl")
