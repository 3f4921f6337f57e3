"""The source `open-i`: Open-I."""
