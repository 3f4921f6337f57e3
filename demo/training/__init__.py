"""How the demo's two tiny readers are made; `demo/train_tiny_readers.py` runs it."""
