"""The source `ucsf-pdgm`: UCSF-PDGM."""
