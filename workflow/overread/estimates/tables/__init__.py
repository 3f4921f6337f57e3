"""The tables of a study, one module per table."""
