"""The semi-synthetic demo data: findings planted in real anatomy, written in the layout of the real data sets."""
