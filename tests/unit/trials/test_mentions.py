"""Finding mentions against hand-judged sentences.

They were judged before the words that find them were written or widened, so that on new sentences the words do less
well than here: the last 70 were new to the words as they then were.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from overread.config import FINDINGS
from overread.core.errors import BadConfig, BadInput
from overread.questions.findings import COMPOSITE
from overread.trials.mentions import read_lexicon

TABLE = Path(__file__).parents[2] / "data" / "rules" / "finding_mentions.csv"
SECTION_COMPOSITE = (
    "Atelectasis", "Consolidation", "Edema", "Lung Opacity", "Pleural Effusion", "Pneumonia", "Pneumothorax",
)  # fmt: skip
LEXICON = read_lexicon()


def judged() -> list[dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def topics_of(finding: str) -> tuple[str, ...]:
    return (COMPOSITE, *SECTION_COMPOSITE) if finding == COMPOSITE else (finding,)


def test_mentions_agree_with_hand_judged_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    rows = judged()
    assert len(rows) >= 100 and {row["finding"] for row in rows} == {*FINDINGS, COMPOSITE}
    wrong, right, found, there = [], 0, 0, 0
    for row in rows:
        said = LEXICON.mentions(row["sentence"], topics_of(row["finding"]))
        is_there = row["mentions"] == "yes"
        right, found, there = right + (said and is_there), found + said, there + is_there
        if said != is_there:
            wrong.append(f"{row['finding']}: {row['sentence']} ({'missed' if is_there else 'no mention'})")
    precision, recall = right / found, right / there
    with capsys.disabled():
        print(
            f"\nfinding mentions, {len(rows)} sentences: precision {precision:.3f}, recall {recall:.3f}",
            *wrong,
            sep="\n  ",
        )
    assert precision >= 0.95 and recall >= 0.95


@pytest.mark.parametrize(
    ("sentence", "topic"),
    [
        ("There is a PLEURAL EFFUSION.", "Pleural Effusion"),
        ("Air-space disease on the left.", "Lung Opacity"),
        ("Pneumothoraces on both sides.", "Pneumothorax"),
        ("Effussions.", "Pleural Effusion"),
    ],
)
def test_case_hyphens_plurals_and_slips_do_not_hide_a_mention(sentence: str, topic: str) -> None:
    assert LEXICON.mentions(sentence, [topic])


def test_an_excepted_passage_is_no_mention_but_another_one_in_the_sentence_is() -> None:
    assert not LEXICON.mentions("A pericardial effusion is present.", ["Pleural Effusion"])
    assert LEXICON.mentions("A pericardial effusion and a pleural effusion are present.", ["Pleural Effusion"])


def test_a_topic_without_words_is_not_known() -> None:
    assert not LEXICON.knows_any(["colour of the scanner"]) and LEXICON.knows_any(["x", "Edema"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: {Edema: {trems: [edema]}}", "no key 'trems'"),
        ("topics: {Edema: {terms: [edema], with: [Oedema]}}", "no topic 'Oedema'"),
        ("findings: {}", "one key, 'topics'"),
        ("topics: {Edema: {terms: 3}}", r"topics\.Edema"),
        ("topics: [", "not readable as YAML"),
    ],
)
def test_a_file_of_words_that_cannot_be_used_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "words.yaml"
    file.write_text(text)
    with pytest.raises((BadInput, BadConfig), match=said):
        read_lexicon(file)
