"""What the report says under each figure, and to a reader who can't see it."""

from __future__ import annotations

FIGURE_TEXTS = {
    "accuracy": (
        "Accuracy by setting, with {level} intervals clustered by patient. The lines are what chance and always taking "
        "the first option would score; a hollow marker has no interval.",
        "Dot plot of accuracy in per cent: a panel for each dataset, a band for each setting, a marker for each model.",
    ),
    "modality": (
        "Balanced accuracy from the question alone, the report, the image, and both, with {level} intervals: what the "
        "image adds without the report, and what it adds beside it. Beside a report this is no measure of reading the "
        "image.",
        "Dot plot of balanced accuracy in per cent: a panel for each dataset, a band for each setting, a marker for "
        "each model.",
    ),
    "flips": (
        "How often the answer flips between the two settings of a comparison, over all pairs, with {level} intervals. "
        "Grey is the noise floor: how often it flips when the first setting is asked again as it was.",
        "Dot plot of flip rates in per cent: a panel for each dataset, a band for each comparison, a marker for each "
        "model.",
    ),
    "findings": (
        "Each difference of two flip rates by finding: the first rate, the second, and their difference, with {level} "
        "intervals. Grey is the noise floor of the first. A pooled difference need not hold for any finding, and a "
        "finding that is always answered alike can't flip.",
        "Forest plot in three columns: two flip rates in per cent, side by side, and their difference in points; a "
        "band for each finding, a marker for each model.",
    ),
    "margins": (
        "In which share of the questions the margin moves further in the first comparison of a difference than in the "
        "second, with {level} intervals. An answer can stay while its margin moves.",
        "Dot plot of shares of questions in per cent: a panel for each dataset, a band for each difference of two flip "
        "rates, a marker for each model.",
    ),
    "own_label": (
        "Accuracy for the image shown: each arm of an image swap, scored against the study whose image it shows, with "
        "{level} intervals. For X-rays that is agreement with labels drawn from reports.",
        "Dot plot of accuracy in per cent: a panel for each dataset, a band for each arm of an image swap, a marker "
        "for each model.",
    ),
    "layers": (
        "How often the answer flips when the image is swapped, with the report hidden from a layer on, or in one layer "
        "alone; shaded are {level} intervals. The lines are the same with the report in full view and without one. "
        "What a layer hands on it may have taken from the report before.",
        "Curves of flip rates in per cent over the layers of a model, between two horizontal lines.",
    ),
    "curves": (
        "Accuracy, and flips between two settings, where settings differ in how much of one thing they have; shaded "
        "are {level} intervals. Flips with the report hidden from layers have a figure of their own.",
        "Curves of accuracy and of flip rates in per cent over a dose: a panel for each curve, a line for each model.",
    ),
    "occlusion": (
        "Occlusion maps: how many answers change, in per cent, when one cell of a grid over the picture is covered; in "
        "brackets how much of the lesion the cell hides, on average.",
        "Maps of the picture: a panel for each model, a cell for each box that was covered, darker where more answers "
        "change.",
    ),
    "flips_by_finding": (
        "Flips by kind of pair and by finding, with {level} intervals. The pooled rate on top need not hold for any "
        "finding.",
        "Forest plot of flip rates in per cent: a column for each comparison, a band for each finding, a marker for "
        "each model.",
    ),
    "effects": (
        "Differences in accuracy between two settings, and in flip rates between two comparisons, each with the "
        "{level} interval of the difference itself.",
        "Dot plot of differences in percentage points around a line at zero: a band for each difference, a marker for "
        "each model.",
    ),
    "positions": (
        "Where the correct answers stand (bars) and where the answers given stand (markers), by place shown.",
        "Small panels, one for each dataset and setting: bars of the share of correct answers at each place, "
        "markers of the share of each model's answers.",
    ),
}  # fmt: skip
