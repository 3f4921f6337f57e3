"""Back ends: what puts trials to a model, one folder each. `docs/develop.md` says how to add one."""
