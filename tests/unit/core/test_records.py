"""The five nouns: what is written is read back, ids come from content alone, and a bad file is told of by name."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overread.core import records
from overread.core.errors import BadInput
from overread.core.records import (
    Block,
    Picture,
    Question,
    Response,
    Study,
    Substitute,
    Trial,
    content_hash,
    request_key,
)

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
word = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)
texts = st.dictionaries(word, text, max_size=3)
maybe = st.none() | word
number = st.floats(allow_nan=False, allow_infinity=False)

studies = st.builds(
    Study, study=word, patient=word, dataset=word, modality=st.sampled_from(["mri", "xray"]), images=texts,
    report=texts, labels=texts, attributes=texts, restricted=st.booleans(), semi_synthetic=st.booleans(), problem=maybe,
)  # fmt: skip
pictures = st.builds(
    Picture, study=word, view=word, order=st.integers(0, 99), name=text, path=text, pixels=text,
    width=st.integers(1, 9999), height=st.integers(1, 9999), series=text, plane=maybe,
    slice_index=st.none() | st.integers(0, 500), position_mm=st.none() | number, chosen_by=maybe,
)  # fmt: skip
images = st.builds(Block, role=st.just("image"), image=word, pixels=word, text=st.none())
spans = st.builds(
    Block, role=st.sampled_from(["caption", "report", "question", "options", "instruction"]), text=text,
    image=st.none(), pixels=st.none(),
)  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> Question:
    options = tuple(draw(st.lists(text, min_size=2, max_size=5, unique=True)))
    return Question(
        study=draw(word), patient=draw(word), stem=draw(text), options=options, answer=draw(st.sampled_from(options)),
        topic=draw(text), evidence=draw(text), origin=draw(word),
    )  # fmt: skip


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    options = tuple(draw(st.lists(text, min_size=2, max_size=5, unique=True)))
    return Trial(
        dataset=draw(word), setting=draw(word), run=draw(st.integers(1, 9)), question=draw(word), topic=draw(text),
        study=draw(word), patient=draw(word), image_study=draw(maybe), image_patient=draw(maybe), label=draw(maybe),
        image_label=draw(maybe), blocks=tuple(draw(st.lists(images | spans, max_size=4))), options=options,
        permutation=tuple(draw(st.permutations(range(len(options))))), answer=draw(st.integers(0, len(options) - 1)),
        readout=draw(st.sampled_from(["choice", "yes-no", "first-token", "free-text", "similarity"])),
        attention=draw(st.sampled_from(["none", "from-0", "only-61"])), restricted=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def responses(draw: st.DrawFn) -> Response:
    status = draw(st.sampled_from(["answered", "unparsed", "refused", "truncated", "failed"]))
    place = st.integers(0, 4) if status == "answered" else st.none()
    return Response(
        request=draw(word), trial=draw(word), question=draw(word), dataset=draw(word), model=draw(word),
        setting=draw(word), run=draw(st.integers(1, 9)), text=draw(text), status=status, answer=draw(place),
        choice=draw(place), logprobs=draw(st.none() | st.lists(number, max_size=5).map(tuple)),
        finish_reason=draw(maybe),
        prompt_tokens=draw(st.none() | st.integers(0, 99999)), seconds=draw(st.none() | number), error=draw(maybe),
    )  # fmt: skip


# -- round trips -------------------------------------------------------------------------------------------------------

PARQUET: list[tuple[str, Any, Callable[..., Any], Callable[..., Any], Callable[[Any], Any]]] = [
    ("Study", studies, records.write_studies, lambda path: records.read_studies(path, with_problems=True),
        lambda one: one.study),
    ("Picture", pictures, records.write_pictures, records.read_pictures, lambda one: (one.study, one.view, one.order)),
    ("Trial", trials(), records.write_trials, records.read_trials, lambda one: (one.study, one.question)),
    ("Response", responses(), records.write_responses, records.read_responses, lambda one: 0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rows", "write", "read", "order"), PARQUET, ids=[each[0] for each in PARQUET])
def test_what_is_written_as_parquet_is_read_back_in_its_order(
    tmp_path: Path, kind: str, rows: Any, write: Any, read: Any, order: Any
) -> None:
    @FEW
    @given(st.lists(rows, max_size=4))
    def round_trip(given_rows: list[Any]) -> None:
        write(given_rows, tmp_path / "table.parquet")
        assert read(tmp_path / "table.parquet") == sorted(given_rows, key=order)

    round_trip()


@FEW
@given(st.lists(questions(), max_size=5, unique_by=lambda one: one.question))
def test_questions_are_read_back_whatever_characters_they_hold(tmp_path: Path, given_rows: list[Question]) -> None:
    """Also those that some programs take for the end of a line: form feed, next line, line separator."""
    odd = Question(
        study="s", patient="p", stem="a\u2028b\x85c\x0cd\re", options=("1\n", "2"), answer="2", topic="", origin="o"
    )
    rows = [*given_rows, odd]
    records.write_questions(rows, tmp_path / "questions.jsonl")
    assert records.read_questions(tmp_path / "questions.jsonl") == sorted(
        rows, key=lambda one: (one.study, one.question)
    )


def test_substitutes_are_read_back(tmp_path: Path) -> None:
    rows = [
        Substitute(study="b", patient="2", substitute="a", substitute_patient="1", why='across, "quoted"\nline'),
        Substitute(study="a", patient="1", substitute="c", substitute_patient="1", why="within"),
    ]
    records.write_substitutes(rows, tmp_path / "substitutes.csv")
    assert records.read_substitutes(tmp_path / "substitutes.csv") == [rows[1], rows[0]]
    assert [one.within_patient for one in rows] == [False, True]


def test_studies_with_a_problem_are_kept_and_not_used(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "patient": "p", "dataset": "d", "modality": "mri", "images": {}, "report": {}, "labels": {}, "restricted": True,
    }  # fmt: skip
    good, bad = Study(study="good", **fields), Study(study="bad", problem="no FLAIR", **fields)
    records.write_studies([good, bad], tmp_path / "studies.parquet")
    assert records.read_studies(tmp_path / "studies.parquet") == [good]
    assert records.read_studies(tmp_path / "studies.parquet", with_problems=True) == [bad, good]


# -- ids ---------------------------------------------------------------------------------------------------------------


@given(st.dictionaries(text, text | st.integers() | st.lists(text)), st.randoms(use_true_random=False))
def test_a_content_hash_does_not_depend_on_the_order_of_keys(content: dict[str, Any], chance: random.Random) -> None:
    keys = list(content)
    chance.shuffle(keys)
    assert content_hash({key: content[key] for key in keys}) == content_hash(content)


def test_a_content_hash_is_the_sha256_of_canonical_json() -> None:
    canonical = b'{"a":[1,"\\u00e9"],"b":null}'
    assert content_hash({"b": None, "a": [1, "é"]}) == hashlib.sha256(canonical).hexdigest()[:16]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_can_not_say_has_no_hash(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        content_hash([number])


@FEW
@given(
    st.lists(questions(), min_size=2, max_size=6, unique_by=lambda one: one.question), st.randoms(use_true_random=False)
)
def test_files_and_ids_are_the_same_under_a_shuffled_input(
    tmp_path: Path, rows: list[Question], chance: random.Random
) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    records.write_questions(rows, tmp_path / "one.jsonl")
    records.write_questions(shuffled, tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


@FEW
@given(st.lists(studies, min_size=2, max_size=5, unique_by=lambda one: one.study), st.randoms(use_true_random=False))
def test_a_table_is_the_same_to_the_byte_under_a_shuffled_input(
    tmp_path: Path, rows: list[Study], chance: random.Random
) -> None:
    shuffled = [one.model_copy(update={"labels": dict(reversed(list(one.labels.items())))}) for one in rows]
    chance.shuffle(shuffled)
    records.write_studies(rows, tmp_path / "one.parquet")
    records.write_studies(shuffled, tmp_path / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()


@given(questions())
def test_the_id_of_a_question_is_of_study_stem_options_and_answer(question: Question) -> None:
    dressed = {"patient": "other", "topic": "other", "evidence": "other", "origin": "other"}
    again = Question.model_validate({**question.model_dump(), **dressed})
    assert again.question == question.question
    assert (
        Question.model_validate({**question.model_dump(), "question": "", "stem": question.stem + "!"}).question
        != again.question
    )


@given(trials())
def test_the_id_of_a_trial_is_of_what_reaches_the_model(trial: Trial) -> None:
    """Setting, run, labels, file names and which option is right are not shown to a model; pixels and options are."""
    blocks = [block.model_dump() | ({"image": "moved.png"} if block.role == "image" else {}) for block in trial.blocks]
    dress = {"setting": "x", "run": 7, "label": "x", "image_label": "x", "image_study": "x", "study": "x", "answer": 0}
    content = {**trial.model_dump(), "trial": ""}
    assert Trial.model_validate({**content, **dress, "blocks": blocks}).trial == trial.trial
    shown: list[dict[str, Any]] = [
        {"options": [*trial.options[:-1], trial.options[-1] + "!"]},
        {"readout": "choice" if trial.readout != "choice" else "yes-no"},
        {"attention": "from-1"},
        {"blocks": [*blocks, {"role": "image", "image": "a.png", "pixels": "0"}]},
    ]
    ids = {Trial.model_validate({**content, **change}).trial for change in shown}
    assert trial.trial not in ids
    assert len(ids) == len(shown)


def test_an_id_that_does_not_fit_its_content_is_refused() -> None:
    fields: dict[str, Any] = {
        "study": "s", "patient": "p", "stem": "Where?", "options": ("left", "right"), "answer": "left", "topic": "side",
        "origin": "o",
    }  # fmt: skip
    with pytest.raises(ValueError, match="other content than its id says"):
        Question(question="0123456789abcdef", **fields)


@given(trials(), st.dictionaries(word, text, min_size=1))
def test_a_request_key_is_of_model_trial_question_run_and_what_else_is_looked_at(
    trial: Trial, model: dict[str, str]
) -> None:
    key = request_key(model, trial)
    content = {**trial.model_dump(), "trial": ""}
    others = [
        request_key({**model, "revision of the weights": "2"}, trial),
        request_key(model, Trial.model_validate({**content, "run": trial.run + 1})),
        request_key(model, Trial.model_validate({**content, "question": trial.question + "!"})),
        request_key(model, trial, ["truth"]),
    ]
    assert len({key, *others}) == 5
    assert request_key(model, Trial.model_validate({**content, "setting": "another name"})) == key


# -- what a record refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ("left", "left")}, "not distinct"),
        ({"answer": "up"}, "is not an option"),
        ({"options": ("left",)}, "at least 2"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_question_that_can_not_be_is_refused(change: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {
        "study": "s", "patient": "p", "stem": "Where?", "options": ("left", "right"), "answer": "left", "topic": "side",
        "origin": "o",
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        Question.model_validate({**fields, **change})


@pytest.mark.parametrize(("status", "answer"), [("answered", None), ("unparsed", 1), ("refused", 0), ("failed", 2)])
def test_a_response_has_an_answer_exactly_if_it_is_answered(status: str, answer: int | None) -> None:
    fields = dict.fromkeys(("request", "trial", "question", "dataset", "model", "setting", "text"), "x")
    with pytest.raises(ValueError, match="with answer"):
        Response.model_validate({**fields, "run": 1, "status": status, "answer": answer, "choice": answer})


@pytest.mark.parametrize(
    "block",
    [
        {"role": "image", "text": "x"},
        {"role": "image", "image": "a.png"},
        {"role": "report"},
        {"role": "report", "text": "x", "pixels": "0"},
    ],
)
def test_a_block_is_text_or_an_image(block: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="block has"):
        Block.model_validate(block)


# -- bad files ---------------------------------------------------------------------------------------------------------

READERS: list[Callable[[Path], Any]] = [
    records.read_studies, records.read_pictures, records.read_trials, records.read_responses,
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_a_table_that_is_missing_cut_off_empty_or_something_else_is_bad_input(
    tmp_path: Path, read: Callable[[Path], Any]
) -> None:
    path = tmp_path / "some.parquet"
    with pytest.raises(BadInput, match=f"{path}: no such file"):
        read(path)
    pq.write_table(pa.table({"study": ["s"], "colour": ["red"]}), path)
    whole = path.read_bytes()
    with pytest.raises(BadInput, match=f"{path}: not a .* table of this version: no column"):
        read(path)
    for content in (whole[: len(whole) // 2], b"", b"PAR1", b"study,patient\ns,p\n", whole[:-4] + b"XXXX"):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=f"{path}: not a .* table"):
            read(path)


def test_a_table_with_impossible_values_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "studies.parquet"
    study = Study(
        study="s", patient="p", dataset="d", modality="mri", images={}, report={}, labels={}, restricted=True
    )  # fmt: skip
    records.write_studies([study], path)
    table = pq.read_table(path)
    place = table.schema.get_field_index("modality")
    pq.write_table(table.set_column(place, "modality", pa.array(["smell"])), path)
    with pytest.raises(BadInput, match=f"{path}: modality"):
        records.read_studies(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"study": "s"', "questions.jsonl:2: "),
        (b"{}", "questions.jsonl:2: study: Field required"),
        (b"[1, 2]", "questions.jsonl:2: "),
        (b"\xff\xfe", "questions.jsonl: not UTF-8"),
    ],
)
def test_a_bad_line_of_questions_is_named_by_its_number(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "questions.jsonl"
    good = Question(study="s", patient="p", stem="?", options=("a", "b"), answer="a", topic="t", origin="o")
    path.write_bytes(good.model_dump_json().encode() + b"\n" + content + b"\n")
    with pytest.raises(BadInput, match=message):
        records.read_questions(path)


def test_questions_without_ids_get_those_of_their_content(tmp_path: Path) -> None:
    good = Question(study="s", patient="p", stem="?", options=("a", "b"), answer="a", topic="t", origin="o")
    row = {key: value for key, value in good.model_dump(mode="json").items() if key != "question"}
    (tmp_path / "q.jsonl").write_text(json.dumps(row) + "\n\n")
    assert records.read_questions(tmp_path / "q.jsonl") == [good]


def test_the_same_question_twice_is_bad_input(tmp_path: Path) -> None:
    good = Question(study="s", patient="p", stem="?", options=("a", "b"), answer="a", topic="t", origin="o")
    with pytest.raises(BadInput, match="occurs twice"):
        records.write_questions([good, good], tmp_path / "q.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [("study,patient\na,b\n", "substitute"), ("", "substitute"), (None, "no such file")],
)
def test_a_table_of_substitutes_that_is_not_one_is_bad_input(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "substitutes.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=f"{path}: .*{message}"):
        records.read_substitutes(path)


# -- writing -----------------------------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.txt"
    with records.replacing(path) as temporary:
        temporary.write_text("old")
    with pytest.raises(RuntimeError), records.replacing(path) as temporary:  # noqa: PT012
        temporary.write_text("half of the n")
        raise RuntimeError("the disk is full")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_killed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    code = (
        "import os, signal; from pathlib import Path; from overread.core.records import replacing\n"
        f"with replacing(Path({str(path)!r})) as temporary:\n"
        "    temporary.write_text('half of the n'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert path.read_text() == "old"
    with records.replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_importing_the_records_loads_no_arrow() -> None:
    code = "import sys, overread.core.records; print(sorted({'pyarrow', 'pandas', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
