"""The source `table`: a table of the user's own."""
