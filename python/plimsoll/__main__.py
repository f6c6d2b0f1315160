"""`python -m plimsoll`: the plimsoll command, for this interpreter."""

import sys

from plimsoll.command import main

sys.exit(main())
