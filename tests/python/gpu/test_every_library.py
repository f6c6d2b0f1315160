"""Every vendor library that torch calls answers, or fails by name if it is not implemented."""

import re

import needs

SCRIPT = needs.PYTHON_PROGRAMS / "every_library.py"


def test_every_library_answers_or_fails_by_name(plimsoll_run):
    run = plimsoll_run(SCRIPT)
    assert run.code == 0, run.stderr
    assert "gds: 4096 bytes written" in run.stdout
    # NVSHMEM cannot be initialised: the script gets torch's error, and the report names the call.
    assert re.search(r"^nvshmem: .*\bnvshmemx_get_uniqueid failed", run.stdout, re.MULTILINE)
    assert "plimsoll: nvshmemx_get_uniqueid is not implemented by the pretend GPU; the call failed" in run.stderr
    assert run.json["unpretended"] == ["nvshmemx_get_uniqueid"]
