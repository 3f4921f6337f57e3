"""LLaVA-Med 1.5 from its original checkpoint: its conversation format, its square pictures, and the library's LLaVA.

The checkpoint's tensors get the library's names (`checkpoint`), a trial becomes the original's tokens and pictures
(`conversation`, `prompts`), and the rest is that of the transformers back end: what prompts share is computed once,
and the readouts mean the same.
"""
