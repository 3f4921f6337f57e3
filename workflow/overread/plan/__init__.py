"""The plan of a study: what is asked for, what of it can run, how much that is, and what stands in the way of the rest.

    asked       cells that the evaluations ask for   judging     why a cell can't run: never or missing
    checks      what must stop before any job        estimates   requests, images, tokens, jobs

Import-light: the Snakefile asks it for its targets every time that it is parsed.
"""

from overread.plan.asked import Cell, cells
from overread.plan.checks import check
from overread.plan.estimates import CellLoad, Estimate, Size, estimate
from overread.plan.judging import Obstacle, not_run, obstacle, obstacles, runnable

__all__ = [
    "Cell", "CellLoad", "Estimate", "Obstacle", "Size", "cells", "check", "estimate", "not_run", "obstacle",
    "obstacles", "runnable",
]  # fmt: skip
