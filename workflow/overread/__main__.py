"""`python -m overread`: how the rules call the package, so that it need not be installed in their environments."""

from overread.cli import main

if __name__ == "__main__":
    main()
