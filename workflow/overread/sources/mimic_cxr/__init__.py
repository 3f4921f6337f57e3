"""The source `mimic-cxr`: MIMIC-CXR-JPG."""
