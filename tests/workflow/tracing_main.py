"""Stands in for `overread/__main__.py` in a copy of the package: each job leaves what it called and opened of it.

A function that runs while a module is imported is no call of the job's, since what a module defines is looked at
elsewhere; and who hashes the code does not use it. What an installation wrote beside the package is none of its code.
"""

import atexit
import json
import os
import sys
import threading
from pathlib import Path
from tempfile import mkstemp

PACKAGES = str(Path(__file__).resolve().parents[1]) + os.sep
seen, called, opened = set(), set(), set()


def note_call(frame, event, _):
    code = frame.f_code
    if event != "call" or code in seen or not code.co_filename.startswith(PACKAGES):
        return
    above = frame
    while above is not None and not (above.f_code.co_name == "<module>" and above.f_code.co_filename != __file__):
        above = above.f_back
    if above is None or not above.f_code.co_filename.startswith(PACKAGES):
        seen.add(code)
        called.add(code.co_filename.removeprefix(PACKAGES))


def note_open(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and "r" in str(arguments[1] or "r"):
        path = os.path.abspath(arguments[0])
        above = sys._getframe()
        while above is not None and not above.f_code.co_filename.endswith(("core/frozen.py", "core/provenance.py")):
            above = above.f_back
        own = path.startswith(PACKAGES) and ".egg-info/" not in path
        if above is None and own and not path.endswith((".py", ".pyc", ".json")):
            opened.add(path.removeprefix(PACKAGES))


def leave():
    sys.setprofile(None)
    handle, _ = mkstemp(suffix=".json", dir=os.environ["OVERREAD_TRACES"])
    with os.fdopen(handle, "w") as file:
        json.dump({"arguments": sys.argv[1:], "called": sorted(called), "opened": sorted(opened)}, file)


if __name__ == "__main__":
    from overread.cli import main

    atexit.register(leave)
    sys.addaudithook(note_open)
    threading.setprofile(note_call)
    sys.setprofile(note_call)
    main()
