import csv
import importlib.util
import json
import subprocess
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from lacking import interpreter
from overread.config.curation import Release
from overread.core.errors import BadInput
from overread.core.outputs import sha256
from overread.core.records import Picture, Question, Study
from overread.curation.exports import task_name
from overread.curation.filter import Count
from overread.curation.funnel import read_funnel
from overread.curation.release import read_orders, release

ROOT = Path(__file__).resolve().parents[3]
SECRET = "Zebrafish sentence of the report"
SECTION = Release(
    title='Questions about "gliomas"', name="glioma-vqa", license="https://spdx.org/licenses/CC-BY-4.0",
    version="1.2.0", description="A test.", url="https://example.org/glioma", published="2026-01-31",
    citation="Somebody 2026",
)  # fmt: skip


def study(number, restricted=True):
    return Study(
        study=f"s{number:02d}", patient=f"p{number // 2:02d}", dataset="d", modality="mri", images={}, labels={},
        report={"findings": f"{SECRET} {number}."}, restricted=restricted,
    )  # fmt: skip


def question(number, **changes):
    """Every fifth has its answer written second, the others first; the fourth option is one that pandas loses."""
    options = ("Thin rim", "Thick rim", 'A "solid",\tpart', "None")
    values = {
        "study": f"s{number % 10:02d}", "patient": f"p{number % 10 // 2:02d}", "topic": "enhancement",
        "stem": f"What does left mass {number} show?", "options": options, "answer": options[number % 5 == 0],
        "evidence": f"{SECRET} {number % 10}.", "origin": "author",
    }  # fmt: skip
    return Question(**{**values, **changes})


STUDIES = [study(number) for number in range(10)]
QUESTIONS = [question(number) for number in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "glioma-vqa"
    release(SECTION, QUESTIONS, STUDIES, out)
    return out


def rows_of(folder, name="questions.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def table_of(path, **options):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, **options))


def test_shuffled_options_are_the_default_and_those_as_written_stand_beside_them(folder):
    by_id = {one.question: one for one in QUESTIONS}
    rows = rows_of(folder)
    assert {row["question"] for row in rows} == set(by_id)
    for row in rows:
        one = by_id[row["question"]]
        assert tuple(row["options_as_written"]) == one.options
        assert row["options"] == [one.options[place - 1] for place in row["permutation"]]
        assert row["options"][row["answer_position"] - 1] == row["answer"] == one.answer
        assert row["options_as_written"][row["answer_position_as_written"] - 1] == one.answer


def test_the_right_option_stands_at_each_place_equally_often(folder):
    assert Counter(row["answer_position"] for row in rows_of(folder)) == {1: 10, 2: 10, 3: 10, 4: 10}


def test_positions_are_counted_as_written_and_as_shuffled(folder):
    shares = {(row["order"], row["position"]): float(row["share"]) for row in table_of(folder / "positions.csv")}
    assert [shares["as-written", str(k)] for k in (1, 2, 3, 4)] == [0.8, 0.2, 0.0, 0.0]
    assert [shares["shuffled", str(k)] for k in (1, 2, 3, 4)] == [0.25] * 4


def test_the_published_positions_are_reproduced(tmp_path):
    """Of 2,387 answers 2,022, 291, 64 and 10 were written at places 1 to 4: 84.7, 12.2, 2.7 and 0.4 %."""
    places = [0] * 2022 + [1] * 291 + [2] * 64 + [3] * 10
    options = ("a", "b", "c", "d")
    questions = [
        question(k, study="s00", patient="p00", options=options, answer=options[p]) for k, p in enumerate(places)
    ]
    release(SECTION, questions, STUDIES, tmp_path / "out")
    shares = {
        (row["order"], row["position"]): float(row["share"]) for row in table_of(tmp_path / "out" / "positions.csv")
    }
    assert [round(100 * shares["as-written", str(k)], 1) for k in (1, 2, 3, 4)] == [84.7, 12.2, 2.7, 0.4]
    assert all(abs(shares["shuffled", str(k)] - 0.25) < 0.02 for k in (1, 2, 3, 4))


def test_the_three_formats_hold_the_same(folder):
    rows = rows_of(folder)
    assert pq.read_table(folder / "questions.parquet").to_pylist() == rows
    for row, flat in zip(rows, table_of(folder / "questions.csv"), strict=True):
        assert [flat[f"option_{k}"] for k in (1, 2, 3, 4)] == row["options"]
        assert [flat[f"option_as_written_{k}"] for k in (1, 2, 3, 4)] == row["options_as_written"]
        assert flat["permutation"] == " ".join(map(str, row["permutation"]))
        assert all(flat[name] == str(row[name]) for name in ("stem", "answer", "answer_position", "study", "topic"))


def texts(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_text_of_a_report_is_released(folder):
    frame = pq.read_table(folder / "questions.parquet").to_pandas()
    assert not frame.map(lambda cell: SECRET in str(cell)).to_numpy().any()
    assert [path for path, content in texts(folder).items() if SECRET.encode() in content] == []
    assert not (folder / "reports.jsonl").exists()


def test_reports_are_released_only_if_the_section_says_so(tmp_path):
    release(SECTION.model_copy(update={"with_report": True}), QUESTIONS, STUDIES, tmp_path / "out")
    assert rows_of(tmp_path / "out", "reports.jsonl")[3] == {"study": "s03", "findings": f"{SECRET} 3."}
    assert all(SECRET in row["evidence"] for row in rows_of(tmp_path / "out"))


def test_the_same_input_gives_the_same_bytes_whatever_its_order(folder, tmp_path):
    release(SECTION, QUESTIONS[::-1], STUDIES[::-1], tmp_path / "again")
    assert {p.relative_to(tmp_path / "again"): c for p, c in texts(tmp_path / "again").items()} == {
        p.relative_to(folder): c for p, c in texts(folder).items()
    }


def test_the_checksums_cover_every_file_and_sha256sum_agrees(folder):
    listed = {line.split("  ", 1)[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    there = {path.relative_to(folder).as_posix() for path in texts(folder)}
    assert listed == there - {"SHA256SUMS", ".overread-questions-release.jsonl"}
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True
    )
    assert done.returncode == 0, done.stdout


def test_a_question_keeps_its_order_from_release_to_release(folder, tmp_path):
    changed = [*QUESTIONS[1:], question(99), question(98)]
    release(SECTION, changed, STUDIES, tmp_path / "next", earlier=folder)
    before, after = read_orders(folder), read_orders(tmp_path / "next")
    assert all(after[one.question] == before[one.question] for one in QUESTIONS[1:])
    assert max(Counter(row["answer_position"] for row in rows_of(tmp_path / "next")).values()) <= 11


def test_a_release_replaces_a_release_and_nothing_else(folder, tmp_path):
    out = tmp_path / "out"
    release(SECTION, QUESTIONS, STUDIES, out)
    release(SECTION, QUESTIONS[:30], STUDIES, out)
    assert len(rows_of(out)) == 30
    (out / "mine").write_text("x")
    with pytest.raises(BadInput, match="did not write, or that were changed since: mine; move them away"):
        release(SECTION, QUESTIONS, STUDIES, out)
    assert (out / "mine").read_text() == "x"
    assert len(rows_of(out)) == 30
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match=r"did not write.*: thesis\.txt"):
        release(SECTION, QUESTIONS, STUDIES, other)
    assert (other / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


def test_a_failed_release_leaves_the_one_before(tmp_path):
    out = tmp_path / "out"
    release(SECTION, QUESTIONS, STUDIES, out)
    with pytest.raises(BadInput, match="say where the images are"):
        release(SECTION.model_copy(update={"view": "flair-axial"}), QUESTIONS, STUDIES, out)
    assert len(rows_of(out)) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(BadInput, match="no such study"):
        release(SECTION, QUESTIONS, STUDIES[1:], tmp_path / "out")
    with pytest.raises(BadInput, match="no question"):
        release(SECTION, [], STUDIES, tmp_path / "out")
    with pytest.raises(BadInput, match="no release there"):
        release(SECTION, QUESTIONS, STUDIES, tmp_path / "out", earlier=tmp_path)


def with_pictures(tmp_path, per_study=2):
    images = tmp_path / "images"
    pictures = []
    for one in STUDIES:
        for order in range(per_study):
            path = f"{one.study}/flair-axial-{order}.png"
            (images / path).parent.mkdir(parents=True, exist_ok=True)
            Image.new("L", (8, 8), order).save(images / path)
            pictures.append(
                Picture(
                    study=one.study, view="flair-axial", order=order, name="FLAIR", path=path, pixels="0", width=8,
                    height=8, series="FLAIR",
                )
            )  # fmt: skip
    section = SECTION.model_copy(update={"view": "flair-axial"})
    release(section, QUESTIONS, STUDIES, tmp_path / "out", pictures=pictures[::-1], images=images)
    return tmp_path / "out"


def test_pictures_of_the_view_are_copied_in_their_order(tmp_path):
    out = with_pictures(tmp_path)
    for row in rows_of(out):
        assert row["pictures"] == [f"pictures/{row['study']}/flair-axial-{k}.png" for k in (0, 1)]
        assert [Image.open(out / name).getpixel((0, 0)) for name in row["pictures"]] == [0, 1]


def test_a_study_without_a_picture_is_named(tmp_path):
    section = SECTION.model_copy(update={"view": "flair-axial"})
    with pytest.raises(BadInput, match="study s00: no picture of view 'flair-axial'"):
        release(section, QUESTIONS, STUDIES, tmp_path / "out", images=tmp_path)


# -- the card and the description for programs -----------------------------------------------------------------------


def test_the_card_holds_the_published_tables_statistics(folder):
    """40 questions about 10 studies of 5 patients; six words in every stem and eight in its options."""
    card = (folder / "README.md").read_text()
    assert "| 40 | 10 | 5 | 14.00 |" in card
    assert "| as-written | 80.0 | 20.0 | 0.0 | 0.0 |" in card
    assert "| shuffled | 25.0 | 25.0 | 25.0 | 25.0 |" in card
    assert "| enhancement | 40 |" in card
    assert "restricted" in card
    assert "semi-synthetic" not in card
    front = yaml.safe_load(card.split("---")[1])
    assert front["pretty_name"] == 'Questions about "gliomas"'


def test_the_card_says_what_was_dropped_only_where_it_is_known(folder, tmp_path):
    assert "passed every rule" not in (folder / "README.md").read_text()
    funnel = [Count("generated", "", 50, 0), Count("checks", "spacing", 50, 8), Count("kept", "", 42, 0)]
    release(SECTION, QUESTIONS, STUDIES, tmp_path / "out", funnel=funnel)
    card = " ".join((tmp_path / "out" / "README.md").read_text().split())
    assert "Of 50 that were written 42 passed every rule, and 40 are released." in card
    assert "| checks | spacing | 50 | 8 | 42 |" in card
    assert read_funnel(tmp_path / "out" / "funnel.csv") == funnel


def test_a_semi_synthetic_release_says_so_on_its_card(tmp_path):
    studies = [one.model_copy(update={"semi_synthetic": True, "restricted": False}) for one in STUDIES]
    release(SECTION, QUESTIONS, studies, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "semi-synthetic" in card
    assert "are restricted" not in card


def test_croissant_is_valid_and_its_records_are_the_questions(folder):
    mlc = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed")
    dataset = mlc.Dataset(jsonld=str(folder / "croissant.json"))
    assert dataset.metadata.issues.errors == set()
    assert dataset.metadata.issues.warnings == set()
    for record, row in zip(dataset.records("questions"), rows_of(folder), strict=True):
        assert record["questions/stem"].decode() == row["stem"]
        assert [one.decode() for one in record["questions/options"]] == row["options"]
        assert record["questions/answer_position"] == row["answer_position"]


def test_croissant_names_every_file_with_its_checksum(folder):
    described = json.loads((folder / "croissant.json").read_text())["distribution"]
    assert {one["contentUrl"]: one["sha256"] for one in described} == {
        name: sha256(folder / name)
        for name in ("questions.jsonl", "questions.csv", "questions.parquet", "positions.csv")
    }


# -- exports ---------------------------------------------------------------------------------------------------------


def test_vlmevalkits_table_survives_being_read_by_pandas(folder):
    """VLMEvalKit reads a TSV with pandas' defaults, which take `None` for a missing value and drop the option."""
    rows = {row["question"]: row for row in rows_of(folder)}
    for name, suffix in (("glioma_vqa", ""), ("glioma_vqa_as_written", "_as_written")):
        frame = pd.read_csv(folder / "for-vlmevalkit" / f"{name}.tsv", sep="\t")
        assert len(frame) == 40
        assert frame["index"].is_unique
        assert not frame[["question", "A", "B", "C", "D", "answer"]].isna().to_numpy().any()
        for line in frame.to_dict("records"):
            row = rows[line["id"]]
            assert [line[letter].rstrip(".") for letter in "ABCD"] == row[f"options{suffix}"]
            assert "ABCD".index(line["answer"]) == row[f"answer_position{suffix}"] - 1


def test_vlmevalkit_gets_one_path_or_a_list(tmp_path):
    one, two = "pictures/s00/flair-axial-0.png", "pictures/s00/flair-axial-1.png"
    for count, wanted in ((1, one), (2, f"['{one}', '{two}']")):
        out = with_pictures(tmp_path / str(count), count)
        frame = pd.read_csv(out / "for-vlmevalkit" / "glioma_vqa.tsv", sep="\t")
        assert frame.loc[frame["study"] == "s00", "image_path"].iloc[0] == wanted


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lmms_evals_task_names_functions_that_are_there(folder):
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: ("function", loader.construct_scalar(node)))
    tasks = loaded(folder / "for-lmms-eval" / "tasks.py")
    for name in ("glioma_vqa", "glioma_vqa_as_written"):
        task = yaml.load((folder / "for-lmms-eval" / f"{name}.yaml").read_text(), Loader)
        assert task["task"] == name
        assert len(rows_of(folder, task["dataset_kwargs"]["data_files"]["test"])) == 40
        named = [value[1] for value in task.values() if isinstance(value, tuple)]
        assert len(named) == 4
        assert all(callable(getattr(tasks, one.removeprefix("tasks."))) for one in named)


def test_lmms_evals_answers_are_read_and_never_guessed(folder):
    tasks = loaded(folder / "for-lmms-eval" / "tasks.py")
    options = ["Thin rim", "Thick rim", "Solid", "None"]
    answers = {
        "2": 1, "2)": 1, "(2) Thick rim": 1, "**3**": 2, "The answer is 4": 3, "Option 1": 0, "thick rim": 1,
        "None.": 3, "5": None, "": None, "0": None, "Thin rim or solid": None, "I can't say": None, "22": None,
    }  # fmt: skip
    assert {text: tasks.chosen(text, options) for text in answers} == answers
    row = rows_of(folder)[0]
    assert tasks.shuffled_result(row, [str(row["answer_position"])]) == {"accuracy": 1.0, "unparsed": 0.0}
    assert tasks.as_written_result(row, ["no idea"]) == {"accuracy": 0.0, "unparsed": 1.0}
    assert tasks.shuffled_text(row).splitlines()[1] == f"1) {row['options'][0]}"


def test_names_become_identifiers():
    assert task_name(SECTION) == "glioma_vqa"
    assert task_name(SECTION.model_copy(update={"name": "3t.brain"})) == "q_3t_brain"


# -- the packages themselves -----------------------------------------------------------------------------------------

READERS = {
    "lmms_eval": """
import sys
from lmms_eval.tasks import TaskManager, get_task_dict
manager = TaskManager(include_path="for-lmms-eval", include_defaults=False)
for name, suffix in (("glioma_vqa", ""), ("glioma_vqa_as_written", "_as_written")):
    task = get_task_dict([name], manager)[name]
    docs = list(task.test_docs())
    assert len(docs) == 40, len(docs)
    assert all(len(task.doc_to_visual(doc)) == 2 for doc in docs)
    assert all(doc["options" + suffix][0] in task.doc_to_text(doc) for doc in docs)
    right = [task.process_results(doc, [task.doc_to_target(doc)]) for doc in docs]
    assert all(one == {"accuracy": 1.0, "unparsed": 0.0} for one in right)
    assert task.aggregation()["accuracy"]([one["accuracy"] for one in right]) == 1.0
""",
    "vlmeval": """
import os
os.environ["LMUData"] = os.path.abspath("for-vlmevalkit")
from vlmeval.dataset import build_dataset
for name in ("glioma_vqa", "glioma_vqa_as_written"):
    data = build_dataset(name)
    assert type(data).__name__ == "CustomMCQDataset", type(data)
    assert len(data) == 40
    for place in range(40):
        message = data.build_prompt(place)
        assert [one["type"] for one in message] == ["image", "image", "text"]
        assert all(os.path.exists(one["value"]) for one in message[:2])
        assert all(f"\\n{letter}. " in message[2]["value"] for letter in "ABCD"), message
""",
    "inspect_ai": """
import runpy
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def answer(target):
    # Without its usage the mock model would count tokens with an encoding from the network.
    output = ModelOutput.from_content("mockllm/model", f"ANSWER: {target}")
    return output.model_copy(update={"usage": ModelUsage()})

module = runpy.run_path("for-inspect-ai/glioma_vqa.py")
for order in ("shuffled", "as-written"):
    task = module["glioma_vqa"](order=order)
    assert len(task.dataset) == 40
    answers = [answer(one.target) for one in task.dataset]
    model = get_model("mockllm/model", custom_outputs=answers)
    log = eval(task, model=model, display="none", log_dir="../logs", max_connections=1, max_samples=1)[0]
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert [part.type for part in log.samples[0].input[0].content] == ["image", "image", "text"]
""",
}


EXPORTS_PYTHON = interpreter("OVERREAD_EXPORTS_PYTHON", ".venv-exports")
"""An interpreter that has the packages; they can't be installed beside Overread's own pins."""


@pytest.mark.release
@pytest.mark.parametrize("package", sorted(READERS))
def test_the_export_loads_in_the_real_package(package, tmp_path):
    out = with_pictures(tmp_path)
    done = subprocess.run(
        [EXPORTS_PYTHON, "-c", READERS[package]], cwd=out, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
