"""Overread measures whether a medical vision-language model reads the image or only the text beside it."""

__version__ = "0.1.0"
