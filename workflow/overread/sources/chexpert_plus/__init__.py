"""The source `chexpert-plus`: CheXpert Plus."""
