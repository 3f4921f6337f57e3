"""What every part stands on: the five nouns as records, errors, progress, provenance, stopping and locking."""
