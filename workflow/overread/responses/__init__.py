"""Responses: trials are put to a model, and every answer is kept."""
