"""Findings and Impression of a radiology report, and nothing else of it.

Reports name their sections in any case and punctuation, on a line of their own or in the middle of a paragraph whose
line breaks were lost. A heading of another section ends Findings and Impression, and so does a heading in capitals that
is not known, unless it names a part of the body: `VENTRICLES:` divides the findings, `BILLING:` ends them. Text that
stands before the first heading belongs to no section.

Headings that occur more than once (two examinations in one report, an addendum with an Impression of its own) are
joined in the order of the report. The free text of an addendum is neither Findings nor Impression and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["findings", "impression", "both", "other", "inner"]

_FINDINGS = {"finding", "findings", "observation", "observations"}
_IMPRESSION = {"impression", "impressions", "conclusion", "conclusions", "opinion"}
_BESIDE = {
    "additional", "and", "brain", "chest", "contrast", "ct", "detailed", "examination", "final", "for", "head",
    "imaging", "key", "mr", "mra", "mri", "neck", "of", "other", "overall", "pertinent", "plan", "preliminary",
    "radiographic", "radiological", "radiology", "ray", "recommendation", "recommendations", "relevant", "report",
    "scan", "study", "summary", "the", "with", "without", "x", "xray",
}  # fmt: skip
"""Words that a heading of Findings or Impression can hold beside its name: BRAIN MRI FINDINGS."""

_OTHER = re.compile(
    r"(?:(?:brief|clinical|past|relevant|pertinent|patient|medical|surgical|oncologic|presenting|additional) )*"
    r"(?:history|indications?|information|data|question|details|symptoms?|complaints?)(?: (?:of|for|and) .*)?"
    r"|(?:clinical|addended|technical) notes?"
    r"|reason(?: for .*)?"
    r"|(?:exam|examination|study|procedure|test|scan)s?(?: (?:type|date|name|performed|description|of) ?.*)?"
    r"|(?:(?:imaging|mri?|scan) )?(?:techniques?|protocols?|sequences?)(?: .*)?"
    r"|acquisition|contrast(?: (?:media|medium|material|agent|dose|type|administered|used|administration))?"
    r"|medications?|sedation"
    r"|comparisons?(?: .*)?|compared (?:to|with)|priors?(?: .*)?|previous (?:studies|study|exams?|imaging)"
    r"|recommend(?:ations?|ed)?(?: .*)?|plan|follow ?up|addend(?:um|a)(?: .*)?"
    r"|(?:wet|preliminary|critical) (?:read|report|results?)"
    r"|notifications?|communications?|attestation|disclaimer|accession(?: .*)?|(?:radiation )?dose(?: .*)?"
    r"|age|sex|gender|dob|mrn"
    r"|(?:order(?:ing|ed)?|referring|attending|reading|interpreting|requesting)(?: .*)?"
    r"|radiologists?|physicians?|technologist"
    r"|(?:electronically |report |dictated |final(?:ized)? )?"
    r"(?:signed|dictated|reviewed|approved|transcribed|verified|attested)(?: .*)?"
    r"|signature|end of (?:report|impression|findings|addendum)|(?:final|preliminary|radiology|mri?|ct)? ?report"
    r"|limitations?|diagnosis(?: codes?)?|(?:icd|cpt|billing)(?: .*)?|department(?: .*)?|hospital|institution"
    r"|date(?: .*)?|time(?: .*)?|nb"
)
"""Other sections, as a heading's words in lower case."""

_END = re.compile(
    r"(?i)^\s*//|^\W*(?:end of (?:report|impression|findings)\b|electronically signed\b"
    r"|(?:report )?(?:dictated|signed|transcribed|approved) (?:by|on)\b"
    r"|i,? (?:the |dr\.? |have personally|personally)"
    r"|this (?:report|study) (?:was|has been) (?:dictated|signed|reviewed|electronically|finali[sz]ed)"
    r"|attending (?:radiologist|physician)\b|addend(?:um|a)\b)"
)
"""Lines that end a section without being a heading."""

_INNER = re.compile(
    r"\b(?:brain|cerebr\w*|cerebell\w*|parenchyma\w*|ventric\w*|extra ?axial|intra ?axial|csf|cistern\w*|sulc\w*|gyr\w*"
    r"|white|gr[ae]y|matter|basal|gangli\w*|thalam\w*|stem|pons|medulla|midbrain|midline|skull|calvari\w*|scalp|bones?"
    r"|osseous|marrow|orbits?|globes?|sinus\w*|mastoid\w*|sella\w*|pituitary|pineal|hippocamp\w*|mening\w*|dura\w*"
    r"|vessels?|vascular|arter\w*|venous|vein\w*|flow voids?|carotid\w*|mass(?:es)?|tumou?rs?|lesions?|hemorrhage"
    r"|haemorrhage|infarct\w*|ischa?emi\w*|edema|oedema|enhancement|diffusion|perfusion|spectroscopy|swi|dwi|flair|t1|t2"
    r"|susceptibility|lobes?|frontal|temporal|parietal|occipital|insul\w*|callosum|cranio\w*|cervical|neck|soft|tissues?"
    r"|lungs?|pleura\w*|heart|cardi\w*|mediasti\w*|hil\w*|diaphragm\w*|abdomen|chest|airways?|aorta|spine|lines?|tubes?"
    r"|devices?|hardware|upper|lower|left|right|miscellaneous|size|location|signal|shift|effect|herniation"
    r"|hydrocephalus|involvement|margins?|composition|adc|gre|asl|r?cb[vf]|choline|gliom\w*|necrosis|core)\b"
)
"""Parts of the body and things observed: a heading with one of them divides a section and does not end it."""

_AT_START = re.compile(
    r"^(?P<mark>[\s>*_#=\[<|•-]*(?:\d{1,2}[.)]\s*)?)"
    r"(?P<name>[A-Za-z][A-Za-z0-9 /&,()'.-]{0,60}?)[\s*_\]]*"
    r"(?:(?P<colon>[:=]|\s[-–—](?=\s|$)|(?<=[a-zA-Z])[-–—](?=\s|$))[*_=]*"
    r"|(?P<alone>[\s*_#=>-]*)$)"
)
_NO_SECTION = {"note", "notes", "other", "miscellaneous", "additional", "additionally"}
_NAMES = "finding|findings|impression|impressions|conclusion|conclusions|opinion"
_BARE = re.compile(
    rf"^(?P<mark>[\s>*_#=\[<|•-]*)(?P<name>(?:(?i:{_NAMES}))(?:\s*(?:AND|&|/|\+)\s*(?:(?i:{_NAMES})))?)[\s*_\]]+(?=\d+[.)]|[A-Z]?[a-z])"
)
_INLINE = re.compile(
    r"(?:^|(?<=[.:;!?)\]])(?<!\d[.)])\s+|\s{2,}|\t)"
    r"(?P<name>[A-Z][A-Za-z]*(?:(?: |/| / | & )[A-Za-z()]+){0,4}|[a-z]+)\s*:(?=\s|$)"
)


@dataclass(frozen=True)
class Sections:
    """The text of both sections, empty where there is none, and why the report can't be used if it can't."""

    findings: str = ""
    impression: str = ""
    problem: str | None = None

    @property
    def report(self) -> dict[str, str]:
        """The sections that hold text, as `Study.report` has them."""
        texts = {"findings": self.findings, "impression": self.impression}
        return {name: text for name, text in texts.items() if text}


@dataclass(frozen=True)
class _Heading:
    kind: Kind
    start: int
    end: int


def find_sections(text: str) -> Sections:
    """Findings and Impression of a whole report.

    A section under a merged heading ("FINDINGS AND IMPRESSION") is returned as findings.
    returns  a `problem` if there is no such heading, or nothing under one: the report is then not to be used
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    text = re.sub(r"(?i)</?(?:b|i|u|p|em|strong|span|div|h\d)\b[^<>\n]*>", "", re.sub(r"(?i)<br\s*/?>", "\n", text))
    found: dict[str, list[str]] = {"findings": [], "impression": []}
    current: Kind = "other"
    since = 0
    seen = False
    for heading in [*_headings(text), _Heading("other", len(text), len(text))]:
        if heading.kind == "inner":
            continue
        if current != "other":
            body = _tidy(text[since : heading.start])
            kept = found["impression" if current == "impression" else "findings"]
            if body and body not in kept:
                kept.append(body)
        current, since = heading.kind, heading.end
        seen = seen or heading.kind != "other"
    sections = Sections("\n".join(found["findings"]), "\n".join(found["impression"]))
    if sections.report:
        return sections
    if seen:
        return Sections(problem="the report's Findings and Impression are empty")
    return Sections(problem="the report has no Findings or Impression heading")


def _headings(text: str) -> Iterator[_Heading]:
    small = re.findall(r"\b[a-z]{3,}\b", text)  # units and the x between numbers are small in any report
    mixed = len(small) >= 3
    start = 0
    for line in text.split("\n"):
        yield from _in_line(line, start, mixed)
        start += len(line) + 1


def _in_line(line: str, offset: int, mixed: bool) -> Iterator[_Heading]:
    """The headings of a line. Where not all the report is in capitals (`mixed`), a line in capitals is one."""
    if _END.match(line):
        yield _Heading("other", offset, offset + len(line))
        return
    after = 0
    bare = _BARE.match(line)
    match = _AT_START.match(line)
    if match is not None and (kind := _kind_at_start(match, line, mixed)) is not None:
        after = match.end()
        yield _Heading(kind, offset + match.start(), offset + after)
    elif bare is not None and bare["name"].isupper() and (kind := _known(bare["name"])) is not None:
        after = bare.end()
        yield _Heading(kind, offset, offset + after)
    for inline in _INLINE.finditer(line, max(after - 1, 0)):
        name = inline["name"]
        kind = _known(name) or (_unknown(name) if name.isupper() else None)
        if kind is not None and kind != "inner":
            yield _Heading(kind, offset + inline.start(), offset + inline.end())


def _kind_at_start(match: re.Match[str], line: str, mixed: bool) -> Kind | None:
    """What the words at the start of a line announce, or None if they are text."""
    name, colon = match["name"], match["colon"] is not None
    numbered = any(mark.isdigit() for mark in match["mark"])
    alone = not line[match.end() :].strip()
    known = _known(name)
    if known in ("findings", "impression", "both"):
        return known if colon or name[0].isupper() else None
    if numbered and not (known and name.isupper()):
        return None  # an item of a list: `2. Comparison: ...`
    if known is not None:
        return known if colon or (name[0].isupper() and len(name.split()) <= 3) else None
    if name.isupper():
        return _unknown(name) if colon or (mixed and len(name) > 3) else None
    if colon and alone and _is_title(name):
        return _unknown(name)
    return None


def _known(name: str) -> Kind | None:
    """Findings, Impression, both, or another section by its usual name."""
    plain = _plain(name)
    words = set(plain.split()) - _BESIDE
    if words and words <= _FINDINGS | _IMPRESSION:
        findings, impression = words & _FINDINGS, words & _IMPRESSION
        return "both" if findings and impression else "findings" if findings else "impression"
    return "other" if _OTHER.fullmatch(plain) else None


def _unknown(name: str) -> Kind | None:
    """A heading of no usual name: a part of the body divides a section, anything else ends it."""
    plain = _plain(name)
    if not plain or len(plain.split()) > 6:
        return None
    return "inner" if _INNER.search(plain) else "other"


def _is_title(name: str) -> bool:
    words = [word for word in name.split() if word.lower() not in ("and", "of", "the", "for", "with", "or", "in")]
    return all(word[0].isupper() or not word[0].isalpha() for word in words) and _plain(name) not in _NO_SECTION


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()


def _tidy(text: str) -> str:
    """Lines without trailing space or rules of dashes, at most one empty line in a row, none at either end."""
    lines = [re.sub(r"[ \t]+", " ", line).strip() for line in text.split("\n")]
    lines = ["" if re.fullmatch(r"[-_=*#~.\s]*", line) else line for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
