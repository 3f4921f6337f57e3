"""From MeSH terms to findings: Open-I's indexers wrote down what a report says is there, and nothing else.

A term is a heading with qualifiers, `Opacity/lung/base/left`. A pattern fits a term of the same heading that has all of
the pattern's qualifiers. A term makes a finding positive, or uncertain where a pattern under `uncertain` fits. It makes
nothing negative: what a report was not indexed with it may still deny, or not mention. Only the term that stands for a
normal report is a negative, for the findings that the file names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from overread.config import FINDINGS
from overread.config.base import Section
from overread.core.errors import BadInput, unknown
from overread.core.inputs import regular
from overread.core.records import one_line

Term = tuple[str, frozenset[str]]


class MeshLabels(Section):
    """The mapping, as its file has it."""

    field: Literal["major", "automatic"] = Field(
        default="major", description="major: by the indexers; automatic: by a program that read the report"
    )
    positive: dict[str, tuple[str, ...]] = Field(description="patterns by finding")
    uncertain: dict[str, tuple[str, ...]] = Field(default={}, description="patterns by finding; they go before")
    normal: tuple[str, ...] = Field(default=("normal",), description="the terms of a normal report")
    negative_if_normal: tuple[str, ...] = Field(default=(), description="findings that a normal report denies")
    not_indexed: tuple[str, ...] = Field(default=("No Indexing",), description="terms of a report without terms")

    @field_validator("positive", "uncertain", "negative_if_normal")
    @classmethod
    def _are_findings(cls, value: Iterable[str]) -> Iterable[str]:
        for name in value:
            if name not in FINDINGS:
                raise ValueError(unknown("finding", name, FINDINGS))
        return value

    @field_validator("positive")
    @classmethod
    def _all_findings(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """A finding without a pattern would never be positive, and its questions would all be answered no."""
        lacking = [name for name in FINDINGS if not value.get(name)]
        if lacking:
            raise ValueError(f"no pattern for {', '.join(lacking)}")
        return value

    def of(self, terms: Iterable[str]) -> tuple[dict[str, str], str | None]:
        """Labels by finding (absent: nothing is known), and why there are none, if so."""
        parsed = {_parsed(term) for term in terms} - {_parsed(term) for term in self.not_indexed}
        if not parsed:
            return {}, "no labels: the report was not indexed"
        labels: dict[str, str] = {}
        if parsed & {_parsed(term) for term in self.normal}:
            labels = dict.fromkeys(self.negative_if_normal, "negative")
        for finding, patterns in self.positive.items():
            doubtful = [_parsed(pattern) for pattern in self.uncertain.get(finding, ())]
            sure = [_parsed(pattern) for pattern in patterns]
            unsure = {term for term in parsed if any(_fits(pattern, term) for pattern in doubtful)}
            if any(_fits(pattern, term) for pattern in sure for term in parsed - unsure):
                labels[finding] = "positive"
            elif unsure:
                labels[finding] = "uncertain"
        return labels, None


def read_mesh(path: Path) -> MeshLabels:
    """The mapping of a YAML file. BadInput with the file and the key if it is none."""
    try:
        return MeshLabels.model_validate(yaml.safe_load(regular(path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except ValidationError as error:
        raise BadInput(f"{path}: {one_line(error)}") from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise BadInput(f"{path}: not readable as YAML ({' '.join(str(error).split())})") from None


def _parsed(term: str) -> Term:
    heading, *qualifiers = (" ".join(part.split()).lower() for part in term.split("/"))
    return heading, frozenset(qualifiers)


def _fits(pattern: Term, term: Term) -> bool:
    return pattern[0] == term[0] and pattern[1] <= term[1]
