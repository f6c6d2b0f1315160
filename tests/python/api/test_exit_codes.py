"""The exit codes of the command are the same in C++ and in Python."""

import re

from needs import HOME
from plimsoll.api.exit_codes import ExitCode


def test_python_has_the_exit_codes_of_the_command():
    header = (HOME / "src" / "plimsoll" / "cli" / "commands" / "commands.h").read_text()
    found = re.findall(r"int kExit(\w+) = (\d+);", header)
    expected = {re.sub(r"(?<=.)(?=[A-Z])", "_", name).upper(): int(code) for name, code in found}
    assert expected and {code.name: code.value for code in ExitCode} == expected
