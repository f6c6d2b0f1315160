"""The lint tools have the same versions in scripts/lint.sh and in pre-commit."""

import re
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


class LintVersions(unittest.TestCase):
    def test_pre_commit_has_the_versions_of_the_lint_script(self) -> None:
        requirements = (HOME / "scripts" / "lint_requirements.txt").read_text()
        pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", requirements, re.MULTILINE))
        hooks = (HOME / ".pre-commit-config.yaml").read_text()
        named = {"mirrors-clang-format": "clang-format", "ruff-pre-commit": "ruff"}
        found = re.findall(r"repo: \S+/(\S+)\n +rev: v(\S+)", hooks)
        self.assertEqual(len(found), 4)
        for repository, version in found:
            name = named.get(repository, repository)
            self.assertEqual(version, pinned[name], name)


if __name__ == "__main__":
    unittest.main()
