"""Readers of known behaviour: the instrument's calibration weights.

Each reader is a distribution over answers whose true class is known by construction. Simulated studies of them go
through the project's own tables and verdicts, so that how often a conclusion is wrong is a number and not a hope.
"""
