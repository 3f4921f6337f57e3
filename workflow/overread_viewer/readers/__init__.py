"""The reader study behind the pages: its file, its sample, its database and its export. Nothing here knows of HTTP."""
