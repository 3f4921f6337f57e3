"""Errors that a person can act on: one line each, with the thing, what is wrong, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class OverreadError(Exception):
    """Anything that the command line shows as one line instead of a traceback."""

    exit_code = 1


class BadInput(OverreadError):
    """A file, a value or a record that can't be used."""


class BadConfig(OverreadError):
    """One or more problems of a config, a line each."""


class NotAnswered(OverreadError):
    """Requests failed (network, memory): their answers are missing, and the tables wait for them."""


class Stopped(OverreadError):
    """The process was warned that it will be ended, and has ended by itself: the same command goes on from there."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: try again


MOST_NAMES = 30
"""A sweep can make hundreds of settings: a line names so many of them at most, those most like the name asked for."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """`no model 'medgema'; there are: ... Did you mean medgemma?`"""
    there = sorted(known)
    if len(there) <= MOST_NAMES:
        text = f"no {kind} {name!r}; there are: {', '.join(there) or 'none'}"
    else:
        nearest = difflib.get_close_matches(name, there, n=8, cutoff=0)
        text = f"no {kind} {name!r}; of the {len(there)} there are, the nearest: {', '.join(nearest)}"
    close = difflib.get_close_matches(name, there, n=1, cutoff=0.6)
    return f"{text}. Did you mean {close[0]}?" if close else text


def shown(path: str) -> str:
    """A path as a person would type it: from the working directory where it lies below."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
