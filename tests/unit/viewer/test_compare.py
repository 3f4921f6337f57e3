"""Compare: the pairs of two arms are those of the tables, and the page lists them as it says."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from overread.core.records import read_questions, read_responses, read_trials, write_responses
from overread_viewer.comparing import Arm, Comparing, Filters
from overread_viewer.errors import BadRequest, NotThere

GROUPS = ("all", "label-changed", "label-unchanged", "within-patient", "across-patients")


@pytest.fixture(scope="module")
def pairing(results: Path) -> Comparing:
    return Comparing(results, json.loads((results / "study.json").read_text()))


@pytest.fixture(scope="module")
def spec(results: Path) -> dict[str, Any]:
    return json.loads((results / "study.json").read_text())


def arms(model: str, *settings: str) -> tuple[Arm, Arm]:
    return Arm(model, settings[0]), Arm(model, settings[-1])


def test_every_row_of_the_flip_table_is_found_again_to_the_last_digit(results: Path, pairing: Comparing, spec):
    """Counts, flip rate, interval, margins and noise floor of every comparison, model and group."""
    with (results / "tables" / "flips.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["comparison"] for row in rows}) > 3 and {row["group"] for row in rows} > set(GROUPS)
    for row in rows:
        a, b = arms(row["model"], *spec["comparisons"][row["comparison"]]["flips"])
        pairs = pairing.pairs(row["dataset"], a, b)
        group = row["group"]
        one = pairs.summary("", group) if group in GROUPS else pairs.summary(group)
        floor = one.floor or (None, None, None)
        found = [one.pairs, one.patients, one.rate, one.low, one.high, one.moved, one.unpaired, *floor]
        names = [
            "pairs",
            "patients",
            "flip_rate",
            "low",
            "high",
            "mean_abs_margin_change",
            "unpaired",
            "floor",
            "floor_low",
            "floor_high",
        ]
        for name, value in zip(names, found, strict=True):
            assert row[name] == ("" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)), (
                row, name,
            )  # fmt: skip
        assert one.flips == round(float(row["flip_rate"]) * one.pairs)


def test_a_row_of_the_table_spares_the_drawing_but_not_where_the_answers_are_others(results: Path, spec):
    """The interval of the table is taken where the row is of these pairs; a row of earlier answers is not believed."""
    with (results / "tables" / "flips.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    both = arms("reader", "xray", "xray-swapped")
    drawn = Comparing(results, spec).pairs("xray", *both).summary()
    taken = Comparing(results, spec, lambda: [{**row, "low": "0.012345"} for row in rows]).pairs("xray", *both)
    assert taken.summary().low == 0.012345
    assert taken.summary().high == pytest.approx(drawn.high, abs=1e-6)
    stale = Comparing(results, spec, lambda: [{**row, "low": "0.012345", "unpaired": "99"} for row in rows])
    assert stale.pairs("xray", *both).summary() == drawn


def test_pairs_are_counted_as_their_responses_say(results: Path, pairing: Comparing):
    """By hand from the response files: flips, directions and unreadable answers of one comparison."""
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    trials = {one.question: one for one in read_trials(results / "xray/trials/xray/run-1.parquet")}
    a, b = (
        {one.question: one for one in read_responses(results / f"xray/responses/reader/{setting}/run-1.parquet")}
        for setting in ("xray", "xray-swapped")
    )
    counted = {"flipped": 0, "kept": 0, "unpaired": 0, "right-wrong": 0, "wrong-right": 0, "wrong-wrong": 0}
    for question, first in a.items():
        second, trial = b[question], trials[question]
        if first.choice is None or second.choice is None:
            counted["unpaired"] += 1
            continue
        counted["flipped" if first.choice != second.choice else "kept"] += 1
        if first.choice != second.choice:
            right = trial.permutation[trial.answer]
            counted[
                f"{'right' if first.choice == right else 'wrong'}-{'right' if second.choice == right else 'wrong'}"
            ] += 1
    assert counted["flipped"] and counted["unpaired"] and counted["right-wrong"]
    found = pairs.counts("", "all")
    assert {name: found[name] for name in counted} == counted
    assert found["all"] == len(a)


def test_the_largest_change_of_the_margin_comes_first(results: Path, pairing: Comparing):
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    listed = pairs.frame.iloc[pairs.select(Filters(show="all"))]
    moves = [move for move in listed["move"] if not math.isnan(move)]
    assert len(moves) > 10 and moves == sorted(moves, reverse=True)
    # By hand: log p(yes) - log p(no) of the first pair in both response files.
    first, margins = listed.iloc[0], []
    trial = next(
        one for one in read_trials(results / "xray/trials/xray/run-1.parquet") if one.question == first["question"]
    )
    yes = trial.options.index("yes")
    for setting in ("xray", "xray-swapped"):
        responses = read_responses(results / f"xray/responses/reader/{setting}/run-1.parquet")
        logprobs = next(one.logprobs for one in responses if one.question == first["question"])
        assert logprobs is not None
        margins.append(logprobs[yes] - logprobs[1 - yes])
    assert first["move"] == pytest.approx(abs(margins[0] - margins[1]))


def test_pairs_without_log_probabilities_come_last_and_by_study(results: Path, tmp_path: Path):
    """Some of the answers of one arm lose their log-probabilities."""
    copy = tmp_path / "small"
    shutil.copytree(results, copy)
    path = copy / "xray/responses/reader/xray/run-1.parquet"
    given = read_responses(path)
    lost = {one.question for one in given[::3]}
    write_responses([one.model_copy(update={"logprobs": None}) if one.question in lost else one for one in given], path)
    pairs = Comparing(copy, json.loads((copy / "study.json").read_text())).pairs(
        "xray", *arms("reader", "xray", "xray-swapped")
    )
    listed = pairs.frame.iloc[pairs.select(Filters(show="all"))]
    known = listed["move"].notna().to_numpy()
    count = int(known.sum())
    assert 0 < count < len(listed) and known[:count].all() and not known[count:].any()
    assert lost <= set(listed["question"][count:])
    assert list(listed["study"][count:]) == sorted(listed["study"][count:])


def test_a_filter_lists_what_its_count_says_and_nothing_else(pairing: Comparing):
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    for topic in ("", *pairs.topics):
        for group in GROUPS:
            counts = pairs.counts(topic, group)
            for show in ("flipped", "kept", "unpaired", "all"):
                chosen = pairs.frame.iloc[pairs.select(Filters(topic=topic, group=group, show=show))]
                assert len(chosen) == counts[show]
                assert set(chosen["topic"]) <= {topic or one for one in pairs.topics}
            for direction in ("right-wrong", "wrong-right", "wrong-wrong"):
                chosen = pairs.frame.iloc[pairs.select(Filters(topic=topic, group=group, direction=direction))]
                assert len(chosen) == counts[direction]
                assert set(chosen["right_a"]) <= {direction.startswith("right")}
                assert set(chosen["right_b"]) <= {direction.endswith("right")}


def test_label_changed_holds_the_pairs_whose_two_images_differ_in_truth(pairing: Comparing):
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    frame = pairs.frame
    for row, inside in zip(frame.itertuples(), pairs.members("label-changed"), strict=True):
        labels = {row.image_label_a, row.image_label_b}
        assert inside == (row.image_study_a != row.image_study_b and None not in labels and len(labels) == 2)


def test_two_models_are_paired_question_by_question_and_run_by_run(results: Path, pairing: Comparing):
    pairs = pairing.pairs("mri", Arm("reader", "single-slice"), Arm("blind-reader", "single-slice"))
    frame = pairs.frame
    assert sorted(frame["run"].unique()) == [1, 2]
    for run in (1, 2):
        a, b = (
            {
                one.question: one
                for one in read_responses(results / f"mri/responses/{model}/single-slice/run-{run}.parquet")
            }
            for model in ("reader", "blind-reader")
        )
        of_run = frame[frame["run"] == run]
        assert set(of_run["question"]) == set(a)
        for row in of_run.itertuples():
            choices = a[row.question].choice, b[row.question].choice
            assert row.flipped == (None not in choices and choices[0] != choices[1])


def test_an_arm_with_itself_gives_its_reruns(pairing: Comparing):
    pairs = pairing.pairs("mri", *arms("reader", "single-slice", "single-slice"))
    assert (pairs.frame["trial_a"] == pairs.frame["trial_b"]).all()
    assert set(pairs.frame["run"]) == {1}


@pytest.mark.parametrize(
    ("a", "b", "error", "says"),
    [
        ("reader:xray", "blind-reader:xray-swapped", BadRequest, "differ in model and in setting"),
        ("reader:xray", "reader:single-slice", NotThere, "was not run on xray"),
        ("reader:xray", "reader:xray", BadRequest, "no rerun"),
    ],
)
def test_what_can_not_be_compared_is_refused_with_the_reason(pairing: Comparing, a, b, error, says):
    with pytest.raises(error, match=says):
        pairing.pairs("xray", Arm.read(a), Arm.read(b))


def test_new_answers_are_read_anew(results: Path, tmp_path: Path):
    """The response file of an arm is written again while the viewer runs."""
    copy = tmp_path / "small"
    shutil.copytree(results, copy)
    comparing = Comparing(copy, json.loads((copy / "study.json").read_text()))
    both = arms("reader", "xray", "xray-swapped")
    before = comparing.pairs("xray", *both)
    question = before.frame.iloc[before.select(Filters())[0]]["question"]
    kept = before.summary().flips
    path = copy / "xray/responses/reader/xray/run-1.parquet"
    given = read_responses(path)
    turned = [
        one.model_copy(update={"answer": 1 - (one.answer or 0), "choice": 1 - (one.choice or 0)})
        if one.question == question
        else one
        for one in given
    ]
    write_responses(turned, path)
    assert comparing.pairs("xray", *both).summary().flips == kept - 1


# -- pages -----------------------------------------------------------------------------------------------------------


FLIPS = "/compare?dataset=xray&a=reader:xray&b=reader:xray-swapped"


def numbers(text: str) -> list[str]:
    return re.findall(r"Margin moved by <b>([\d.]+)</b>", text)


def test_the_landing_page_links_every_comparison_of_the_run(client, spec):
    page = client.get("/compare?dataset=xray")
    assert page.status_code == 200
    for name, pair in spec["comparisons"].items():
        settings = pair["flips"] or pair["accuracy"]
        there = settings[0] in {cell["setting"] for cell in spec["cells"] if cell["dataset"] == "xray"}
        assert (f'<th scope="row">{name}<br>' in page.text) == there
    links = re.findall(r'href="(/compare\?dataset=xray&amp;a=[^"]+)"', page.text)
    assert links
    for link in links:
        assert client.get(link.replace("&amp;", "&")).status_code == 200


def test_semi_synthetic_data_are_called_so(client):
    assert "semi-synthetic" in client.get(FLIPS).text
    assert "semi-synthetic" in client.get("/ask/xray/xray-01-1").text


def test_the_page_shows_the_tables_numbers(client, results: Path):
    with (results / "tables" / "flips.csv").open(newline="") as file:
        row = next(
            one for one in csv.DictReader(file)
            if (one["model"], one["comparison"], one["group"]) == ("reader", "swap-without-report", "all")
        )  # fmt: skip
    page = client.get(FLIPS).text
    flips = round(float(row["flip_rate"]) * int(row["pairs"]))
    assert f"{flips} of {row['pairs']}" in page
    assert f"{row['patients']} patients" in page
    assert f"<strong>{100 * float(row['flip_rate']):.1f}\N{NO-BREAK SPACE}%</strong>" in page
    assert f"[{100 * float(row['low']):.1f}, {100 * float(row['high']):.1f}]" in page


def test_the_pages_together_list_every_pair_once(client, pairing: Comparing):
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    expected = [f"{one:.2f}" for one in pairs.frame.iloc[pairs.select(Filters(show="all"))]["move"].dropna()]
    seen: list[str] = []
    number = 0
    while True:
        number += 1
        page = client.get(f"{FLIPS}&show=all&page={number}").text
        seen += numbers(page)
        if 'rel="next"' not in page:
            break
    assert number > 1
    assert seen == expected


def test_each_pair_links_both_trials(client, pairing: Comparing):
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    first = pairs.frame.iloc[pairs.select(Filters())[0]]
    page = client.get(FLIPS).text
    for setting in ("xray", "xray-swapped"):
        assert f'href="/trial/xray/{setting}/1/{first["question"]}?model=reader"' in page


def test_no_log_probabilities_is_said_and_the_list_is_there(client):
    page = client.get("/compare?dataset=xray&a=first-option:xray&b=first-option:xray-swapped&show=all").text
    assert "No log-probabilities in both arms" in page
    assert not numbers(page) and "Margin not known" in page


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("dataset=nowhere", 404),
        ("dataset=xray&a=reader:xray&b=reader:elsewhere", 404),
        ("dataset=xray&a=reader:xray&b=../../etc:passwd", 400),
        ("dataset=xray&a=reader&b=reader:xray", 400),
        ("dataset=xray&a=reader:xray&b=reader:xray-swapped&show=everything", 400),
        ("dataset=xray&a=reader:xray&b=reader:xray-swapped&topic='; drop table", 404),
        ("dataset=xray&a=reader:xray&b=reader:xray-swapped&page=x", 400),
    ],
)
def test_a_query_that_leads_nowhere_is_a_clean_refusal(client, query: str, status: int):
    page = client.get(f"/compare?{query}")
    assert page.status_code == status
    assert "Traceback" not in page.text


def test_text_of_a_query_is_never_markup(client):
    page = client.get("/compare", params={"dataset": "xray", "a": "<script>alert(1)</script>", "b": "reader:xray"})
    assert "<script>alert" not in page.text and "&lt;script&gt;alert" in page.text


def test_a_page_beyond_the_last_is_the_last(client):
    assert numbers(client.get(f"{FLIPS}&page=999").text)


def test_the_download_holds_the_list_in_its_order(client, pairing: Comparing, results: Path):
    reply = client.get("/compare.csv?dataset=xray&a=reader:xray&b=reader:xray-swapped&show=all")
    assert reply.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    pairs = pairing.pairs("xray", *arms("reader", "xray", "xray-swapped"))
    listed = pairs.frame.iloc[pairs.select(Filters(show="all"))]
    assert [row["question"] for row in rows] == list(listed["question"])
    questions = {one.question: one for one in read_questions(results / "xray/questions.jsonl")}
    a = {one.question: one for one in read_responses(results / "xray/responses/reader/xray/run-1.parquet")}
    for row in rows:
        question, given = questions[row["question"]], a[row["question"]]
        assert row["stem"] == question.stem and row["right_option"] == question.answer
        assert row["answer_a"] == ("" if given.choice is None else question.options[given.choice])
        assert row["status_a"] == given.status


def test_the_download_of_restricted_data_says_nothing_of_a_study(client_of, restricted_results: Path):
    client = client_of(restricted_results)
    assert "no text of a study" in client.get(FLIPS).text
    text = client.get("/compare.csv?dataset=xray&a=reader:xray&b=reader:xray-swapped&show=all").text
    header = text.splitlines()[0].split(",")
    assert not {"stem", "study", "patient", "topic", "answer_a", "image_label_a"} & set(header)
    assert {"question", "flipped", "margin_change"} <= set(header)
    for question in read_questions(restricted_results / "xray/questions.jsonl"):
        assert question.stem not in text and question.study not in text
