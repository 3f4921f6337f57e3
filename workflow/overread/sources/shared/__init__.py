"""What readers share: rows of tables, paths that may be followed, sections of reports, remarks."""
