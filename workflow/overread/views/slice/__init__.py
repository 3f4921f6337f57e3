"""The view `slice`: one slice of one or more series at the same level."""
