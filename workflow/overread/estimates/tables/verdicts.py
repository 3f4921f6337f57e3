"""Verdicts: what is concluded of each model, whether it uses the image, by the adjusted tests of its primary family.

`inference.decide` says by which rule. A number is that of the comparison that the verdict rests on; the opponent is the
one that the reader does worst against.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from overread.core.columns import (
    COMPARISON,
    DATASET,
    HIGH,
    LOW,
    MODEL,
    P_EQUIVALENT,
    P_HOLM,
    PATIENTS,
    QUESTIONS,
    REPORT_SHOWN,
    P,
    difference,
    number,
    share,
    text,
)  # fmt: skip
from overread.estimates.family import rules_of
from overread.estimates.found import Found
from overread.estimates.inference.decide import CLASSES, SUBCLASSES, Rules
from overread.estimates.inference.following import Following
from overread.estimates.inference.gain import Gain
from overread.estimates.inference.reacting import strictest
from overread.estimates.spec import TablesSpec
from overread.estimates.tables import Table
from overread.estimates.tables.following import FOLLOWING, SMALLEST
from overread.estimates.tables.gain import GAIN, OPPONENT
from overread.estimates.tables.margin_auc import MARGIN_AUC
from overread.estimates.tables.reacting import FLOOR_KIND
from overread.settings.report import Report

NOT_TESTED, NO_SWAP, NO_FLOOR = "not tested", "no image was swapped where a label changes", "no floor was measured"
NO_MARGINS, NO_OPPONENT = "no log-probabilities", "nothing to set it against"
TABLE = Table(
    __name__,
    __doc__,
    (
        DATASET, MODEL, text("verdict", "what is concluded", values=CLASSES),
        text("subclass", "what kind of it", values=SUBCLASSES, blank=NOT_TESTED), COMPARISON.but(blank=NOT_TESTED),
        REPORT_SHOWN.but(blank=NOT_TESTED),
        *(column.but(blank=NO_SWAP) for column in (FOLLOWING, LOW, HIGH, P)),
        *(column.but(blank=NOT_TESTED) for column in (P_HOLM, P_EQUIVALENT, SMALLEST, QUESTIONS, PATIENTS)),
        *(column.but(blank=NO_OPPONENT) for column in (OPPONENT, GAIN)),
        number("gain_low", "lower end of the gain's interval", blank=NO_OPPONENT),
        number("gain_high", "upper end of the gain's interval", blank=NO_OPPONENT),
        share("lost", "the largest share of lost pairs among the primary comparisons", blank=NOT_TESTED),
        FLOOR_KIND.but(blank=NOT_TESTED),
        difference("reacting", "share of answers that change under the swap, less the floor's where it was measured",
                   blank=NO_SWAP),
        number("reacting_low", "lower end of its interval", blank=NO_SWAP),
        number("reacting_high", "upper end of its interval", blank=NO_SWAP),
        share("reacting_p", "one-sided p that it is above 0", blank=NO_FLOOR),
        MARGIN_AUC.but(blank=NO_MARGINS), number("auc_low", "lower end of its interval", blank=NO_MARGINS),
        number("auc_high", "upper end of its interval", blank=NO_MARGINS),
        text("family", "the primary comparisons, joined by semicolons", blank=NOT_TESTED),
        text("reasons", "what it follows from, as codes joined by semicolons (docs/statistics.md)", blank=NOT_TESTED),
        text("decoding", "how the model draws its answers", values=("greedy", "sampled", "unknown")),
    ),
    lambda run: verdicts_table(run.found, run.spec),
)  # fmt: skip


def verdicts_table(found: Iterable[Found], spec: TablesSpec) -> pd.DataFrame:
    """A row a dataset and model, sorted."""
    rules = rules_of(spec.statistics)
    rows = [[*_verdict_row(one, spec, rules), spec.decoding.get(one.model, "unknown")] for one in found]
    return TABLE.frame(rows)


def _verdict_row(one: Found, spec: TablesSpec, rules: Rules) -> list[object]:
    verdict, name = one.verdict, one.verdict.comparison
    start: list[object] = [one.dataset, one.model, verdict.verdict, verdict.subclass, name]
    if not name:
        return [one.dataset, one.model, verdict.verdict, *[None] * (len(TABLE.names) - 4)]
    found, setting = one.tested[name], spec.comparisons[name].settings[0]
    main = found.main
    numbers: list[object] = [None] * 4
    if main is not None:
        numbers = [main.estimate if isinstance(main, Following) else None, *main.interval, main.p]
        if isinstance(main, Gain):
            numbers[1:3] = [None, None]
    smallest = rules.gain if isinstance(main, Gain) else rules.following
    counts: list[object] = [main.pairs, main.combined.patients] if main is not None else [0, 0]
    gains = [row for row in one.gains if row.setting == setting]
    worst = min(gains, key=lambda row: row.gain.estimate, default=None)
    over: list[object] = [None] * 4 if worst is None else [worst.opponent, worst.gain.estimate, *worst.gain.interval]
    floor = strictest(found.reacting)
    moved: list[object] = ["not measured", None, None, None, None]
    if floor is not None:
        p = floor.p if floor.floor_rate is not None else None
        moved = [floor.floor, floor.surplus.estimate, *floor.surplus.limits(rules.level), p]
    auc = found.below.auc if found.below is not None else None
    below: list[object] = [None] * 3 if auc is None else [auc.estimate, *auc.limits(rules.level)]
    adjusted = [verdict.p[name], verdict.p_equivalent, smallest]
    return [
        *start, spec.settings[setting][Report].report, *numbers, *adjusted, *counts, *over, verdict.lost, *moved,
        *below, ";".join(one.family), ";".join(verdict.reasons),
    ]  # fmt: skip
