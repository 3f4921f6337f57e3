"""The view `montage`: all series at the chosen level in one square grid."""
