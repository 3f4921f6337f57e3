"""The view `volume`: a whole series, as one file or as a stack of axial slices."""
