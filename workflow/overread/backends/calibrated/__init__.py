"""Readers of known behaviour that are told the truth: the instrument's calibration weights."""
