"""Models that run in this process through vLLM's offline engine."""
