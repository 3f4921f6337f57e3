"""One SQLite file holds a reader study: its questions, raters and links, and all that the raters have stored.

What a call here returns from is on the disk: WAL with synchronous=FULL. Several threads and programs may use one file;
writers wait for each other. Times are UTC as ISO 8601 text with milliseconds.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from overread.core.errors import BadInput
from overread_viewer.readers.schema import migrate

PATIENCE = 3.0
"""Seconds that a writer waits for the others."""


@dataclass(frozen=True)
class Asked:
    """A question of the study.

    shown      place shown -> place as written, unless each rater has an order of their own
    pictures   pixel hashes of the pictures that go with it
    """

    question: str
    study: str
    patient: str
    stem: str
    options: tuple[str, ...]
    answer: int
    shown: tuple[int, ...]
    practice: bool
    pictures: tuple[str, ...]


@dataclass(frozen=True)
class Assigned:
    """Where a question stands for a rater, and the order of its options there: place shown -> place as written."""

    question: str
    practice: bool
    place: int
    shown: tuple[int, ...]


@dataclass(frozen=True)
class Rater:
    rater: str
    name: str
    token: str
    open: bool


@dataclass(frozen=True)
class Reading:
    """The first part: what a rater sees in the image, before the given answer is shown.

    chosen            place as written of the option; none for "can't tell"
    seconds_in_view   as the browser counted; none if it did not
    """

    chosen: int | None
    confidence: int
    answerable: bool
    seconds_in_view: float | None = None


@dataclass(frozen=True)
class Judgement:
    """The second part: what a rater thinks of the question, with the given answer before them."""

    agrees: bool
    relevant: bool
    comment: str = ""


@dataclass(frozen=True)
class Item:
    """A question as it stands for one rater. `judgement` is never there without `reading`."""

    asked: Asked
    place: int
    of: int
    shown: tuple[int, ...]
    first_seen: str | None
    reading: Reading | None
    judgement: Judgement | None


@dataclass(frozen=True)
class Progress:
    rater: Rater
    questions: int
    read: int
    finished: int
    practice: int
    practice_finished: int
    last: str | None


class NotInOrder(Exception):
    """A second part without its first, or a question that is not this rater's: the database refuses it."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def seconds_between(start: str, end: str) -> float:
    """Seconds from one stored time to another; 0 if the machine's clock was put back in between."""
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


class Database:
    """A reader study's file. It is made if it is not there; an older one is brought up to date."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """raises   BadInput for a path that can't be opened, a newer database, or another program's"""
        self.path = path
        self.clock = clock
        if path.suffix in (".yaml", ".csv") or path.is_dir():
            raise BadInput(f"{path}: not a database file; let `database` name one, as in readers.sqlite")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # it holds the links
            # Kept open: when the last connection closes, SQLite empties the write-ahead log and deletes it.
            self._kept = self._connection()
        except (OSError, sqlite3.Error) as error:
            raise BadInput(f"{path}: can't be used as a database: {error}") from None
        try:
            migrate(self._kept, path)
            self._kept.execute("PRAGMA journal_mode = WAL")  # only now: another program's file stays as it is
        except sqlite3.Error as error:
            self._kept.close()
            raise BadInput(f"{path}: can't be used as a database: {error}") from None
        except BaseException:
            self._kept.close()
            raise

    def close(self) -> None:
        self._kept.close()

    # -- beginning -----------------------------------------------------------------------------------------------

    def begun(self) -> tuple[str, str, dict[str, Any]] | None:
        """Name, dataset and fixed settings of the study; none before it has begun."""
        with self._reading() as base:
            row = base.execute("SELECT name, dataset, fixed FROM study").fetchone()
        return (row["name"], row["dataset"], json.loads(row["fixed"])) if row else None

    def begin(self, name: str, dataset: str, fixed: Mapping[str, Any], questions: Iterable[Asked]) -> bool:
        """Store what the study asks, once. False if another program was faster: its questions stand."""
        with self._writing() as base:
            if base.execute("SELECT 1 FROM study").fetchone():
                return False
            row = (name, dataset, json.dumps(fixed, sort_keys=True), _token(), self._now())
            base.execute(
                "INSERT INTO study (one, name, dataset, fixed, organiser, begun) VALUES (1, ?, ?, ?, ?, ?)", row
            )
            base.executemany(
                "INSERT INTO question"
                " (question, study, patient, stem, options, answer, shown, listed, practice, pictures)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (one.question, one.study, one.patient, one.stem, json.dumps(one.options), one.answer,
                     json.dumps(one.shown), listed, int(one.practice), json.dumps(one.pictures))
                    for listed, one in enumerate(questions)
                ],
            )  # fmt: skip
        return True

    def add_rater(self, rater: str, name: str, assigned: Iterable[Assigned]) -> bool:
        """A new rater with a link and questions. False if the rater is there: the questions stay, the name follows."""
        with self._writing() as base:
            if base.execute("UPDATE rater SET name = ?, open = 1 WHERE rater = ?", (name, rater)).rowcount:
                return False
            row = (rater, name, _token(), self._now())
            base.execute("INSERT INTO rater (rater, name, token, added) VALUES (?, ?, ?, ?)", row)
            base.executemany(
                "INSERT INTO assignment (rater, question, practice, place, shown) VALUES (?, ?, ?, ?, ?)",
                [(rater, one.question, int(one.practice), one.place, json.dumps(one.shown)) for one in assigned],
            )
        return True

    def keep_open(self, raters: Sequence[str]) -> list[Rater]:
        """Close the links of all other raters; returns whose were closed by it. Their ratings stay."""
        with self._writing() as base:
            closing_now = [one for one in _raters(base) if one.open and one.rater not in raters]
            base.executemany("UPDATE rater SET open = 0 WHERE rater = ?", [(one.rater,) for one in closing_now])
        return closing_now

    # -- reading -------------------------------------------------------------------------------------------------

    def organiser(self) -> str:
        """The token of the organiser's link."""
        with self._reading() as base:
            return str(base.execute("SELECT organiser FROM study").fetchone()["organiser"])

    def raters(self) -> list[Rater]:
        with self._reading() as base:
            return _raters(base)

    def questions(self) -> list[Asked]:
        """In the order listed."""
        with self._reading() as base:
            return [_asked(row) for row in base.execute("SELECT * FROM question ORDER BY listed")]

    def item(self, rater: str, practice: bool, place: int) -> Item | None:
        """The question at a rater's place (from 1), or none."""
        with self._reading() as base:
            row = base.execute(
                "SELECT q.*, a.place, a.shown AS order_shown, a.first_seen, r.chosen, r.confidence, r.answerable,"
                " r.seconds_in_view, r.answered, j.agrees, j.relevant, j.comment, j.judged,"
                " (SELECT count(*) FROM assignment AS b"
                "  WHERE b.rater = a.rater AND b.practice = a.practice) AS total"
                " FROM assignment AS a JOIN question AS q USING (question)"
                " LEFT JOIN reading AS r ON r.rater = a.rater AND r.question = a.question"
                " LEFT JOIN judgement AS j ON j.rater = a.rater AND j.question = a.question"
                " WHERE a.rater = ? AND a.practice = ? AND a.place = ?",
                (rater, int(practice), place),
            ).fetchone()
        if row is None:
            return None
        return Item(
            asked=_asked(row),
            place=row["place"],
            of=row["total"],
            shown=tuple(json.loads(row["order_shown"])),
            first_seen=row["first_seen"],
            reading=_reading(row) if row["answered"] is not None else None,
            judgement=_judgement(row) if row["judged"] is not None else None,
        )

    def next_place(self, rater: str) -> tuple[bool, int] | None:
        """The first question that is not finished, practice first: whether it is practice, and its place."""
        with self._reading() as base:
            row = base.execute(
                "SELECT a.practice, a.place FROM assignment AS a WHERE a.rater = ? AND NOT EXISTS (SELECT 1 FROM"
                " judgement AS j WHERE j.rater = a.rater AND j.question = a.question)"
                " ORDER BY a.practice DESC, a.place LIMIT 1",
                (rater,),
            ).fetchone()
        return (bool(row["practice"]), int(row["place"])) if row else None

    def progress(self) -> list[Progress]:
        with self._reading() as base:
            rows = base.execute(
                "SELECT a.rater, sum(a.practice = 0) AS questions,"
                " sum(a.practice = 0 AND r.answered IS NOT NULL) AS read,"
                " sum(a.practice = 0 AND j.judged IS NOT NULL) AS finished, sum(a.practice) AS practice,"
                " sum(a.practice AND j.judged IS NOT NULL) AS practised,"
                " max(coalesce(j.judged, r.answered, a.first_seen)) AS last FROM assignment AS a"
                " LEFT JOIN reading AS r ON r.rater = a.rater AND r.question = a.question"
                " LEFT JOIN judgement AS j ON j.rater = a.rater AND j.question = a.question GROUP BY a.rater"
            ).fetchall()
            raters = {one.rater: one for one in _raters(base)}
        found = [
            Progress(
                raters[row["rater"]], row["questions"], row["read"], row["finished"], row["practice"], row["practised"],
                row["last"],
            )
            for row in rows
        ]  # fmt: skip
        return sorted(found, key=lambda one: one.rater.rater)

    def finished(self) -> list[dict[str, Any]]:
        """A row for each finished question that counts, by rater and place: ids, both parts, times."""
        with self._reading() as base:
            rows = base.execute(
                "SELECT a.rater, q.study, q.patient, q.question, q.options, a.place, r.chosen, r.confidence,"
                " r.answerable, r.started, r.answered, r.seconds_in_view, j.agrees, j.relevant, j.comment"
                " FROM judgement AS j"
                " JOIN reading AS r ON r.rater = j.rater AND r.question = j.question"
                " JOIN assignment AS a ON a.rater = j.rater AND a.question = j.question"
                " JOIN question AS q ON q.question = j.question WHERE q.practice = 0 ORDER BY a.rater, a.place"
            ).fetchall()
        return [{**dict(row), "options": json.loads(row["options"])} for row in rows]

    # -- storing -------------------------------------------------------------------------------------------------

    def seen(self, rater: str, question: str) -> None:
        """Note the first view of a question; later ones change nothing."""
        with self._writing() as base:
            base.execute(
                "UPDATE assignment SET first_seen = ? WHERE rater = ? AND question = ? AND first_seen IS NULL",
                (self._now(), rater, question),
            )

    def store_reading(self, rater: str, question: str, reading: Reading) -> Reading:
        """Store the first part, unless it is stored; returns what is stored, which then never changes.

        raises   NotInOrder if the question is not this rater's or was never shown to them
        """
        with self._writing() as base:
            row = base.execute(
                "SELECT first_seen FROM assignment WHERE rater = ? AND question = ?", (rater, question)
            ).fetchone()
            if row is None or row["first_seen"] is None:
                raise NotInOrder(f"rater {rater} was never shown this question")
            now = self._now()
            in_view = reading.seconds_in_view
            if in_view is not None:  # the browser's word, which can't be more than the time there was
                in_view = min(in_view, seconds_between(row["first_seen"], now))
            base.execute(
                "INSERT INTO reading"
                " (rater, question, chosen, confidence, answerable, started, answered, seconds_in_view)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (rater, question) DO NOTHING",
                (rater, question, reading.chosen, reading.confidence, int(reading.answerable), row["first_seen"],
                 now, in_view),
            )  # fmt: skip
            stored = base.execute("SELECT * FROM reading WHERE rater = ? AND question = ?", (rater, question))
            return _reading(stored.fetchone())

    def store_judgement(self, rater: str, question: str, judgement: Judgement) -> Judgement:
        """Store the second part, unless it is stored; returns what is stored.

        raises   NotInOrder if the first part is not stored
        """
        with self._writing() as base:
            if not base.execute("SELECT 1 FROM reading WHERE rater = ? AND question = ?", (rater, question)).fetchone():
                raise NotInOrder(f"rater {rater} has not answered this question")
            base.execute(
                "INSERT INTO judgement (rater, question, agrees, relevant, comment, judged) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (rater, question) DO NOTHING",
                (rater, question, int(judgement.agrees), int(judgement.relevant), judgement.comment, self._now()),
            )
            stored = base.execute("SELECT * FROM judgement WHERE rater = ? AND question = ?", (rater, question))
            return _judgement(stored.fetchone())

    # -- connections ---------------------------------------------------------------------------------------------

    def _now(self) -> str:
        return self.clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _connection(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        made.row_factory = sqlite3.Row
        made.execute("PRAGMA foreign_keys = ON")
        made.execute("PRAGMA synchronous = FULL")
        return made

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with closing(self._connection()) as base:
            yield base

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of the block or nothing of it. It waits for other writers before the block."""
        with closing(self._connection()) as base:
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
                base.execute("COMMIT")
            except BaseException:
                if base.in_transaction:  # SQLite itself rolls back where the disk is full
                    base.execute("ROLLBACK")
                raise


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether what lies there is not the database any more; else it is busy, full or not to be written to."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return not isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR)


def _token() -> str:
    return secrets.token_urlsafe(16)  # 128 bits


def _raters(base: sqlite3.Connection) -> list[Rater]:
    rows = base.execute("SELECT rater, name, token, open FROM rater ORDER BY rater")
    return [Rater(row["rater"], row["name"], row["token"], bool(row["open"])) for row in rows]


def _asked(row: sqlite3.Row) -> Asked:
    return Asked(
        question=row["question"],
        study=row["study"],
        patient=row["patient"],
        stem=row["stem"],
        options=tuple(json.loads(row["options"])),
        answer=row["answer"],
        shown=tuple(json.loads(row["shown"])),
        practice=bool(row["practice"]),
        pictures=tuple(json.loads(row["pictures"])),
    )


def _reading(row: sqlite3.Row) -> Reading:
    return Reading(row["chosen"], row["confidence"], bool(row["answerable"]), row["seconds_in_view"])


def _judgement(row: sqlite3.Row) -> Judgement:
    return Judgement(bool(row["agrees"]), bool(row["relevant"]), row["comment"])
