"""The database of a reader study: what it stores stays, once, and what makes no sense it refuses."""

from __future__ import annotations

import sqlite3
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from overread.core.cells import as_it_was
from overread.core.errors import BadInput
from overread_viewer.readers.database import Asked, Assigned, Database, Judgement, NotInOrder, Reading
from overread_viewer.readers.ratings import as_csv, export, rows
from overread_viewer.readers.schema import STEPS, VERSION, migrate

OPTIONS = ("frontal", "temporal", "parietal", "occipital")
GOOD, AGREED = Reading(2, 4, True, 5.0), Judgement(True, False, "a “comment”, with\nlines")


class Clock:
    """Ten seconds pass between two looks at it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=10)
        return self.now


def asked(name: str, practice: bool = False) -> Asked:
    return Asked(
        name, f"study-{name}", f"patient-{name}", f"Where is {name}?", OPTIONS, 1, (3, 2, 1, 0), practice, ("ab",)
    )


def begun(path: Path, count: int = 3, raters: tuple[str, ...] = ("a", "b")) -> Database:
    base = Database(path, Clock())
    questions = [asked(f"q{k}") for k in range(count)] + [asked("p0", practice=True)]
    base.begin("fellows", "mri", {"seed": 1}, questions)
    for rater in raters:
        places = [Assigned(f"q{k}", False, k + 1, (3, 2, 1, 0)) for k in range(count)]
        base.add_rater(rater, f"Dr {rater}", [Assigned("p0", True, 1, (3, 2, 1, 0)), *places])
    return base


@pytest.fixture
def base(tmp_path):
    made = begun(tmp_path / "study.sqlite")
    yield made
    made.close()


def read(base: Database, rater: str = "a", question: str = "q0", reading: Reading = GOOD) -> Reading:
    base.seen(rater, question)
    return base.store_reading(rater, question, reading)


def test_every_connection_writes_through_to_the_disk(base):
    with base._writing() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_only_its_owner_can_read_the_file(base):
    assert stat.S_IMODE(base.path.stat().st_mode) == 0o600


def test_links_are_128_random_bits_and_all_different(base):
    tokens = [one.token for one in base.raters()] + [base.organiser()]
    assert len(set(tokens)) == 3 and all(len(token) == 22 for token in tokens)


def test_a_question_goes_from_unseen_to_read_to_judged(base):
    item = base.item("a", False, 1)
    assert item is not None and (item.first_seen, item.reading, item.judgement) == (None, None, None)
    assert (item.place, item.of, item.shown, item.asked) == (1, 3, (3, 2, 1, 0), asked("q0"))
    assert read(base) == GOOD
    assert base.store_judgement("a", "q0", AGREED) == AGREED
    item = base.item("a", False, 1)
    assert item is not None and (item.reading, item.judgement) == (GOOD, AGREED)
    assert base.item("b", False, 1).reading is None
    assert base.item("a", False, 4) is None and base.item("nobody", False, 1) is None


def test_what_is_sent_twice_is_stored_once_and_the_first_stands(base):
    read(base)
    other = Reading(None, 1, False)
    assert base.store_reading("a", "q0", other) == GOOD
    base.store_judgement("a", "q0", AGREED)
    assert base.store_judgement("a", "q0", Judgement(False, True)) == AGREED
    assert len(base.finished()) == 1


def test_the_second_part_needs_the_first(base):
    with pytest.raises(NotInOrder):
        base.store_judgement("a", "q0", AGREED)
    read(base, "b")
    with pytest.raises(NotInOrder):  # another rater's first part is none
        base.store_judgement("a", "q0", AGREED)
    assert base.finished() == []


def test_an_answer_to_a_question_that_was_never_shown_is_refused(base):
    with pytest.raises(NotInOrder):
        base.store_reading("a", "q0", GOOD)
    with pytest.raises(NotInOrder):
        base.store_reading("a", "no such question", GOOD)


def test_the_database_itself_refuses_what_makes_no_sense(base):
    read(base)
    base.store_judgement("a", "q0", AGREED)
    base.seen("a", "q1")
    row = "INSERT INTO reading (rater, question, chosen, confidence, answerable, started, answered) VALUES"
    for statement in (
        "UPDATE reading SET chosen = 1",
        "DELETE FROM reading",
        "UPDATE judgement SET agrees = 0",
        "DELETE FROM judgement",
        f"{row} ('a', 'q1', 0, 6, 1, 't', 't')",
        f"{row} ('a', 'q1', 0, 3, 2, 't', 't')",
        f"{row} ('a', 'q1', 'one', 3, 1, 't', 't')",
        f"{row} ('a', 'q9', 0, 3, 1, 't', 't')",
        f"{row} ('a', 'q0', 0, 3, 1, 't', 't')",
        "INSERT INTO judgement VALUES ('b', 'q1', 1, 1, '', 't')",
        f"INSERT INTO judgement VALUES ('a', 'q1', 1, 1, '{'x' * 2001}', 't')",
        "INSERT INTO study VALUES (2, 'n', 'd', '{}', 'tokentokentokentokentoken', 't')",
    ):
        with pytest.raises(sqlite3.IntegrityError), base._writing() as connection:
            connection.execute(statement)
    assert base.item("a", False, 1).reading == GOOD


def test_a_block_that_fails_leaves_nothing(base):
    def half() -> None:
        with base._writing() as connection:
            connection.execute("UPDATE rater SET name = 'changed'")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert [one.name for one in base.raters()] == ["Dr a", "Dr b"]


def test_the_first_view_starts_the_time_and_later_views_do_not(base):
    base.seen("a", "q0")
    started = base.item("a", False, 1).first_seen
    base.seen("a", "q0")
    assert base.item("a", False, 1).first_seen == started
    base.store_reading("a", "q0", GOOD)
    base.store_judgement("a", "q0", AGREED)
    (row,) = rows(base)
    assert row["started_at"] == started
    assert row["seconds"] == "20.0"  # the clock was looked at twice more: the second view, and storing


def test_the_browsers_count_can_not_exceed_the_time_there_was(base):
    assert read(base, reading=Reading(0, 3, True, 999.0)).seconds_in_view == 10.0


def test_a_clock_put_back_gives_no_negative_time(tmp_path):
    base = begun(tmp_path / "s.sqlite")
    base.seen("a", "q0")
    base.clock = lambda: datetime(2020, 1, 1, tzinfo=UTC)
    base.store_reading("a", "q0", GOOD)
    base.store_judgement("a", "q0", AGREED)
    assert [(row["seconds"], row["seconds_in_view"]) for row in rows(base)] == [("0.0", "0.0")]


def test_practice_first_then_the_next_unfinished_place(base):
    assert base.next_place("a") == (True, 1)
    read(base, question="p0")
    assert base.next_place("a") == (True, 1)  # the first part alone does not finish it
    base.store_judgement("a", "p0", AGREED)
    assert base.next_place("a") == (False, 1)
    for name in ("q0", "q1", "q2"):
        read(base, question=name)
        base.store_judgement("a", name, AGREED)
    assert base.next_place("a") is None and base.next_place("b") == (True, 1)
    mine, other = base.progress()
    assert (mine.questions, mine.read, mine.finished, mine.practice, mine.practice_finished) == (3, 3, 3, 1, 1)
    assert (other.finished, other.last) == (0, None)


def test_a_study_begins_once(base):
    assert base.begin("other", "xray", {}, [asked("x")]) is False
    assert base.begun() == ("fellows", "mri", {"seed": 1})
    tokens = base.raters()
    assert base.add_rater("a", "New name", []) is False
    assert [(one.token, one.name) for one in base.raters()] == [
        (tokens[0].token, "New name"),
        (tokens[1].token, "Dr b"),
    ]


def test_a_rater_who_is_left_out_keeps_ratings_and_loses_the_link(base):
    read(base, "b")
    base.store_judgement("b", "q0", AGREED)
    assert [one.rater for one in base.keep_open(["a"])] == ["b"]
    assert [one.open for one in base.raters()] == [True, False]
    assert [row["rater"] for row in rows(base)] == ["b"]
    assert base.keep_open(["a"]) == []
    base.add_rater("b", "Dr b", [])
    assert [one.open for one in base.raters()] == [True, True]


# -- ratings.csv -----------------------------------------------------------------------------------------------------


def test_ratings_hold_finished_counted_questions_by_rater_and_place(base):
    for rater, question in (("b", "q1"), ("a", "q2"), ("a", "p0"), ("a", "q0")):
        read(base, rater, question, Reading(None if question == "q2" else 2, 4, True, 5.0))
        base.store_judgement(rater, question, AGREED)
    read(base, "b", "q2")  # not finished
    found = rows(base)
    assert [(row["rater"], row["question"], row["place"]) for row in found] == [
        ("a", "q0", "1"),
        ("a", "q2", "3"),
        ("b", "q1", "2"),
    ]
    assert [row["chosen"] for row in found] == ["parietal", "", "parietal"]
    expected = {
        "subset": "fellows", "dataset": "mri", "study": "study-q0", "patient": "patient-q0", "agrees": "yes",
        "relevant": "no", "answerable": "yes",
    }  # fmt: skip
    assert expected.items() <= found[0].items()
    assert found[0]["comment"] == AGREED.comment


def test_the_same_ratings_give_the_same_bytes_and_a_comment_survives_csv(base, tmp_path):
    import csv

    read(base)
    nasty = Judgement(True, True, '=1+1,"quoted"\n; DROP TABLE reading; -- ‮ <script>')
    base.store_judgement("a", "q0", nasty)
    path = tmp_path / "out" / "ratings.csv"
    assert export(base, path) == 1
    first = path.read_bytes()
    assert export(base, path) == 1 and path.read_bytes() == first == as_csv(base).encode()
    with path.open(newline="", encoding="utf-8") as file:
        assert as_it_was(next(csv.DictReader(file))["comment"]) == nasty.comment
    assert [one.name for one in path.parent.iterdir()] == ["ratings.csv"]


# -- several at once -------------------------------------------------------------------------------------------------


def test_writers_wait_for_each_other_and_nothing_is_lost(tmp_path):
    names = [f"r{k}" for k in range(6)]
    base = begun(tmp_path / "study.sqlite", count=10, raters=tuple(names))
    problems: list[BaseException] = []

    def session(rater: str) -> None:
        try:
            own = Database(tmp_path / "study.sqlite")  # as another program would
            for k in range(10):
                read(own, rater, f"q{k}", Reading(k % 4, 1 + k % 5, True))
                own.store_judgement(rater, f"q{k}", AGREED)
            own.close()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=session, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert {(row["rater"], row["question"]) for row in base.finished()} == {
        (n, f"q{k}") for n in names for k in range(10)
    }


def test_one_answer_sent_by_many_at_once_is_stored_once(tmp_path):
    base = begun(tmp_path / "study.sqlite")
    base.seen("a", "q0")
    stored: list[Reading] = []
    threads = [
        threading.Thread(target=lambda k=k: stored.append(base.store_reading("a", "q0", Reading(k % 4, 1, True))))
        for k in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored) == 12 and len(set(stored)) == 1 and base.item("a", False, 1).reading == stored[0]


def test_a_study_that_two_programs_begin_at_once_begins_once(tmp_path):
    path, began = tmp_path / "study.sqlite", []

    def start(name: str) -> None:
        own = Database(path)
        began.append(own.begin(name, "mri", {}, [asked(f"q-{name}")]))
        own.close()

    threads = [threading.Thread(target=start, args=(f"s{k}",)) for k in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(began) == [False] * 4 + [True]
    base = Database(path)
    assert [f"q-{base.begun()[0]}"] == [one.question for one in base.questions()]
    base.close()


# -- versions --------------------------------------------------------------------------------------------------------


def _of_version(path: Path, version: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection, path, STEPS[:version])
    return connection


def test_a_database_of_version_1_is_brought_to_the_present_with_all_it_holds(tmp_path):
    path = tmp_path / "old.sqlite"
    old = _of_version(path, 1)
    old.execute("INSERT INTO study VALUES (1, 'fellows', 'mri', '{}', 'organiser-organiser-orga', 't')")
    old.execute(
        "INSERT INTO question VALUES ('q', 's', 'p', 'Where?', '[\"x\", \"y\"]', 1, '[1, 0]', 0, 0, '[]')",
    )
    old.execute("INSERT INTO rater VALUES ('a', 'Dr A', 'token-token-token-token', 1, 't')")
    old.execute("INSERT INTO assignment VALUES ('a', 'q', 0, 1, '[1, 0]', '2026-03-01T09:00:00.000Z')")
    old.execute(
        "INSERT INTO reading VALUES ('a', 'q', 1, 5, 1, '2026-03-01T09:00:00.000Z', '2026-03-01T09:00:42.500Z')",
    )
    old.execute("INSERT INTO judgement VALUES ('a', 'q', 1, 1, 'kept', '2026-03-01T09:01:00.000Z')")
    old.close()
    base = Database(path)
    with base._reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION == len(STEPS) >= 2
    (row,) = rows(base)
    assert (row["chosen"], row["comment"], row["seconds"], row["seconds_in_view"]) == ("y", "kept", "42.5", "")
    base.close()
    Database(path).close()  # and once more changes nothing


def test_each_version_reached_by_steps_is_the_one_reached_at_once(tmp_path):
    def shape(connection: sqlite3.Connection) -> list[tuple[str, str]]:
        return list(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"))

    stepwise = _of_version(tmp_path / "a.sqlite", 1)
    for version in range(2, VERSION + 1):
        migrate(stepwise, tmp_path / "a.sqlite", STEPS[:version])
    assert shape(stepwise) == shape(_of_version(tmp_path / "b.sqlite", VERSION))


def test_a_newer_database_is_refused_by_name_and_version(tmp_path):
    path = tmp_path / "newer.sqlite"
    _of_version(path, VERSION).execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(BadInput, match=f"newer.sqlite: was written by a newer Overread .version {VERSION + 1} "):
        Database(path)


def test_a_step_that_fails_leaves_the_version_before(tmp_path):
    path = tmp_path / "s.sqlite"
    connection = _of_version(path, 1)
    broken = (STEPS[0], ("ALTER TABLE reading ADD COLUMN more TEXT", "ALTER TABLE absent ADD COLUMN x TEXT"))
    with pytest.raises(BadInput, match="no such table"):
        migrate(connection, path, broken)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
    assert "more" not in [row[1] for row in connection.execute("PRAGMA table_info(reading)")]


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at " * 40, None])
def test_another_programs_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other.sqlite"
    if content is None:
        sqlite3.connect(path).execute("CREATE TABLE holidays (day TEXT)")
        content = path.read_bytes()
    else:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=r"other\.sqlite: "):
        Database(path)
    assert path.read_bytes() == content


def test_a_path_that_is_no_place_for_a_database_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "readers.yaml", tmp_path / "ratings.csv"):
        with pytest.raises(BadInput, match="not a database file"):
            Database(path)
