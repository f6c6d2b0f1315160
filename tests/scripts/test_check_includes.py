"""check_includes.py finds forbidden includes, and DESIGN.md has its table of layers."""

import sys
import tempfile
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "scripts"))

import check_includes  # noqa: E402


class Includes(unittest.TestCase):
    def defects(self, path: str, line: str) -> str:
        with tempfile.TemporaryDirectory() as root:
            for name in ("base/errors.h", "report/report.h", "pretend/model/model.h", "pretend/nccl/nccl.h", path):
                file = Path(root) / "plimsoll" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            (Path(root) / "plimsoll" / path).write_text(f"#include {line}\n")
            return "\n".join(check_includes.check(root))

    def test_an_allowed_include_has_no_defect(self):
        self.assertEqual(self.defects("cli/a.cpp", '"plimsoll/report/report.h"'), "")
        self.assertEqual(self.defects("plan/a.cpp", "<torch/nn/module.h>"), "")

    def test_a_layer_outside_its_row_is_refused(self):
        self.assertIn("'ledger' may see base, and includes", self.defects("ledger/a.cpp", '"plimsoll/report/report.h"'))
        self.assertIn("'report' may see base,", self.defects("report/a.cpp", '"plimsoll/pretend/model/model.h"'))

    def test_a_face_is_seen_by_no_other_layer(self):
        self.assertIn("may see the model", self.defects("cli/a.cpp", '"plimsoll/pretend/nccl/nccl.h"'))
        self.assertIn("knows no face", self.defects("pretend/model/a.cpp", '"plimsoll/pretend/nccl/nccl.h"'))

    def test_cli_and_job_are_torch_free(self):
        for layer in ("cli", "job"):
            self.assertIn(f"'{layer}' is torch-free", self.defects(f"{layer}/a.cpp", "<c10/util/Exception.h>"))

    def test_a_relative_path_a_missing_file_and_torch_h_are_refused(self):
        self.assertIn("write the full path", self.defects("base/a.cpp", '"errors.h"'))
        self.assertIn("does not exist", self.defects("base/a.cpp", '"plimsoll/base/none.h"'))
        self.assertIn("narrow headers", self.defects("plan/a.cpp", "<torch/torch.h>"))
        self.assertIn("is not a layer", self.defects("misc/a.cpp", "<vector>"))

    def test_design_has_the_table_of_layers(self):
        text = (HOME / "DESIGN.md").read_text(encoding="utf-8")
        self.assertIn(
            f"<!-- layers: scripts/check_includes.py --table -->\n{check_includes.table()}<!-- end -->\n", text
        )


if __name__ == "__main__":
    unittest.main()
