"""Prose as long as a report: within 5 % for reports of any length, in words and in a tokenizer's tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overread.core.errors import BadInput
from overread.core.records import Question, Study
from overread.trials.lengths import TOLERANCE, fitted, in_tokens, in_words
from overread.trials.prompt import Prompts
from overread.trials.reports import Reports

LOOKING_REAL = [
    "Clear.",
    "No change.",
    "No acute cardiopulmonary process.",
    "Heart size normal. Lungs clear.",
    "PA and lateral views of the chest were obtained. The lungs are clear without focal\nconsolidation, effusion, or "
    "pneumothorax. The cardiomediastinal silhouette is\nunremarkable. No acute osseous abnormality is identified.",
    "In comparison with the study of ___, there is little change. Monitoring and support\ndevices are in place. "
    + "Bibasilar opacities most likely reflect atelectasis and small effusions. " * 9,
]
QUESTION = Question(
    study="s", patient="p", stem="?", options=("yes", "no"), answer="no", topic="Edema", origin="test"
)  # fmt: skip
REPORTS = Reports(Prompts())


def study(**report: str) -> Study:
    return Study(
        study="s", patient="p", dataset="d", modality="xray", images={}, report=report, labels={}, restricted=False
    )


def text_of(reports: Reports, name: str, one: Study) -> str:
    (block,) = reports.show(name, QUESTION, one, None, lambda _: "no").blocks
    assert block.role == "report" and block.text is not None
    return block.text


@pytest.mark.parametrize("name", ["neutral", "boilerplate"])
@pytest.mark.parametrize("findings", LOOKING_REAL)
@pytest.mark.parametrize("impression", ["", *LOOKING_REAL[:3]])
def test_prose_is_as_long_as_the_report_within_5_per_cent(name: str, findings: str, impression: str) -> None:
    one = study(findings=findings, impression=impression)
    full, made = (in_words(text_of(REPORTS, each, one)) for each in ("full", name))
    assert abs(made - full) <= 0.05 * full


@pytest.mark.parametrize("name", ["neutral", "boilerplate"])
@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 260), min_size=1, max_size=2), st.text("abc", min_size=1, max_size=6))
def test_a_report_of_any_length_is_matched_to_the_word(name: str, lengths: list[int], who: str) -> None:
    report = {
        section: " ".join(["word"] * words) for section, words in zip(("findings", "impression"), lengths, strict=False)
    }
    one = study(**report).model_copy(update={"study": who})
    assert in_words(text_of(REPORTS, name, one)) == in_words(text_of(REPORTS, "full", one))


@pytest.mark.parametrize("name", ["neutral", "boilerplate"])
def test_tokens_of_a_tokenizer_are_matched_within_5_per_cent(name: str, tmp_path: Path) -> None:
    """A tokenizer trained on other text, so that a word is one token here and four there."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(LOOKING_REAL * 3, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    measure = in_tokens(tmp_path)
    assert measure(LOOKING_REAL[4]) != in_words(LOOKING_REAL[4])
    reports = Reports(Prompts(), measure=measure)
    for findings in LOOKING_REAL[2:]:
        one = study(findings=findings, impression=LOOKING_REAL[4])
        full, made = (measure(text_of(reports, each, one)) for each in ("full", name))
        assert abs(made - full) <= TOLERANCE * full


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tokenizer\.json: no such file"):
        in_tokens(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="not a tokenizer"):
        in_tokens(tmp_path)


def test_sentences_come_in_turn_and_the_shortest_fill_up() -> None:
    pool = ["One two three four.", "Five six.", "Seven."]
    assert fitted(pool, 6, in_words) == "One two three four. Five six."
    assert fitted(pool, 5, in_words) == "One two three four. Seven."
    assert fitted(pool, 2, in_words, start=1) == "Five six."
    assert fitted(["Only one long sentence here."], 3, in_words) == "Only one long."


def test_two_studies_do_not_get_the_same_prose() -> None:
    text = {"findings": LOOKING_REAL[4]}
    shown = {text_of(REPORTS, "neutral", study(**text).model_copy(update={"study": name})) for name in "abcdefgh"}
    assert len(shown) > 4
