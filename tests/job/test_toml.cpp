#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>

#include "job/messages.h"
#include "plimsoll/job/toml.h"

namespace test_toml {

using namespace plimsoll;
using namespace plimsoll::job;
using toml::Value;

namespace {

/// The value at a path of keys, which must be there.
const Value& at(const Value& root, std::initializer_list<const char*> path) {
  const Value* value = &root;
  for (const char* key : path) {
    value = value->find(key);
    REQUIRE_MESSAGE(value != nullptr, key);
  }
  return *value;
}

/// The value of `x = text`.
Value one(const std::string& text) {
  auto root = toml::parse("x = " + text + "\n", "t");
  return std::move(*root.table.at("x"));
}

std::string complaint(const std::string& text) {
  return message_of<FormatError>([&] { toml::parse(text, "t"); });
}

constexpr const char* kWhole = R"(# A comment
title = "TOML" # another
bare-key_1 = 1
"quoted key" = 2
'literal.key' = 3
a.b.c = true
a . "b" . d = false
3.14159 = "pi"

[owner]
name = 'C:\path\no escapes'
born = 1979-05-27T07:32:00-08:00
also = 1979-05-27 07:32:00.5
day = 1979-05-27
time = 07:32:00

  [owner.home]   # sub-table
  rooms = [ "a", 'b', # comment in an array
    """c""",
  ]
[x.y.z.w]
[x]
here = { point.x = 1, "y" = [{}, { q = 2 }], s = 'k' }

[[products]]
name = "Hammer"
[products.maker]
name = "A"
[[products]]
[[products.parts]]
n = 1
[[products.parts]]
n = 2
)";

}  // namespace

TEST_CASE("tables, arrays of tables, dotted keys and inline tables become a tree") {
  const Value root = toml::parse(kWhole, "t");
  CHECK(at(root, {"title"}).text == "TOML");
  CHECK(at(root, {"title"}).line == 2);
  CHECK(at(root, {"bare-key_1"}).integer == 1);
  CHECK(at(root, {"quoted key"}).integer == 2);
  CHECK(at(root, {"literal.key"}).integer == 3);
  CHECK(at(root, {"a", "b", "c"}).boolean);
  CHECK_FALSE(at(root, {"a", "b", "d"}).boolean);
  CHECK(at(root, {"3", "14159"}).text == "pi");
  CHECK(at(root, {"owner", "name"}).text == R"(C:\path\no escapes)");
  CHECK(at(root, {"owner", "born"}).kind == Value::Kind::kDate);
  CHECK(at(root, {"owner", "born"}).text == "1979-05-27T07:32:00-08:00");
  CHECK(at(root, {"owner", "also"}).text == "1979-05-27 07:32:00.5");
  CHECK(at(root, {"owner", "day"}).kind == Value::Kind::kDate);
  CHECK(at(root, {"owner", "time"}).kind == Value::Kind::kDate);
  CHECK(at(root, {"owner", "home", "rooms"}).array.size() == 3);
  CHECK(at(root, {"owner", "home", "rooms"}).array[2].text == "c");
  CHECK(at(root, {"x", "y", "z", "w"}).table.empty());
  CHECK(at(root, {"x", "here", "point", "x"}).integer == 1);
  CHECK(at(at(root, {"x", "here", "y"}).array[1], {"q"}).integer == 2);
  const Value& products = at(root, {"products"});
  CHECK(products.array.size() == 2);
  CHECK(at(products.array[0], {"maker", "name"}).text == "A");
  CHECK(at(products.array[1], {"parts"}).array[1].find("n")->integer == 2);
  CHECK(root.find("nothing") == nullptr);
}

TEST_CASE("strings of all four forms") {
  CHECK(one(R"("a\tb\"\\\u00e9\U0001F600\b\n\f\r")").text == "a\tb\"\\\xC3\xA9\xF0\x9F\x98\x80\b\n\f\r");
  CHECK(one(R"("\u0041\u07ff\u20AC")").text == "A\xDF\xBF\xE2\x82\xAC");
  CHECK(one("\"\"\"\nfirst\nsecond\"\"\"").text == "first\nsecond");
  CHECK(one("\"\"\"one \\\n   \n  two\"\"\"").text == "one two");
  CHECK(one("\"\"\"a\"\"b\"\"\"\"\"").text == "a\"\"b\"\"");
  CHECK(one("'''\n\\n'q''\nx'''").text == "\\n'q''\nx");
  CHECK(one("''").text.empty());
  CHECK(one("\"\"").text.empty());
  CHECK(one("\"\"\"\"\"\"").text.empty());
  CHECK(one("\"\"\"a\r\nb\"\"\"").text == "a\nb");
}

TEST_CASE("numbers of all forms") {
  CHECK(one("+99").integer == 99);
  CHECK(one("-0").integer == 0);
  CHECK(one("1_000_000").integer == 1000000);
  CHECK(one("0xDEAD_beef").integer == 0xDEADBEEF);
  CHECK(one("0o755").integer == 0755);
  CHECK(one("0b1101").integer == 13);
  CHECK(one("9223372036854775807").integer == INT64_MAX);
  CHECK(one("-9223372036854775808").integer == INT64_MIN);
  CHECK(one("1.5").real == 1.5);
  CHECK(one("-3e-2").real == -0.03);
  CHECK(one("6.626_070e+3").real == 6626.07);
  CHECK(one("1E5").kind == Value::Kind::kFloat);
  CHECK(one("inf").real == INFINITY);
  CHECK(one("-inf").real == -INFINITY);
  CHECK(std::isnan(one("+nan").real));
}

TEST_CASE("a byte-order mark, Windows' line ends and no last line end are fine") {
  CHECK(toml::parse("\xEF\xBB\xBF"
                    "a = 1\r\n[b]\r\n# c\r\nd = [1,\r\n2]",
                    "t")
            .find("b")
            ->find("d")
            ->array.size() == 2);
  CHECK(toml::parse("", "t").table.empty());
}

TEST_CASE("names in messages are those of a person") {
  CHECK(std::string(toml::name(Value::Kind::kString)) == "a text");
  CHECK(std::string(toml::name(Value::Kind::kInteger)) == "a whole number");
  CHECK(std::string(toml::name(Value::Kind::kFloat)) == "a number");
  CHECK(std::string(toml::name(Value::Kind::kBoolean)) == "true or false");
  CHECK(std::string(toml::name(Value::Kind::kDate)) == "a date");
  CHECK(std::string(toml::name(Value::Kind::kArray)) == "an array");
  CHECK(std::string(toml::name(Value::Kind::kTable)) == "a table");
}

TEST_CASE("what is not TOML is refused with its line") {
  CHECK(complaint("a = 1\nb") == "t:2: expected '=' after a key, found the end of the file");
  CHECK(complaint("b\n") == "t:1: expected '=' after a key, found the end of the line");
  CHECK(complaint("b c = 1\n") == "t:1: expected '=' after a key, found 'c = 1'");
  CHECK(complaint("= 1") == "t:1: expected a key, found '='");
  CHECK(complaint("a.") == "t:1: expected a key, found the end of the file");
  CHECK(complaint("\"\"\"a\"\"\" = 1") == "t:1: a key cannot be a string of several lines");
  CHECK(complaint("a =\n") == "t:1: expected a value, found the end of the line");
  CHECK(complaint("a =") == "t:1: expected a value, found the end of the file");
  CHECK(complaint("a = ,") == "t:1: expected a value, found ','");
  CHECK(complaint("a = é") == "t:1: expected a value, found 'é'");
  CHECK(complaint("é = 1") == "t:1: expected a key, found 'é'");
  CHECK(complaint("a = 1 2") == "t:1: expected the end of the line, found '2'");
  CHECK(complaint("a = 1 b = 2\n") == "t:1: expected the end of the line, found 'b = 2'");
  CHECK(complaint("a = yes") == "t:1: 'yes' is no value: a text stands in quotes, others are numbers, true and false");
  CHECK(complaint("a = \"x") == "t:1: a string is not closed");
  CHECK(complaint("a = 'x") == "t:1: a string is not closed");
  CHECK(complaint("a = \"x\n\"") == "t:1: a string is not closed on its line");
  CHECK(complaint("a = 'x\n'") == "t:1: a string is not closed on its line");
  CHECK(complaint("a = \"\"\"x\n\n") == "t:3: a string is not closed");
  CHECK(complaint("a = \"\x01\"") == "t:1: a control character in a string: write it as \\u0000");
  CHECK(complaint("a = '\x01'") == "t:1: a control character in a string");
  CHECK(complaint("# \x01") == "t:1: a control character in a comment");
  CHECK(complaint(R"(a = "\x41")") == "t:1: an unknown escape in a string: a backslash itself is written \\\\");
  CHECK(complaint("a = \"\\\n\"") == "t:1: an unknown escape in a string: a backslash itself is written \\\\");
  CHECK(complaint(R"(a = "\u12")") == "t:1: expected 4 hexadecimal digits after \\u or \\U");
  CHECK(complaint(R"(a = "\U0011000")") == "t:1: expected 8 hexadecimal digits after \\u or \\U");
  CHECK(complaint(R"(a = "\ud800")") == "t:1: an escape that is no character of Unicode");
  CHECK(complaint(R"(a = "\U00110000")") == "t:1: an escape that is no character of Unicode");
  CHECK(complaint("a = 1\nb = '\xFF'") == "t:2: not UTF-8, as TOML must be");
  for (const char* wrong :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    CHECK(complaint("# " + std::string(wrong)) == "t:1: not UTF-8, as TOML must be");
  }
  CHECK(complaint("a = [1 2]") == "t:1: expected ',' between the values of an array, found '2]'");
  CHECK(complaint("a = {b = 1 c = 2}") ==
        "t:1: expected ',' between the values of an inline table, which stands on one line, found 'c = 2}'");
  CHECK(complaint("a = {b = 1,}") == "t:1: expected a key, found '}'");
  CHECK(complaint("[a") == "t:1: expected ']' at the end of a table's name, found the end of the file");
  CHECK(complaint("[[a]") == "t:1: expected ']]' at the end of a table's name, found ']'");
  CHECK(complaint("[]") == "t:1: expected a key, found ']'");
}

TEST_CASE("numbers and dates that are none are refused") {
  const std::string kNoValue = "' is no value: a text stands in quotes, others are numbers, true and false";
  CHECK(complaint("a = 012") == "t:1: a number with zeros in front: take them away");
  CHECK(complaint("a = 01.5") == "t:1: a number with zeros in front: take them away");
  CHECK(complaint("a = 9223372036854775808") == "t:1: a number beyond 64 bits: '9223372036854775808'");
  CHECK(complaint("a = 0xFFFFFFFFFFFFFFFF") == "t:1: a number beyond 64 bits: 'FFFFFFFFFFFFFFFF'");
  CHECK(complaint("a = 1e999") == "t:1: a number that no double holds: '1e999'");
  for (const char* wrong : {"1__0",
                            "_1",
                            "1_",
                            "+0x1",
                            "0xG",
                            "0b2",
                            "0o8",
                            "0x",
                            "1.",
                            ".5",
                            "1.e3",
                            "1e",
                            "1e_3",
                            "1._5",
                            "--1",
                            "+",
                            "-",
                            "True",
                            "nanx",
                            "1979-13-01",
                            "1979-05-27T25:00:00",
                            "1979-05-27T",
                            "07:32",
                            "07:32:00.",
                            "1979-05-27T07:32:00+25:00",
                            "1979-05-27T07:32:00X",
                            "1e5.5"}) {
    CHECK(complaint("a = " + std::string(wrong)) == "t:1: '" + std::string(wrong) + kNoValue);
  }
}

TEST_CASE("a key that is there twice is refused with the line of the first") {
  CHECK(complaint("a = 1\na = 2") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("a.b = 1\n'a'.\"b\" = 2") == "t:2: 'a.b' is there twice: first in line 1");
  CHECK(complaint("[a]\n[a]") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("[a.b]\n[a]\n[a]") == "t:3: 'a' is there twice: first in line 2");
  CHECK(complaint("[a]\nb = 1\n[a.b]") == "t:3: 'a.b' is there twice: first in line 2");
  CHECK(complaint("a.b = 1\n[a]") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("[[a]]\n[a]") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("[a]\n[[a]]") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("a = []\n[[a]]") == "t:2: 'a' is there twice: first in line 1");
  CHECK(complaint("a = {b = 1, b = 2}") == "t:1: 'b' is there twice: first in line 1");
}

TEST_CASE("nothing is added to what is complete") {
  CHECK(complaint("a = {}\n[a.b]") == "t:2: 'a' is a table of line 1, to which nothing can be added");
  CHECK(complaint("a = 1\n[a.b]") == "t:2: 'a' is a whole number of line 1, to which nothing can be added");
  CHECK(complaint("a = 1\na.b = 2") == "t:2: 'a' is a whole number of line 1, to which nothing can be added here");
  CHECK(complaint("a = {}\na.b = 2") == "t:2: 'a' is a table of line 1, to which nothing can be added here");
  CHECK(complaint("[a.b.c]\n[a]\nb.c.d = 1") == "t:3: 'b' is a table of line 1, to which nothing can be added here");
  CHECK(complaint("[a]\nb.c = 1\n[a.b.d]\ne = 1") == "no complaint");
}

TEST_CASE("what is too large or too deep is refused") {
  CHECK(complaint(std::string(toml::kMostBytes + 1, ' ')) == "t: is larger than 1 MiB: no configuration is");
  CHECK(complaint(std::string(toml::kMostBytes, ' ')) == "no complaint");
  const auto repeat = [](const std::string& text, int times) {
    std::string result;
    for (int index = 0; index < times; ++index) result += text;
    return result;
  };
  const std::string deep = "t:1: nested deeper than 32 levels";
  CHECK(complaint("a = " + repeat("[", 100000)) == deep);
  CHECK(complaint("a = " + repeat("{b=", 100000)) == deep);
  CHECK(complaint(repeat("a.", 100000) + "a = 1") == deep);
  CHECK(complaint("[" + repeat("a.", 100000) + "a]") == deep);
  CHECK(complaint("a = " + repeat("[", 31) + repeat("]", 31)) == "no complaint");
  CHECK(complaint("[" + repeat("a.", 20) + "a]\nb = " + repeat("[", 20)) == "t:2: nested deeper than 32 levels");
  std::string chain;  // Arrays of tables in each other.
  for (int index = 1; index <= 40; ++index) chain += "[[" + repeat("a.", index - 1) + "a]]\n";
  CHECK(complaint(chain) == "t:17: nested deeper than 32 levels");
}

TEST_CASE("a file that cannot be read is refused") {
  const TemporaryFolder folder;
  CHECK(message_of<InvalidArgument>([&] { toml::parse_file(folder.path); }) ==
        folder.path.string() + " is a folder: give the TOML file in it");
  CHECK(message_of<InvalidArgument>([] { toml::parse_file("/nowhere/x.toml"); }) ==
        "cannot read /nowhere/x.toml: expected a TOML file that describes a job");
  CHECK(toml::parse_file(folder.write("x.toml", "a = 1")).find("a")->integer == 1);
}

TEST_CASE("hostile texts end in a tree or in a FormatError, never otherwise") {
  std::mt19937 random(20261116);
  const std::string seed = kWhole;
  const std::string letters = "[]{}=.,\"'\\#\n\r\t _-+0123456789eExobu:TZ\x01\x7f\xC3\xA9\xFF";
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed.substr(random() % seed.size(), random() % 200);
    for (unsigned edits = random() % 6; edits > 0 && !text.empty(); --edits) {
      const std::size_t place = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          text[place] = letter;
          break;
        case 1:
          text.insert(place, 1 + random() % 3, letter);
          break;
        default:
          text.erase(place, 1 + random() % 4);
      }
    }
    try {
      toml::parse(text, "t");
      ++read;
    } catch (const FormatError&) {
      ++refused;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

}  // namespace test_toml
