"""Models that run in this process through the transformers library.

A trial's blocks go in order through the model's own chat template and processor (`prompts`), prompts that begin alike
share what they share (`prefix`, `packing`, `attention`), and the readouts are those of `readouts`. Plain batches
(`plain`) are for architectures whose prompts can't be packed.
"""
