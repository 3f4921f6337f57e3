"""What every source, view and back end that is registered must be, whoever wrote it."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from data import registered_samples as samples
from data.trials import make_trial
from overread.backends.base import Answer, load
from overread.config import json_schema
from overread.config.datasets import DatasetSection
from overread.config.kinds import BACKENDS, SOURCES, VIEWS
from overread.config.models import ServerModel
from overread.core import registry
from overread.core.errors import BadInput, OverreadError
from overread.core.records import Study
from overread.core.registry import Registry
from overread.sources.shared.remarks import Remarks

ROOT = Path(__file__).parents[2]
KINDS: dict[str, Registry[Any]] = {"source": SOURCES, "view": VIEWS, "back end": BACKENDS}
ALL = [(kind, name) for kind, known in KINDS.items() for name in known]
every = pytest.mark.parametrize(("kind", "name"), ALL, ids=[f"{kind} {name}" for kind, name in ALL])
every_source = pytest.mark.parametrize("name", list(SOURCES))
LOCAL = [name for name in BACKENDS if BACKENDS[name].stays_here]


# -- the section -------------------------------------------------------------------------------------------------------


@every
def test_it_has_a_title_and_a_tag_of_its_own(kind: str, name: str) -> None:
    known = KINDS[kind]
    section = known[name]
    assert get_args(section.model_fields[known.by].annotation) == (name,)
    title = section.gives if kind == "view" else section.title
    assert title.strip() == title and title
    titles = [one.gives if kind == "view" else one.title for one in known.sections.values()]
    assert titles.count(title) == 1


@pytest.mark.parametrize(("kind", "name"), [one for one in ALL if one[0] != "back end"])
def test_it_has_a_place_in_the_schema(kind: str, name: str) -> None:
    schema = json.loads(json_schema())
    known = KINDS[kind]
    whole = schema["$defs"][known[name].__name__]
    assert whole["properties"][known.by]["const"] == name
    key = {"source": "datasets", "view": "views"}[kind]
    assert f'"#/$defs/{known[name].__name__}"' in json.dumps(schema["properties"][key])


@every
def test_every_key_of_it_that_is_no_plain_word_is_described(kind: str, name: str) -> None:
    """A key whose values are a closed list, or that says yes or no by its name, may stand without a description."""
    own = KINDS[kind][name]
    shared = {field for base in own.__mro__[1:] if hasattr(base, "model_fields") for field in base.model_fields}
    fields = {key: field for key, field in own.model_fields.items() if key not in shared and key != KINDS[kind].by}
    silent = [
        key
        for key, field in fields.items()
        if not field.description and field.annotation in (str, int, float, str | None, int | None, float | None)
    ]
    assert set(silent) <= {"path", "seed"}


@every
def test_its_section_imports_nothing_heavy(kind: str, name: str) -> None:
    """The plan imports all of them each time that Snakemake reads its file: alone in a process each, by its module."""
    module = KINDS[kind].places[name].partition(":")[0]
    heavy = {
        "torch",
        "transformers",
        "vllm",
        "pandas",
        "scipy",
        "openai",
        "nibabel",
        "pydicom",
        "PIL",
        "SimpleITK",
        "numpy",
    }
    code = f"import sys, {module}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- views -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(VIEWS))
def test_a_view_says_what_it_shows_and_how_many_pictures_it_gives(name: str) -> None:
    view = samples.view(name)
    assert view.pictures >= 1
    assert re.fullmatch(r"(the|a|every|all|\d+) .*[^.\s]", view.words()), "the end of a sentence: 'the input is ...'"


# -- back ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(BACKENDS))
def test_a_back_end_says_where_its_trials_go(name: str) -> None:
    section = BACKENDS[name]
    assert section.stays_here != issubclass(section, ServerModel)


@pytest.mark.parametrize("name", [name for name in LOCAL if samples.can_run(name)])
def test_a_back_end_gives_back_what_it_was_given_in_any_batch(name: str, tmp_path: Path) -> None:
    """One answer per trial, each under its own trial's place, whether alone, together or in another order."""
    trials = [make_trial(number) for number in range(7)]
    alone = [next(iter(load(samples.model(name, tmp_path, batch=1), "m").answer([one], tmp_path))) for one in trials]
    together = list(load(samples.model(name, tmp_path, batch=16), "m").answer(trials, tmp_path))
    places = random.Random(1).sample(range(7), 7)
    shuffled = list(load(samples.model(name, tmp_path, batch=3), "m").answer([trials[n] for n in places], tmp_path))
    assert said(together) == said(alone)
    assert said(shuffled) == said([alone[place] for place in places])


def said(answers: list[Answer]) -> list[tuple[str, int | None, str | None]]:
    return [(one.text, one.chosen, one.finish_reason) for one in answers]


# -- sources -----------------------------------------------------------------------------------------------------------


@every_source
def test_a_source_survives_an_empty_folder(name: str, tmp_path: Path) -> None:
    """An error that a person can act on, which names the folder or file; never a traceback."""
    sample = samples.empty_source(name, tmp_path)
    if sample is None:
        assert SOURCES[name].make is not DatasetSection.make, "it makes its own data"
        return
    section, place = sample
    with pytest.raises(OverreadError, match=re.escape(str(place))):
        section.read("d", place, Remarks())


@every_source
def test_a_source_survives_a_bad_row_and_tells_it(name: str, tmp_path: Path) -> None:
    """One row or file that is no good: all other studies are as they were, and something is said about the bad one."""
    good, told_before = read(*samples.source(name, tmp_path / "good"))
    spoilt, told = read(*samples.source(name, tmp_path / "bad", spoil=True))
    usable, before = ({one.study for one in each if one.problem is None} for each in (spoilt, good))
    assert len(before) >= 3 and told_before.rows == [] and len(before - usable) <= 1
    assert told.rows or any(one.problem for one in spoilt)


@every_source
def test_a_source_reads_the_same_in_any_order(name: str, tmp_path: Path) -> None:
    found = []
    for folder, shuffle in ((tmp_path / "a", False), (tmp_path / "b", True)):
        studies, _ = read(*samples.source(name, folder, shuffle=shuffle))
        found.append({one.study: one.model_dump_json().replace(str(folder), "") for one in studies})
    assert found[0] == found[1] and len(found[0]) >= 3


def read(section: DatasetSection, place: Path) -> tuple[list[Study], Remarks]:
    remarks = Remarks()
    return section.read("d", place, remarks), remarks


# -- the registry itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "wrong", "right"),
    [(SOURCES, "mimic-cxs", "mimic-cxr"), (VIEWS, "slices", "slice"), (BACKENDS, "vlm", "vllm")],
)
def test_an_unknown_name_is_told_what_there_is_and_what_may_be_meant(
    known: Registry[Any], wrong: str, right: str
) -> None:
    with pytest.raises(BadInput) as error:
        known[wrong]
    assert all(name in str(error.value) for name in known) and str(error.value).endswith(f"Did you mean {right}?")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import not_there", "can't be imported (ModuleNotFoundError"),
        ("1/0", "can't be imported (ZeroDivisionError"),
        ("class Foreign: pass", "there must be one class"),
        ("from overread.config.views import ViewSection as Foreign", "there must be one class"),
    ],
)
def test_a_foreign_one_that_is_broken_is_named(
    code: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "foreign_view.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "foreign_view", raising=False)
    monkeypatch.setattr(registry, "_entry_points", lambda group: {"foreign": "foreign_view:Foreign"})
    fresh: Registry[Any] = Registry("overread.views", kind="kind of view", by="kind", base=VIEWS._base)
    with pytest.raises(BadInput) as error:
        fresh["slice"]
    assert "kind of view 'foreign' (foreign_view:Foreign)" in str(error.value) and why in str(error.value)


def test_two_of_one_name_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", lambda group: {"slice": "foreign_view:Foreign"})
    fresh: Registry[Any] = Registry("overread.views", kind="kind of view", by="kind", base=VIEWS._base)
    with pytest.raises(BadInput, match="kind of view 'slice' is registered twice"):
        list(fresh)


# -- the docs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "head", "known"),
    [
        ("config/README.md", "| `source` |", SOURCES),
        ("config/README.md", "| kind |", VIEWS),
        ("config/README.md", "| `backend` |", BACKENDS),
        ("docs/views.md", "| kind |", VIEWS),
    ],
)
def test_the_tables_of_the_docs_name_all_that_is_registered(page: str, head: str, known: Registry[Any]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text[text.index(f"\n{head}") + 1 :].split("\n\n")[0]
    named = re.findall(r"^\| `([a-z0-9-]+)` \|", table.partition("\n|---")[2], re.MULTILINE)
    assert sorted(named) == sorted(known), f"{page}: the table that begins with {head}"


def test_the_page_of_views_says_of_each_what_it_gives_as_its_section_does() -> None:
    text = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    for name, section in VIEWS.sections.items():
        assert f"| `{name}` | {section.gives} |" in text


def test_the_page_of_models_names_every_back_end() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert [name for name in BACKENDS if f"`{name}`" not in text] == []
