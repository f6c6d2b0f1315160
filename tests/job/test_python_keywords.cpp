#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "plimsoll/job/fields.h"

namespace test_python_keywords {

using namespace plimsoll::job;

namespace {

/// The Python type of a word field, from its form: lower-case words are literals, a capital letter is a number, FILE is
/// a path, and anything else is text.
std::string type_of_words(const std::string& form) {
  std::string literals;
  std::string others;
  std::istringstream parts(form);
  for (std::string part; std::getline(parts, part, '|');) {
    const bool is_word = part.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ:") == std::string::npos;
    if (is_word) {
      literals += (literals.empty() ? "" : ", ") + ("\"" + part + "\"");
    } else if (part == "FILE") {
      others = "str | os.PathLike[str]";
    } else if (part.size() == 1) {
      others = "int";
    } else if (others.empty()) {
      others = "str";
    }
  }
  if (others.starts_with("str") || literals.empty()) return others;
  return "Literal[" + literals + "]" + (others.empty() ? "" : " | " + others);
}

std::string type_of(const Field& field) {
  switch (field.kind) {
    case Field::Kind::kFlag:
      return "bool";
    case Field::Kind::kInteger:
      return "int";
    case Field::Kind::kReal:
      return "float | Literal[\"none\"]";
    case Field::Kind::kBytes:
      return "str | int";
    case Field::Kind::kWord:
      break;
  }
  return type_of_words(field.form);
}

std::string comment(const std::string& text) {
  constexpr std::size_t kWidth = 116;
  std::string lines = "    #";
  std::size_t width = 1;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (width + 1 + word.size() > kWidth) {
      lines += "\n    #";
      width = 1;
    }
    lines += " " + word;
    width += 1 + word.size();
  }
  return lines + "\n";
}

std::string python_module() {
  std::string text =
      "\"\"\"The keywords of `plan` with their types, for editors and type checkers.\n\n"
      "Generated from the table in src/plimsoll/job/fields.cpp by tests/job: PLIMSOLL_REGENERATE=1 writes it again.\n"
      "\"\"\"\n\n"
      "from __future__ import annotations\n\n"
      "import os\n"
      "from typing import Literal, TypedDict\n\n\n"
      "class JobFlags(TypedDict, total=False):\n"
      "    \"\"\"The flags of a job, as `plimsoll plan --help` lists them. None: as if it was not given.\"\"\"\n\n";
  for (const Field& field : fields())
    text += comment(field.help) + "    " + field.key() + ": " + type_of(field) + " | None\n";
  return text;
}

}  // namespace

TEST_CASE("Python's keywords of plan are the fields of a job") {
  const std::filesystem::path file = std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "python/plimsoll/api/job_flags.py";
  const char* regenerate = std::getenv("PLIMSOLL_REGENERATE");
  if (regenerate != nullptr && std::string(regenerate) == "1") std::ofstream(file, std::ios::binary) << python_module();
  std::ostringstream found;
  found << std::ifstream(file, std::ios::binary).rdbuf();
  INFO(file.string(), ": PLIMSOLL_REGENERATE=1 writes it again");
  CHECK(found.str() == python_module());
}

}  // namespace test_python_keywords
