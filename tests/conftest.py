"""What all tests share."""

pytest_plugins = ["lacking", "pytester"]
