"""Run the drivers of this folder on retrograd, each with a library of others, and compare what they print with a recording.

python -m tests.libraries              every driver; `make libraries` installs the libraries and calls this
python -m tests.libraries kornia pyro  those whose name has one of the words in it
python -m tests.libraries --record     in an environment with torch beside the libraries: write the recordings
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.libraries.checking import DRIVERS, differences, missing_libraries, recording, run


def main() -> None:
    """Run the drivers that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    failed = False
    for driver in DRIVERS:
        if options.words and not any(word in driver for word in options.words):
            continue
        if absent := missing_libraries(driver):
            print(f"{driver}: left out, {', '.join(absent)} not installed")
            continue
        began = time.perf_counter()
        try:
            printed = run(driver, on_torch=options.record)
            if options.record:
                recording(driver).write_text(printed)
            found = differences(recording(driver).read_text(), printed)
        except RuntimeError as error:
            found = [str(error)]
        failed |= bool(found)
        print(f"{driver}: {'differs' if found else 'agrees'}, {time.perf_counter() - began:.1f} s")
        print("".join(f"{line}\n" for line in found), end="", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
