"""Views: ways of rendering a study, one module or folder a kind. `docs/develop.md` says how to add one."""
