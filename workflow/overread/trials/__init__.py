"""Trials: a question under a setting becomes the very request that a model is put.

The constants name what a setting can be in this version; `overread plan` lists the rest as not yet.
"""

SOURCES = ("own", "substitute", "black")
REPORTS = ("none", "full")
ORDERS = ("image-first", "text-first")
READOUTS = ("choice", "yes-no", "first-token")
ATTENTION = False
WARNING = True
ONE_PER_STUDY = True
