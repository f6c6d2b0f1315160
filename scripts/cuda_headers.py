#!/usr/bin/env python3
"""cuda_headers.py MAJOR FOLDER: writes the public headers of CUDA 12 or 13 into FOLDER/include.

The headers come from the small wheels of the CUDA runtime.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# CUDA 12 has crt/host_defines.h only in the wheel of its compiler; the file of CUDA 13 works too. The first wheel that has a
# file wins.
WHEELS = {
    "12": ["nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-crt==13.0.*"],
    "13": ["nvidia-cuda-runtime==13.0.96", "nvidia-cuda-crt==13.0.*"],
}


def extract_include(wheel: str, folder: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _, found, inner = name.partition("/include/")
            if not found or name.endswith("/"):
                continue
            path = os.path.join(folder, "include", inner)
            if os.path.exists(path):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(name) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)


def fetch(major: str, folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    for wheel in WHEELS[major]:
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([*pip, "download", "--no-deps", "--only-binary=:all:", "-d", scratch, wheel], check=True)
            for name in os.listdir(scratch):
                extract_include(os.path.join(scratch, name), folder)
    if not os.path.exists(os.path.join(folder, "include", "cuda_runtime_api.h")):
        raise SystemExit(f"the wheels {', '.join(WHEELS[major])} do not contain cuda_runtime_api.h")
    with open(os.path.join(folder, "complete"), "w", encoding="utf-8") as file:
        file.write("\n".join(WHEELS[major]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in WHEELS:
        raise SystemExit(__doc__)
    try:
        fetch(sys.argv[1], sys.argv[2])
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"CUDA {sys.argv[1]}'s headers could not be fetched (exit code of pip: {error.returncode})")
