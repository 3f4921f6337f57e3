"""The tables of a reader study's database and the steps from each version to the next.

The version is SQLite's `user_version`: a database of version n has had the first n steps. A step, once released, is
never edited; what comes later is a step of its own. What a rater has stored can't be changed or deleted: the database
itself refuses it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from overread.core.errors import BadInput

LONGEST_COMMENT = 2000

_FIRST = (
    """
    CREATE TABLE study (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        name TEXT NOT NULL,
        dataset TEXT NOT NULL,
        fixed TEXT NOT NULL CHECK (json_valid(fixed)),
        organiser TEXT NOT NULL CHECK (length(organiser) >= 22),
        begun TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE question (
        question TEXT PRIMARY KEY,
        study TEXT NOT NULL,
        patient TEXT NOT NULL,
        stem TEXT NOT NULL,
        options TEXT NOT NULL CHECK (json_array_length(options) >= 2),
        answer INTEGER NOT NULL CHECK (answer BETWEEN 0 AND json_array_length(options) - 1),
        shown TEXT NOT NULL CHECK (json_array_length(shown) = json_array_length(options)),
        listed INTEGER NOT NULL UNIQUE,
        practice INTEGER NOT NULL CHECK (practice IN (0, 1)),
        pictures TEXT NOT NULL CHECK (json_valid(pictures)),
        UNIQUE (question, practice)
    ) STRICT
    """,
    """
    CREATE TABLE rater (
        rater TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        token TEXT NOT NULL UNIQUE CHECK (length(token) >= 22),
        open INTEGER NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),
        added TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE assignment (
        rater TEXT NOT NULL REFERENCES rater,
        question TEXT NOT NULL,
        practice INTEGER NOT NULL,
        place INTEGER NOT NULL CHECK (place >= 1),
        shown TEXT NOT NULL CHECK (json_array_length(shown) >= 2),
        first_seen TEXT,
        PRIMARY KEY (rater, question),
        UNIQUE (rater, practice, place),
        FOREIGN KEY (question, practice) REFERENCES question (question, practice)
    ) STRICT
    """,
    """
    CREATE TABLE reading (
        rater TEXT NOT NULL,
        question TEXT NOT NULL,
        chosen INTEGER CHECK (chosen >= 0),
        confidence INTEGER NOT NULL CHECK (confidence BETWEEN 1 AND 5),
        answerable INTEGER NOT NULL CHECK (answerable IN (0, 1)),
        started TEXT NOT NULL,
        answered TEXT NOT NULL,
        PRIMARY KEY (rater, question),
        FOREIGN KEY (rater, question) REFERENCES assignment (rater, question)
    ) STRICT
    """,
    f"""
    CREATE TABLE judgement (
        rater TEXT NOT NULL,
        question TEXT NOT NULL,
        agrees INTEGER NOT NULL CHECK (agrees IN (0, 1)),
        relevant INTEGER NOT NULL CHECK (relevant IN (0, 1)),
        comment TEXT NOT NULL CHECK (length(comment) <= {LONGEST_COMMENT}),
        judged TEXT NOT NULL,
        PRIMARY KEY (rater, question),
        FOREIGN KEY (rater, question) REFERENCES reading (rater, question)
    ) STRICT
    """,
    *(
        f"""
        CREATE TRIGGER {table}_{verb}_refused BEFORE {verb} ON {table}
        BEGIN SELECT RAISE(ABORT, 'a stored {table} is never changed'); END
        """
        for table in ("reading", "judgement")
        for verb in ("UPDATE", "DELETE")
    ),
)

# How long the page was in front, as the browser counted it: the time since the first view also holds the coffee.
_SECOND = ("ALTER TABLE reading ADD COLUMN seconds_in_view REAL CHECK (seconds_in_view >= 0)",)

STEPS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND)
VERSION = len(STEPS)


def migrate(connection: sqlite3.Connection, path: Path, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Bring a database to the version that `steps` end with; each step is one transaction. No step is taken twice,
    even if two programs open the file at once.

    connection   in autocommit mode (isolation_level None)
    raises       BadInput for a newer database, and for a file that is another program's
    """
    try:
        while (version := _version(connection)) != len(steps):
            if version > len(steps):
                raise BadInput(
                    f"{path}: was written by a newer Overread (version {version} of its database; this one knows "
                    f"{len(steps)}); use that one, or name another database"
                )
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _version(connection) == version:
                    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                        raise BadInput(f"{path}: a database, but not of a reader study; name another file")
                    for statement in steps[version]:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {version + 1}")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path}: not usable as the database of a reader study: {error}") from error


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
