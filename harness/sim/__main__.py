"""`python -m harness.sim` is the command `harness sim`, for starting it as a process of its own."""

import sys

from harness.sim.options import main

if __name__ == "__main__":
    sys.exit(main())
