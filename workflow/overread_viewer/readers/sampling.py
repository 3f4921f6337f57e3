"""Which questions a reader study asks, in which order, and in which order their options stand.

The draw is that of the questions stage: by content, so that one question less lets another one in and moves no other.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from overread.core.cells import row_as_it_was
from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.core.records import Question, content_hash
from overread.curation.release import read_orders
from overread.curation.review import sample
from overread.settings.options import Permutation, permutation
from overread.trials.options import balanced
from overread_viewer.readers.database import Asked, Assigned
from overread_viewer.readers.readers_file import Fixed, ReadersFile


def chosen_questions(readers: ReadersFile, usable: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """The questions that count, in the order listed (a draw's: by study and id), and those to practise on.

    usable   the questions whose study has what is to be shown
    raises   BadInput if there are fewer than asked for, or a listed one is not among them
    """
    by_id = {one.question: one for one in usable}
    choice = readers.questions
    if choice.sample is not None:
        if len(usable) < choice.sample + readers.practice:
            raise BadInput(
                f"questions.sample: {choice.sample} questions and {readers.practice} for practice, but dataset "
                f"{readers.dataset} has {len(usable)} that can be shown; ask for fewer"
            )
        counted = _drawn(readers, usable, choice.sample)
    else:
        counted = [_listed(name, by_id, where) for where, name in _named(readers)]
    taken = {one.question for one in counted}
    rest = [one for one in usable if one.question not in taken]
    if len(rest) < readers.practice:
        raise BadInput(f"practice: {readers.practice} questions, but only {len(rest)} are left; ask for fewer")
    return counted, sample(rest, readers.practice, readers.seed, "practice")


def option_orders(readers: ReadersFile, questions: Sequence[Question]) -> dict[str, Permutation]:
    """Place shown -> place as written, by question id; the same for every rater.

    raises   BadInput for a question that the release or the sheet lacks, or that has other options there
    """
    if readers.options == "as-written":
        return {one.question: permutation(one, "as-written", readers.seed) for one in questions}
    if readers.options == "release":
        folder = Path(readers.release or "")
        kept = read_orders(folder)
        for one in questions:
            if sorted(kept.get(one.question, ())) != list(range(len(one.options))):
                raise BadInput(f"release: {folder} has no order for question {one.question}; choose another `options`")
        return {one.question: kept[one.question] for one in questions}
    if readers.options == "sheet":
        return _sheet_orders(Path(readers.questions.sheet or ""), questions, readers.seed)
    return balanced(questions, readers.seed)


def assignments(fixed: Fixed, rater: str, questions: Sequence[Asked]) -> list[Assigned]:
    """A rater's questions in their order, practice first, each kind counted from 1.

    fixed       what the study began with: a rater who joins later gets what they would have had at the start
    questions   in the order listed
    """
    listed = {one.question: place for place, one in enumerate(questions)}

    def rank(one: Asked) -> tuple[int, str]:
        if fixed.order == "as-listed":
            return listed[one.question], ""
        by = ["reading order", fixed.seed, one.question, *([rater] if fixed.order == "by-rater" else [])]
        return 0, content_hash(by)

    assigned: list[Assigned] = []
    for practice in (True, False):
        ordered = sorted((one for one in questions if one.practice is practice), key=rank)
        for place, one in enumerate(ordered, start=1):
            own = fixed.options == "shuffled-by-rater"
            order = _own_order(one, fixed.seed, rater) if own else one.shown
            assigned.append(Assigned(one.question, practice, place, order))
    return assigned


def _drawn(readers: ReadersFile, usable: Sequence[Question], count: int) -> list[Question]:
    if readers.questions.by is None:
        return sample(usable, count, readers.seed, "readers")
    topics: dict[str, list[Question]] = defaultdict(list)
    for one in usable:
        topics[one.topic].append(one)
    shares = largest_remainders({topic: len(found) for topic, found in topics.items()}, count)
    drawn = [one for topic, found in topics.items() for one in sample(found, shares[topic], readers.seed, "readers")]
    return sorted(drawn, key=lambda one: (one.study, one.question))


def largest_remainders(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of `count` each group gives, in proportion to its size (Hamilton's method; ties by name)."""
    whole = sum(sizes.values())
    shares = {name: count * size // whole for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(count * sizes[name] % whole), name))
    for name in by_remainder[: count - sum(shares.values())]:
        shares[name] += 1
    return shares


def _named(readers: ReadersFile) -> list[tuple[str, str]]:
    """Place and id of each question of the file of ids or the sheet."""
    choice = readers.questions
    if choice.sheet is not None:
        path = Path(choice.sheet)
        names = [(f"{path}:{number}", row["question"]) for number, row in _sheet(path)]
    else:
        path = Path(choice.ids or "")
        try:
            lines = regular(path).read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not readable as a list of question ids: {error}") from None
        names = [(f"{path}:{number}", line.strip()) for number, line in enumerate(lines, start=1)]
    names = [(where, name) for where, name in names if name and not name.startswith("#")]
    if not names:
        raise BadInput(f"{path}: names no question")
    seen: dict[str, str] = {}
    for where, name in names:
        if name in seen:
            raise BadInput(f"{where}: question {name} stands at {seen[name]} as well; remove one")
        seen[name] = where
    return names


def _listed(name: str, by_id: Mapping[str, Question], where: str) -> Question:
    if name not in by_id:
        what = unknown("question", name, by_id)
        raise BadInput(f"{where}: {what} (only questions whose images can be shown count)")
    return by_id[name]


def _sheet(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            rows = [(table.line_num, row_as_it_was(row)) for row in table]
            columns = table.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: not readable as CSV in UTF-8: {error}") from None
    if "question" not in columns or "option_1" not in columns:
        raise BadInput(f"{path}: not a readers' sheet: it needs the columns question and option_1, option_2, ...")
    return rows


def _sheet_orders(path: Path, questions: Sequence[Question], seed: int) -> dict[str, Permutation]:
    """The sheet's orders; practice questions, which it lacks, are shuffled."""
    rows = {row["question"]: (number, row) for number, row in _sheet(path)}
    orders = balanced([one for one in questions if one.question not in rows], seed)
    for one in questions:
        if one.question not in rows:
            continue
        number, row = rows[one.question]
        texts = [row[f"option_{k}"] for k in range(1, len(row)) if row.get(f"option_{k}")]
        if sorted(texts) != sorted(one.options):
            raise BadInput(
                f"{path}:{number}: question {one.question} has other options in the run: {list(one.options)}"
            )
        orders[one.question] = tuple(one.options.index(text) for text in texts)
    return orders


def _own_order(one: Asked, seed: int, rater: str) -> Permutation:
    """An order for one rater, from the content alone; uniform over all orders."""
    places = range(len(one.options))
    return tuple(
        sorted(places, key=lambda place: content_hash(["option of a rater", seed, rater, one.question, place]))
    )
