"""Checks that test_lone_rank.py runs in one process of `plimsoll run`: `lone_rank_checks.py NAME…`.

Each check starts and ends without a process group, as the rank that the environment names. Its outcome is printed as one line of
JSON: its name and the traceback of its exception.
"""

import json
import sys
import traceback

import lone_rank_collectives
import lone_rank_groups
import lone_rank_parts
import lone_rank_stores
import torch
import torch.distributed as dist
from lone_rank_place import device

CHECKS = {
    name: check
    for module in (lone_rank_collectives, lone_rank_groups, lone_rank_parts, lone_rank_stores)
    for name, check in vars(module).items()
    if callable(check) and check.__module__ == module.__name__ and not name.startswith("_")
}


def main():
    torch.cuda.set_device(device)
    for name in sys.argv[1:]:
        failure = None
        try:
            CHECKS[name]()
        except BaseException:
            failure = traceback.format_exc()
        if dist.is_initialized() and name != "a_script_may_leave_its_groups":
            dist.destroy_process_group()
        print("check", json.dumps([name, failure]), flush=True)


if __name__ == "__main__":
    main()
