"""Reports of the semi-synthetic chest X-rays, from a grammar that knows what was planted.

Everything planted is reported. Of what is not there, some is denied, a little is hedged, the rest goes unmentioned: the
labels 0, -1 and blank. Only what is absent is hedged, so that a label of 1 is always in the pixels and no other one
ever is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from overread_phantom.xray_findings import Plan

DENIED, HEDGED = 0.55, 0.04
"""Shares of the absent findings that a report denies and hedges."""

ORDER = (
    "Support Devices", "Lung Opacity", "Consolidation", "Edema", "Atelectasis", "Lung Lesion", "Pleural Effusion",
    "Pneumothorax", "Pleural Other", "Cardiomegaly", "Enlarged Cardiomediastinum",
)  # fmt: skip
"""The order of sentences: lines first, then lungs, pleura and heart."""

POSITIVE: dict[str, tuple[str, ...]] = {
    "heart": (
        "The heart is enlarged.",
        "There is cardiomegaly.",
        "The cardiac silhouette is moderately enlarged.",
        "Heart size is above the normal limit.",
    ),
    "upper": (
        "The upper mediastinum is widened.",
        "There is widening of the mediastinal contour.",
        "The superior mediastinal silhouette is broad.",
        "The cardiomediastinal silhouette is enlarged by a wide upper mediastinum.",
    ),
    "edema": (
        "There is bilateral perihilar haze in keeping with pulmonary edema.",
        "Indistinct vessels and hazy hila on both sides indicate pulmonary edema.",
        "Bilateral central airspace haze is present, consistent with edema.",
        "Pulmonary edema is seen, with septal lines at both bases.",
    ),
    "haze": (
        "There is a hazy opacity in the {side} {zone} zone.",
        "A faint ill-defined opacity projects over the {side} {zone} lung.",
        "Vague increased density is seen in the {side} {zone} zone.",
    ),
    "consolidation": (
        "There is consolidation in the {side} {zone} zone with air bronchograms.",
        "Dense airspace consolidation occupies the {side} {zone} lung.",
        "The {side} {zone} zone is consolidated.",
        "A confluent consolidation is seen in the {side} {zone} lung zone.",
    ),
    "mass": (
        "A rounded mass of about {centimetres} cm lies in the {side} {zone} zone.",
        "There is a well-defined {centimetres} cm nodular lesion in the {side} {zone} lung.",
        "A focal lung lesion measuring {centimetres} cm projects over the {side} {zone} zone.",
    ),
    "bands": (
        "Plate-like atelectasis is seen at the {side} base.",
        "Linear bands at the {side} lung base represent atelectasis.",
        "There is subsegmental atelectasis in the {side} lower zone.",
    ),
    "apical": (
        "There is a {side} apical pneumothorax.",
        "A {side} pneumothorax is present with a visible pleural line.",
        "A {extent} pneumothorax is seen on the {side}.",
    ),
    "thickening": (
        "There is pleural thickening along the {side} lateral chest wall.",
        "The {side} pleura is thickened, with plaques.",
        "Lobulated thickening of the {side} lateral pleura is noted.",
    ),
    "fluid": (
        "There is a {extent} {side} pleural effusion.",
        "A {extent} pleural effusion is present on the {side}.",
        "Fluid blunts the {side} costophrenic angle, a {extent} effusion.",
    ),
    "pacemaker": (
        "A left-sided pacemaker with two leads is in place.",
        "Dual-lead pacing device projects over the left chest.",
    ),
    "port": (
        "A right chest port ends in the superior vena cava.",
        "Right-sided implanted port with its catheter tip in the superior vena cava.",
    ),
    "tubes": (
        "An endotracheal tube, an enteric tube and a right central line are in place.",
        "Endotracheal and enteric tubes, a right jugular line and monitoring electrodes are present.",
    ),
}  # fmt: skip

IMPRESSION: dict[str, tuple[str, ...]] = {
    "heart": ("Cardiomegaly.", "Enlarged heart."),
    "upper": ("Widened mediastinum.", "Enlarged mediastinal silhouette."),
    "edema": ("Pulmonary edema.", "Bilateral pulmonary edema."),
    "haze": ("Nonspecific {side} {zone} zone opacity.", "{Side} {zone} lung opacity."),
    "consolidation": ("{Side} {zone} zone consolidation.", "Consolidation in the {side} {zone} lung."),
    "mass": ("{Side} {zone} zone lung mass.", "Lung lesion on the {side}, {centimetres} cm."),
    "bands": ("{Side} basal atelectasis.", "Atelectasis at the {side} base."),
    "apical": ("{Side} pneumothorax.", "{Extent} {side} pneumothorax."),
    "thickening": ("{Side} pleural thickening.", "Thickened pleura on the {side}."),
    "fluid": ("{Extent} {side} pleural effusion.", "{Side} pleural effusion, {extent}."),
    "pacemaker": ("Pacemaker in place.",),
    "port": ("Right chest port in place.",),
    "tubes": ("Tubes and line as described.", "Support tubes and central line in place."),
}

NEGATIVE: dict[str, tuple[str, ...]] = {
    "Support Devices": ("No lines, tubes or implanted devices are seen.", "There are no support devices."),
    "Lung Opacity": ("The lungs are clear.", "No focal lung opacity.", "Both lungs are free of opacity."),
    "Consolidation": ("No consolidation.", "There is no airspace consolidation.", "No focal consolidation is seen."),
    "Edema": (
        "No pulmonary edema.",
        "There is no evidence of edema.",
        "The pulmonary vasculature is normal, without edema.",
    ),
    "Atelectasis": ("No atelectasis.", "The bases are without atelectasis."),
    "Lung Lesion": ("No nodule or mass.", "There is no focal lung lesion."),
    "Pleural Effusion": (
        "No pleural effusion.",
        "The costophrenic angles are sharp, without effusion.",
        "There is no effusion.",
    ),
    "Pneumothorax": ("No pneumothorax.", "There is no pneumothorax.", "No pneumothorax is identified."),
    "Pleural Other": ("The pleura is not thickened.", "No pleural thickening."),
    "Cardiomegaly": ("The heart is normal in size.", "Heart size is normal.", "There is no cardiomegaly."),
    "Enlarged Cardiomediastinum": (
        "The cardiomediastinal silhouette is not enlarged.",
        "The cardiomediastinal contour is within normal limits.",
    ),
}

UNCERTAIN: dict[str, tuple[str, ...]] = {
    "Support Devices": ("A faint density over the neck may be a line or lie outside the patient.",),
    "Lung Opacity": ("A subtle opacity may be superimposition of ribs and vessels.",),
    "Consolidation": ("Early consolidation cannot be excluded.",),
    "Edema": ("Mild edema is possible.", "Early edema cannot be excluded."),
    "Atelectasis": ("There may be minimal atelectasis.",),
    "Lung Lesion": ("A possible nodule may be a vessel seen end on.",),
    "Pleural Effusion": ("A trace effusion cannot be excluded.", "There may be a tiny effusion."),
    "Pneumothorax": ("A tiny pneumothorax cannot be excluded on this film.",),
    "Pleural Other": ("Minimal pleural thickening is possible.",),
    "Cardiomegaly": ("The heart is borderline and may be enlarged.",),
    "Enlarged Cardiomediastinum": ("The mediastinum may be mildly widened, possibly by projection.",),
}

NORMAL = ("No acute cardiopulmonary abnormality.", "Normal chest radiograph.", "No acute process in the chest.")
_BOTH_DENIED = ("No pleural effusion or pneumothorax.", "There is neither pleural effusion nor pneumothorax.")


def write(
    plans: Sequence[Plan], truth: Mapping[str, bool], rng: np.random.Generator
) -> tuple[dict[str, str], dict[str, int]]:
    """The sections findings and impression, and the labels that they carry (1, 0, -1; absent: not mentioned).

    truth  every finding that can be planted; a parent that only a child implies is labelled 1 by the child's sentence
    """
    by_finding = {plan.finding: plan for plan in plans}
    labels: dict[str, int] = {}
    for finding in ORDER:
        chance = rng.random()
        if truth[finding]:
            labels[finding] = 1
        elif chance < DENIED:
            labels[finding] = 0
        elif chance < DENIED + HEDGED:
            labels[finding] = -1
    both = labels.get("Pleural Effusion") == 0 and labels.get("Pneumothorax") == 0 and rng.random() < 0.6
    sentences: list[str] = []
    for finding in ORDER:
        if finding in by_finding:
            plan = by_finding[finding]
            sentences.append(_pick(POSITIVE[plan.kind], rng).format(**_words(plan)))
        elif labels.get(finding) == 0:
            if both and finding in ("Pleural Effusion", "Pneumothorax"):
                if finding == "Pneumothorax":
                    sentences.append(_pick(_BOTH_DENIED, rng))
            else:
                sentences.append(_pick(NEGATIVE[finding], rng))
        elif labels.get(finding) == -1:
            sentences.append(_pick(UNCERTAIN[finding], rng))
    found = [_pick(IMPRESSION[plan.kind], rng).format(**_words(plan)) for plan in plans]
    if not found:
        impression = _pick(NORMAL, rng)
    elif len(found) == 1:
        impression = found[0]
    else:
        impression = " ".join(f"{number}. {text}" for number, text in enumerate(found, start=1))
    return {"findings": " ".join(sentences) or "Single frontal view of the chest.", "impression": impression}, labels


def _pick(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _words(plan: Plan) -> dict[str, str]:
    """Side, zone and extent of a plan in a reader's words."""
    extent = ""
    if plan.kind == "fluid":
        extent = "large" if plan.numbers["level"] < 625 else "moderate" if plan.numbers["level"] < 665 else "small"
    elif plan.kind == "apical":
        extent = "moderate" if plan.numbers["depth"] > 80 else "small"
    words = {"side": plan.side, "zone": plan.zone, "extent": extent}
    words |= {name.capitalize(): word.capitalize() for name, word in words.items()}
    if plan.kind == "mass":
        # The thorax of the base is about 775 film units and 28 cm wide.
        words["centimetres"] = f"{2 * plan.numbers['radius'] * 28 / 775:.1f}"
    return words
