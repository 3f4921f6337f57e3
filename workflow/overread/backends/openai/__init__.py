"""Models behind an OpenAI-compatible server: the API itself, Azure, a vLLM server."""
