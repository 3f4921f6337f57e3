"""Labels of findings as tables write them, in the words of `Study.labels`."""

from __future__ import annotations

from collections.abc import Mapping

from overread.sources.shared.blank import filled

LABELS = {1.0: "positive", 0.0: "negative", -1.0: "uncertain"}
"""As the CheXpert labeller writes them; blank is not mentioned."""


def in_words(values: Mapping[str, str | None]) -> tuple[dict[str, str], str | None]:
    """Labels by finding, those not mentioned left out; and what is wrong with them, if something is.

    Numbers and words are both read. One value that is neither spoils the study: the others may be no truer.
    """
    named: dict[str, str] = {}
    for name, value in values.items():
        if value is None or not filled(value):
            continue
        text = value.strip().lower()
        try:
            named[name] = text if text in LABELS.values() else LABELS[float(text)]
        except (KeyError, ValueError):
            return {}, f"labels other than 1, 0, -1 and blank: {name} {value}"
    return named, None
