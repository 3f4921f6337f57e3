"""From what a model wrote to the option it gave: never by a guess.

Only an explicit answer counts, in this order: the answer of a JSON object; the last phrase such as "the answer is", or
LaTeX box; a line or the whole text that is an option; an opening "Yes," or "No,". An option is named by its text, or,
where the options were listed, by its number or letter. Phrases win over lines; lines that name different options are
no answer, nor is a list of options. What is left is told apart: refused, truncated, unparsed.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence

from overread.core.records import Status
from overread.responses.parsing.json_answer import answer_in_json
from overread.responses.parsing.named import Named, Options
from overread.responses.parsing.plain import plain, spoken
from overread.responses.parsing.refusals import advises, refuses

_HEDGE = r"(?:(?:most\s+likely|likely|probably|therefore|thus|clearly|definitely|then)\s*[,:]?\s+)?"
_LINK = rf"""\s* (?: \bis\b\s*:? | \b(?:would|should|must|will)\s+be\b\s*:? | [:=|] | -+>? | > ) \s* {_HEDGE}"""
_CUE = re.compile(
    rf"""(?:
        (?: \banswers?\b (?:\s+(?:to|for)\s+(?:the|this|your|that)\s+question(?:\s+"[^"\n]{{1,200}}")?)? ["']?
          | \b(?:final|correct|right|best|likely|appropriate|selected|chosen|predicted|my|the)[\s_]+
            (?:answer|option|choice|selection|guess|response|one)(?:\s+(?:number|letter))?
          | \bnumber\s+of\s+the\s+(?:correct|right|best)\s+(?:option|answer)
          | ^[^\w\n]*(?:final|response|output|prediction|selection|selected|choice|result|verdict|conclusion|
                (?:final\s+)?diagnosis|assistant) (?=\s*[:=])
        ) {_LINK}
      | ^[^\w\n]*(?:ans|answer)\b[.:]?[ \t]+ (?=\S+[ \t]*[.)]*[ \t]*$)
      | ^[^\w\n]*ans[.:]\s*
      | \bi(?:'d|'ll|\s+would|\s+will)? \s+ (?:choose|select|pick|go\s+with|go\s+for|say|answer)
        \s+ (?:that\s+)? (?:it\s+is\s+|it's\s+)?
      | \bi\s+(?:think|believe|guess|suspect)\s+(?:that\s+)?(?:it\s+is|it's|it\s+would\s+be)\s+{_HEDGE}
      | \bit(?:\s+is|'s)\s+(?=(?:option|choice)\b)
      | \b(?:therefore|thus|hence|so|overall|in\s+conclusion|in\s+summary)\s*[,:]?\s+(?!answer)
      | \bbased\s+on\s+[^,.\n]{{1,60}},\s+
      | ^boxed:\s*
      | (?:正确|最终|最佳)?(?:答案|选项|选择)\s*(?:应该是|应为|应是|是|为|:|(?=不是))\s*
      | (?:我(?:会|将)?选择?|应选择?|故选择?|选择|因此选|所以选)\s*:?\s*
    )""",
    re.VERBOSE | re.MULTILINE,
)
_DENIED = re.compile(
    r"(?:\b(?:wrong|incorrect|could|might|may|never|cannot)\b|\b(?:is|was|be)\s+the\s*$"
    r"|(?:\bnot|n't)\s+(?:\w+\s+){0,2}(?:think|believe|say|agree|sure|certain|clear|choose|that)\b"
    r"|(?:\bnot|n't)\s*(?:the|that)?\s*$)"
)
_CONDITION = re.compile(r"\b(?:if|whether|unless)\b")
_LONGEST_SENTENCE = 400
_HAD_TO = re.compile(r"\bif\s+i\s+(?:had|have|were|must)\s+to\s+\w+\s*,?")
_INSTEAD = re.compile(r"(?:not|不是)\s*")
_BUT = re.compile(r"\s*,?\s*(?:but|rather|it\s+is|it's|而是)\s*(?:rather\s+|instead\s+)?")
_BEGIN = re.compile(r"(?:^|[.!?;,]\s+|\b(?:but|and)\s+)[^\w\n]*|(?=\b(?:option|choice)\s|选项)", re.MULTILINE)
_IS_CORRECT = re.compile(
    r"\s+(?:is|seems|appears)\s+(?:the\s+)?(?:most\s+likely\s+|probably\s+)?(?:correct|right|best)"
    r"(?:\s+(?:answer|option|choice|one))?\s*(?:[.,;!]|$|because|since)|\s*是?正确",
    re.MULTILINE,
)
_JUDGED = re.compile(
    r"^[^\w\n]*(?:option\s+)?(\d{1,2}|[a-z])[\s.):\]-]+(?:this\s+is\s+|is\s+)?(?:the\s+)?correct\b", re.MULTILINE
)
_LIST_ITEM = re.compile(r"^[^\w\n]*(?:option\s+)?(\d{1,2}|[a-z])[.):]", re.MULTILINE)
_CUT_ITEM = re.compile(r"\W*(?:option\s+)?(?:\d{1,2}|[a-z])[.):]")
_LEAD = re.compile(
    r"(?:[-*•>|]+\s+|[=-]*>\s*)*(?:(?:assistant|ai|bot|model)\s*:\s*)?(?:(?:most\s+likely|likely|probably|definitely|clearly)[,:]?\s+)?"
)
_NEXT_TURN = re.compile(
    r"\n\s*(?:\#+\s*)?(?:user|human|question|instruction)\s*:|<\|(?:user|im_start|start_header_id)\|>"
)
_SET_OFF = re.compile(r"\s*(?:[,;!]|\.(?!\s*\d)|-\s|\n)")
_ALSO = re.compile(r"[\s,;.:-]*(?:but|and|yet|or|also|however)?\s*")
_BECAUSE = re.compile(r"\s*,?\s+(?:because|since|as|given|due)\b")
_TAKES_BACK = re.compile(
    r"""\b(?: actually | in\s+fact | sorry | (?:oh|hm+|no)?[\s,]*wait | oops | correction | scratch\s+that | apologies
      | on\s+(?:second|further|closer|reflection|re-?examination|re-?inspection)
        (?:\s+(?:thoughts?|look|inspection|review))?
      | (?:after|upon)\s+(?:re-?consider\w*|re-?think\w*|further\s+thought|reflection|a\s+closer\s+look)
      | i\s+mean | or\s+rather | make\s+that | my\s+mistake | i\s+(?:was|am|stand)\s+(?:wrong|mistaken|corrected)
      | let\s+me\s+(?:correct|rephrase|reconsider|revise|re-?think)(?:\s+(?:that|this|myself|my\s+answer))?
      | (?:i\s+)?chang(?:e|ed|ing)\s+my\s+(?:answer|mind)(?:\s+to)? )\b
    [\s,;:.!-]*(?:(?:it\s+is|it's|that\s+is|that's|the\s+answer\s+is|i\s+think(?:\s+it\s+is)?|it\s+should\s+be)\s+)?""",
    re.VERBOSE,
)
_LABEL = re.compile(r"(?P<label>[^:?\n]{1,60})[:?]\s*")
_DENYING_LABEL = re.compile(
    r"\b(?:not|no|un\w+|in\w+|less|least|exclu\w+|ruled?|wrong|false|against|differential|other|versus|vs|alternative|options?)\b"
)
_FINDING = re.compile(r"(?:\w+\s+){0,2}(?:diagnosis|location|site|finding|impression|conclusion|decision)")


def parse(
    text: str, options: Sequence[str], *, listed: bool, finish_reason: str | None = None
) -> tuple[Status, int | None]:
    """Status and place shown of the option that `text` gives.

    options         as shown
    listed          whether they were listed with numbers; without a list a number or a letter means nothing
    finish_reason   `length` tells a text that was cut off before its answer; `refusal` and `content_filter` a refusal
    """
    if finish_reason in ("refusal", "content_filter"):
        return "refused", None
    cut_off = finish_reason == "length"
    said = spoken(text)
    place = _answer(said, Options(options, listed=listed, cut_off=cut_off))
    if place is not None:
        return "answered", place
    words = plain(said)
    if refuses(words) or advises(words):
        return "refused", None
    return ("truncated" if cut_off else "unparsed"), None


def _answer(said: str, options: Options) -> int | None:
    turn = _NEXT_TURN.search(said.casefold())
    if turn and said[: turn.start()].strip():
        # A model that goes on with a question of its own has answered the one that it was asked before that.
        first = Options(options.texts, listed=options.listed)
        place = _answer(said[: turn.start()], first)
        if place is not None:
            return place
    verdict, rest = answer_in_json(said, options)
    if verdict is None or verdict == "cut off":
        return None
    text = plain(rest)
    last = next(iter(sorted(_stated(text, options), key=lambda each: each[0])[-1:]), None)
    if isinstance(verdict, int):
        place = verdict if last is None or last[1].place == verdict else None
    elif last is not None:
        place = last[1].place
    else:
        places = {named.place for named in _whole(text, options)}
        place = places.pop() if len(places) == 1 else None
    begun = 0 if last is None else last[0]
    return None if place is None or _taken_back(text, begun, place, options) else place


def _taken_back(text: str, begun: int, place: int, options: Options) -> bool:
    """Whether another option follows on words that take an answer back: "Yes. Actually, no."

    Which of the two is meant is not for us to say: such a text is unparsed.
    """
    for cue in _TAKES_BACK.finditer(text, begun):
        named = options.at(text, cue.end())
        if named is not None and named.place not in (None, place):
            return True
    return False


def _stated(text: str, options: Options) -> Iterator[tuple[int, Named]]:
    """Where a phrase such as "the answer is" gives an option, and which."""
    ends = [end.end() for end in re.finditer(r"[.!?\n](?:\s|$)", text)]
    for cue in _CUE.finditer(text):
        before = bisect.bisect_right(ends, cue.start())
        sentence = text[max(ends[before - 1] if before else 0, cue.start() - _LONGEST_SENTENCE) : cue.start()]
        thought = re.split(r"\b(?:so|but|still|yet|therefore|thus)\b", _HAD_TO.sub("", sentence))[-1]
        if _CONDITION.search(thought) or _DENIED.search(re.split(r"[,;:]\s", thought)[-1]):
            continue
        named = options.at(text, cue.end()) or _after_denial(text, cue.end(), options)
        if named is None or re.compile(r"\s*\?").match(text, named.end):
            continue
        yield cue.start(), Named(None, named.end) if options.unfinished(text, named) else named
    for begin in _BEGIN.finditer(text):
        named = options.at(text, begin.end())
        if named and _IS_CORRECT.match(text, named.end):
            yield begin.start(), named
    if not options.listed:
        return
    for judged in _JUDGED.finditer(text):
        yield judged.start(), Named(options.place_of(judged[1]), judged.end())


def _after_denial(text: str, start: int, options: Options) -> Named | None:
    """ "Not 2 but 3"."""
    denied = _INSTEAD.match(text, start)
    if denied is None:
        return None
    other = re.compile(r"(?:option\s+)?[^\s,.;]+").match(text, denied.end())
    wrong = options.at(text, denied.end())
    for end in {each.end for each in (wrong,) if each} | ({other.end()} if other else set()):
        but = _BUT.match(text, end)
        if but and but.end() > end:
            return options.at(text, but.end())
    return None


def _whole(text: str, options: Options) -> Iterator[Named]:
    """Lines, sentences and the whole text that are an option, and an option that opens the text."""
    lines = [line for line in text.splitlines() if line.strip()]
    if options.cut_off and len(lines) > 1 and (_CUT_ITEM.match(lines[-1]) or options.whole(lines[-1])):
        return
    whole = options.whole(text)
    if whole:
        yield whole
        return
    listing = len(set(_LIST_ITEM.findall(text))) > 1
    for line in lines:
        lead = _LEAD.match(line)
        bare = line[lead.end() :] if lead else line
        if listing and _LIST_ITEM.match(line):
            continue
        named = options.whole(bare) or _labelled(bare, options)
        if named:
            yield named
            continue
        for sentence in dict.fromkeys(re.split(r"(?<=[.!;?])\s+", bare)):
            named = options.whole(sentence)
            numbered = re.search(rf"{re.escape(sentence)}\s+\d", bare)  # "No. 2 is the better film"
            if named and named.by_text and options.worded(named.place) and not numbered:
                yield named
    opening = None if listing else _opening(text, options)
    if opening and not refuses(text):
        yield opening


def _labelled(line: str, options: Options) -> Named | None:
    """ "Pleural effusion: no", "Diagnosis: glioblastoma", "Is there oedema? Yes, mild"."""
    label = _LABEL.match(line)
    if label is None or _DENYING_LABEL.search(label["label"]):
        return None
    rest = line[label.end() :]
    named = options.whole(rest) or (_opening(rest, options) if "?" in label[0] else None)
    if named is None or not named.by_text or not options.worded(named.place):
        return None
    yes_or_no = sorted(options.texts) == ["no", "yes"]
    return named if yes_or_no or _FINDING.fullmatch(label["label"].strip()) else None


def _opening(text: str, options: Options) -> Named | None:
    """`Yes, ...`: an option that opens the text and is set off by a mark. "No effusion" opens with no answer."""
    named = options.at(text, 0)
    if named is None:
        return None
    if _BECAUSE.match(text, named.end):
        return named
    yes_or_no = options.texts[named.place] in ("yes", "no") if named.place is not None else False
    set_off = _SET_OFF.match(text, named.end) or (yes_or_no and re.compile(r"\s*:").match(text, named.end))
    if not set_off or not named.by_text or not options.worded(named.place):
        return None
    other = options.at(text, _ALSO.match(text, named.end).end())  # type: ignore[union-attr]
    return None if other and other.place != named.place else named
