"""Curation: questions out of reports, by generating, validating, filtering, review and release."""
