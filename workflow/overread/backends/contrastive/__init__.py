"""Encoders of pictures and texts: the option nearest to the picture is the answer."""
