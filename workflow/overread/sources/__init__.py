"""Studies: from a data set, as it is distributed, to one row per examination. One module or folder per source.

`docs/develop.md` says how to add one.
"""
