"""Exit codes of the command: the same table as src/plimsoll/cli/commands/commands.h."""

from enum import IntEnum


class ExitCode(IntEnum):
    """`plimsoll run` ends with the script's own code, unless the job did not fit or could not be run."""

    FITS = 0
    FAILED = 1
    BAD_USAGE = 2
    DOES_NOT_FIT = 3
    RANKS_DIFFER = 4
    GREW_PAST_BASELINE = 5
