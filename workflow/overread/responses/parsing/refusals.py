"""Whether a model would not, or could not, answer."""

from __future__ import annotations

import re

_DO = r"""(?:answer|assist|help|provide|give|offer|make|interpret|diagnos\w*|anal[yi][sz]\w*|assess|evaluate|determine|
    tell|say|see\s+(?:any|the|an|your|this|that)\s+(?:\w+\s+)?(?:image|picture|scan|photo|film|x-ray|attachment|file)|
    view|access|open|process|read|review|comment|comply|choose|select|identify\s+(?:people|the\s+person)|speculate)"""
_MODEL = r"(?:ai|language\s+model|large\s+language\s+model|artificial)"
_PICTURE = r"(?:image|images|picture|pictures|scan|scans|photo|attachment|file|x-ray|mri)"

_SENT = r"(?:provided|attached|uploaded|included|visible|loaded)"
_REFUSAL = re.compile(
    rf"""\b(?:i|we)\s*(?:'m|\s+am|\s+are)\s+(?:sorry,?\s+(?:but\s+)?)?(?:unable|not\s+able)\s+to\s+{_DO}
      | \b(?:i|we)\s+(?:can't|cannot|can\s+not|won't|will\s+not|must\s+decline|decline|do\s+not\s+have\s+the\s+ability|
          don't\s+have\s+the\s+ability)\s+(?:to\s+)?{_DO}
      | \b(?:i|we)\s+(?:must\s+|have\s+to\s+)?decline\b
      | \b(?:i|we)\s+(?:choose|prefer)\s+not\s+to\b
      | \bnot\s+qualified\s+to\b
      | \b(?:i|we)\s+(?:do\s+not|don't|did\s+not|didn't)\s+(?:actually\s+)?(?:see|have|receive|find)\s+
          (?:an?|any|the|your|access\s+to\s+(?:an?|any|the|your))\s+(?:\w+\s+)?{_PICTURE}\b
      | \bno\s+{_PICTURE}\s+(?:is|was|were|are|has|have|been|provided|attached|uploaded|available)\b
      | \bthere\s+is\s+no\s+{_PICTURE}\b
      | \b{_PICTURE}\s+(?:is|was|were|has|have)\s*(?:not|n't)\s+(?:been\s+)?{_SENT}
      | \bplease\s+(?:provide|upload|attach|share|send)\b
      | \bas\s+an?\s+{_MODEL}\b[^.\n]*\b(?:can't|cannot|can\s+not|unable|do(?:es)?\s+not|don't)\b
      | \b(?:unable|impossible|not\s+possible)\s+to\s+(?:determine|answer|tell|assess|say|view|see|read)\b
      | \b(?:cannot|can't|can\s+not)\s+be\s+(?:determined|answered|assessed|told)\b
      | \b(?:cannot|can't)\s+(?:determine|tell|answer)\b
      | \b(?:not\s+enough|insufficient)\s+information\b
      | 无法(?:回答|判断|确定|查看|看到|分析|提供|诊断|解读) | 不能(?:回答|判断|确定|提供|诊断)
      | (?:看不到|没有(?:看到|提供|上传))(?:任何)?(?:图|影)[像片]""",
    re.VERBOSE,
)
_ADVICE = re.compile(
    rf"\bas\s+an?\s+{_MODEL}\b|\bconsult\s+(?:a|an|your|with)\b"
    r"|\b(?:i'm|i\s+am)\s+sorry\b|^sorry\b|抱歉|对不起"
)


def refuses(text: str) -> bool:
    """Whether a plain text says that the model would not or could not answer."""
    return _REFUSAL.search(text) is not None


def advises(text: str) -> bool:
    """Whether a plain text apologises or sends to somebody else: a refusal, unless it also gives an answer."""
    return _ADVICE.search(text) is not None
