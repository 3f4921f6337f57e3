"""Reporting: words, figures and the report, from the tables alone."""
