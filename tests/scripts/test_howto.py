"""The files that the recipes of docs/howto name exist."""

import glob
import os
import re
import unittest

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = "src|python|tests|scripts|docs|cmake|examples"


class Howto(unittest.TestCase):
    def test_each_file_in_a_recipe_exists(self):
        pages = glob.glob(os.path.join(HOME, "docs", "howto", "*.md"))
        self.assertTrue(pages)
        for page in pages:
            with open(page, encoding="utf-8") as file:
                paths = set(re.findall(rf"(?:`|pytest )((?:{FOLDERS})/[\w./-]+)(?![\w./<-])", file.read()))
            for path in sorted(paths):
                # A throw-away example of a recipe.
                if "seed_oss" in path or "L4-24GB" in path:
                    continue
                with self.subTest(page=os.path.basename(page), path=path):
                    self.assertTrue(os.path.exists(os.path.join(HOME, path)))


if __name__ == "__main__":
    unittest.main()
