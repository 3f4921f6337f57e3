"""Overread as a library: a finished run as data frames, and what every column of its files means."""
