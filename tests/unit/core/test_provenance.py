import re
from pathlib import Path

import pytest

from overread.core.errors import BadInput
from overread.core.provenance import COMMANDS, Code, code_of, reached

ROOT = Path(__file__).resolve().parents[3]

SOURCES = {
    "overread/__init__.py": "",
    "overread/trials/__init__.py": "",
    "overread/trials/commands.py": """
from overread.core.errors import BadInput

app = Typer()
OTHER = 1
LIMIT = 5


@app.command("build")
def build_command(more: int = LIMIT) -> None:
    from overread.trials.build import build
    _helped()


def _helped():
    from overread import helper


@app.command()
def apply_review() -> None:
    from overread.trials import review
""",
    "overread/trials/build.py": """
from typing import TYPE_CHECKING
from overread.things import Wanted
if TYPE_CHECKING:
    from overread.heavy import Only
def build():
    from . import near
    return render("page.html.j2")
""",
    "overread/trials/near.py": "",
    "overread/trials/review.py": "",
    "overread/trials/templates/page.html.j2": '{% include "page.css" %}',
    "overread/trials/templates/page.css": "a {}",
    "overread/trials/templates/other.j2": "",
    "overread/things/__init__.py": """
from overread.things.wanted import Wanted
from overread.things.beside import Beside
""",
    "overread/things/wanted.py": "class Wanted: ...\n",
    "overread/things/beside.py": "class Beside: ...\n",
    "overread/core/__init__.py": "",
    "overread/core/errors.py": "",
    "overread/helper.py": "",
    "overread/heavy.py": "Only = 1",
    "overread/readers/__init__.py": "",
    "overread/readers/one.py": "import overread.readers.shared",
    "overread/readers/two.py": "",
    "overread/readers/shared.py": "",
}  # fmt: skip


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    for name, source in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    return tmp_path


BUILD = {
    "trials build()", "overread.trials.build", "overread.trials.near", "overread.things.wanted", "overread.helper",
    "overread/trials/templates/page.html.j2", "overread/trials/templates/page.css",
}  # fmt: skip
"""Worked out by hand from the sources above."""


def test_a_command_reaches_what_its_own_function_leads_to(packages: Path):
    """Imports in functions and of helpers, templates with what they include; not its neighbours, not what is only for
    type checkers, not what a package lists beside the name."""
    assert set(Code(packages).reached("trials build", ())) == BUILD
    assert set(Code(packages).reached("trials apply-review", ())) == {"trials apply-review()", "overread.trials.review"}


def test_parts_of_a_registry_are_added_with_what_they_reach(packages: Path):
    found = set(Code(packages).reached("trials build", ("overread.readers.one:Reader",)))
    assert found == BUILD | {"overread.readers.one", "overread.readers.shared"}


def changed(packages: Path, file: str, old: str, new: str, command: str = "trials build") -> bool:
    before = Code(packages).reached(command, ())
    path = packages / file
    assert old in path.read_text() or not old
    path.write_text(path.read_text().replace(old, new, 1))
    return Code(packages).reached(command, ()) != before


@pytest.mark.parametrize(
    ("file", "old", "new", "is_changed"),
    [
        ("overread/trials/build.py", "", "# a remark\n\n", False),
        ("overread/trials/build.py", '"page.html.j2"', '"page.html.j2" or "# none"', True),
        ("overread/trials/build.py", 'j2")', 'j2")  # why', False),
        ("overread/trials/build.py", "def build():\n", 'def build():\n    """What it does."""\n', False),
        ("overread/trials/build.py", "def build():\n", 'def build():\n    "#no remark".upper()\n', True),
        ("overread/trials/build.py", "def build():\n", "def build():\n    more()\n", True),
        ("overread/trials/build.py", "page.html.j2", "other.j2", True),
        ("overread/things/wanted.py", "...", '\n    """Said to a server in a schema."""\n', True),
        ("overread/things/beside.py", "...", "more = 1", False),
        ("overread/things/__init__.py", "", "import overread.heavy\n", False),
        ("overread/things/__init__.py", "", "print(1)\n", True),
        ("overread/trials/commands.py", "OTHER = 1", "OTHER = 2", False),
        ("overread/trials/commands.py", "LIMIT = 5", "LIMIT = 6", True),
        ("overread/trials/commands.py", "_helped():\n", "_helped():\n    more()\n", True),
        ("overread/trials/commands.py", "import review", "import review, near", False),
        ("overread/trials/templates/page.css", "a", "b", True),
        ("overread/trials/templates/other.j2", "", "more", False),
        ("overread/heavy.py", "1", "2", False),
        ("overread/readers/two.py", "", "more = 1", False),
    ],
)
def test_an_edit_counts_only_where_it_can_change_a_result(packages: Path, file, old, new, is_changed):
    assert changed(packages, file, old, new) == is_changed


def test_lines_of_a_text_are_no_remarks_and_no_blank_lines(packages: Path):
    path = packages / "overread/trials/near.py"
    path.write_text('TEXT = """\n# a heading\n\nthe end"""\n')
    assert changed(packages, "overread/trials/near.py", "# a heading\n", "")
    assert changed(packages, "overread/trials/near.py", "\n\nthe", "\nthe")


def test_a_module_that_reads_docstrings_is_changed_by_one(packages: Path):
    (packages / "overread/trials/near.py").write_text('"""One."""\nsaid = __doc__\n')
    assert changed(packages, "overread/trials/near.py", "One", "Two")


def test_a_package_that_imports_when_it_is_asked_leads_to_what_it_tells_type_checkers(packages: Path):
    (packages / "overread/things/__init__.py").write_text("""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from overread.things.wanted import Wanted
def __getattr__(name):
    return getattr(import_module("overread.things.wanted"), name)
""")
    assert set(Code(packages).reached("trials build", ())) == BUILD


def test_a_module_that_imports_by_place_says_what_it_loads(packages: Path):
    (packages / "overread/trials/near.py").write_text('LOADS = ("overread.readers.*",)\n')
    readers = {f"overread.readers.{name}" for name in ("one", "two", "shared")}
    assert set(Code(packages).reached("trials build", ())) == BUILD | readers


def test_a_new_file_that_nobody_imports_changes_nothing(packages: Path):
    before = Code(packages).reached("trials build", ())
    (packages / "overread/trials/new.py").touch()
    (packages / "overread/trials/templates/new.j2").touch()
    assert Code(packages).reached("trials build", ()) == before


def test_what_was_kept_is_as_good_as_what_is_read(packages: Path):
    first = Code(packages)
    found, kept = first.reached("trials build", ()), first.kept
    assert kept.is_file()
    assert Code(packages).reached("trials build", ()) == found
    kept.write_text("{")
    assert Code(packages).reached("trials build", ()) == found
    kept.unlink()
    kept.mkdir()  # can't be written
    assert Code(packages).reached("trials build", ()) == found


@pytest.mark.parametrize(
    ("command", "parts", "said"),
    [
        ("trials bild", (), "Did you mean build"),
        ("trails build", (), "Did you mean trials"),
        ("trials build", ("overread.readers.three",), "overread.readers.three: no such module"),
    ],
)
def test_what_is_not_there_is_an_error(packages: Path, command, parts, said):
    with pytest.raises(BadInput, match=said):
        Code(packages).reached(command, parts)


CODE = {"view_code": "images render", "question_code": "questions build", "trials_code": "trials build"}
"""The methods of `plan.jobs.Jobs` that say what of a registry a command uses, where a rule does not name it."""


def test_each_rule_depends_on_the_command_that_it_calls():
    rules = re.split(r"^ *(?:rule|checkpoint)\b", _rules(), flags=re.MULTILINE)
    checked = 0
    for rule in rules:
        called = set(re.findall(r"-m overread (\w+ [\w-]+)", rule))
        known = set(re.findall(r'(?:code_of|asking.code|jobs.source_code|tables_code)\(\s*"(\w+ [\w-]+)"', rule))
        known |= {CODE[method] for method in re.findall(r"jobs.(\w+_code)\(wc", rule)}
        assert called == known, rule
        checked += len(known)
    assert checked > 15


def test_each_method_that_names_code_names_its_command():
    source = (ROOT / "workflow/overread/plan/jobs.py").read_text()
    assert (
        dict(
            re.findall(
                r"def (\w+_code)\(self, (?:dataset|setting): str\).*?code_of\(\"(\w+ [\w-]+)", source, flags=re.DOTALL
            )
        )
        == CODE
    )


def test_every_stage_of_the_command_line_is_known():
    from overread.cli import STAGES

    assert {stage: module.rpartition(".")[0] for stage, module in STAGES.items()} == COMMANDS


def test_numbers_do_not_depend_on_words_nor_answers_on_numbers():
    """The promise of the tables: a word in the report is no reason to make a table, nor a table to ask a model."""
    tables = set(reached("tables make"))
    assert not [name for name in tables if name.startswith("overread.reporting")]
    answers = set(reached("responses answer", "overread.backends.transformers.backend:TransformersBackend"))
    assert not [name for name in answers if name.startswith(("overread.estimates", "overread.reporting"))]
    assert len(code_of("tables make")) == 16


def _rules() -> str:
    return "".join(file.read_text() for file in sorted((ROOT / "workflow/rules").glob("*.smk")))
