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
  CHECK(at(root, {"owner", "also"}).kind == Value::Kind::kDate);
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

TEST_CASE("a value has its kind and its content") {
  CHECK(one(R"("a\tb\u00e9\U0001F600")").text == "a\tb\xC3\xA9\xF0\x9F\x98\x80");
  CHECK(one("\"\"\"\nfirst\nsecond\"\"\"").text == "first\nsecond");
  CHECK(one("'C:\\x'").text == "C:\\x");
  CHECK(one("''").text.empty());
  CHECK(one("1_000_000").integer == 1000000);
  CHECK(one("0xDEAD_beef").integer == 0xDEADBEEF);
  CHECK(one("9223372036854775807").integer == INT64_MAX);
  CHECK(one("-9223372036854775808").integer == INT64_MIN);
  CHECK(one("-3e-2").real == -0.03);
  CHECK(one("1E5").kind == Value::Kind::kFloat);
  CHECK(one("-inf").real == -INFINITY);
  CHECK(std::isnan(one("+nan").real));
  CHECK(one("true").boolean);
}

TEST_CASE("a byte-order mark, Windows' line ends and a missing last line end are accepted") {
  CHECK(toml::parse("\xEF\xBB\xBF"
                    "a = 1\r\n[b]\r\n# c\r\nd = [1,\r\n2]",
                    "t")
            .find("b")
            ->find("d")
            ->array.size() == 2);
  CHECK(toml::parse("", "t").table.empty());
}

TEST_CASE("messages name a kind in plain words") {
  CHECK(std::string(toml::name(Value::Kind::kString)) == "a text");
  CHECK(std::string(toml::name(Value::Kind::kInteger)) == "a whole number");
  CHECK(std::string(toml::name(Value::Kind::kFloat)) == "a number");
  CHECK(std::string(toml::name(Value::Kind::kBoolean)) == "true or false");
  CHECK(std::string(toml::name(Value::Kind::kDate)) == "a date");
  CHECK(std::string(toml::name(Value::Kind::kArray)) == "an array");
  CHECK(std::string(toml::name(Value::Kind::kTable)) == "a table");
}

TEST_CASE("a text that is not TOML is refused with its line") {
  CHECK(complaint("a = 1\nb c = 2") == "t:2: not valid TOML: key-value pair: expected '=', saw 'c'");
  CHECK(complaint("a =") == "t:1: not valid TOML: key-value pair: encountered end-of-file");
  CHECK(complaint("a = yes") == "t:1: not valid TOML: value: could not determine value type; put text in quotes");
  CHECK(complaint("a = \"x") == "t:1: not valid TOML: string: encountered end-of-file");
  CHECK(complaint("a = [1 2]") == "t:1: not valid TOML: array: expected comma or closing ']', saw '2'");
  CHECK(complaint("a = 9223372036854775808") ==
        "t:1: not valid TOML: decimal integer: '9223372036854775808' is not representable in 64 bits");
  CHECK(complaint("a = 1\nb = '\xFF'") == "t:2: not valid TOML: Encountered invalid utf-8 sequence");
  CHECK(complaint("a = 1\nb = \xC3\xA9\n") == "t:2: a character beyond ASCII outside of quotes");
  CHECK(complaint("a = '\xC3\xA9' # \xC3\xA9") == "no complaint");
  for (const char* wrong : {"o=[}}} 1,", "[=", "d = 1979-05-27Te7:"}) {  // toml++ 3.3 has assertions for them.
    CHECK(complaint(std::string("a = 1\n\n") + wrong + "\n[b]\nc = 1") == "t:3: not valid TOML");
  }
  for (const char* wrong : {"[a", "[]", "# \x01", "a = 012", "a = 1e999", "a = 1__0", "a = True", "a = 1979-13-01"}) {
    CHECK_MESSAGE(complaint(wrong).starts_with("t:1: not valid TOML: "), wrong);
  }
}

TEST_CASE("a second value of a key is refused") {
  CHECK(complaint("a = 1\na = 2") == "t:2: not valid TOML: key-value pair: cannot redefine existing integer 'a'");
  for (const char* wrong : {"a.b = 1\n'a'.\"b\" = 2", "[a]\n[a]", "[a]\nb = 1\n[a.b]", "a.b = 1\n[a]", "[[a]]\n[a]",
                            "[a]\n[[a]]", "a = []\n[[a]]", "a = {}\n[a.b]", "a = 1\n[a.b]", "a = 1\na.b = 2"}) {
    CHECK_MESSAGE(complaint(wrong).starts_with("t:"), wrong);
  }
}

TEST_CASE("a text that is too large or too deep is refused") {
  CHECK(complaint(std::string(toml::kMostBytes + 1, ' ')) == "t: is larger than 1 MiB");
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
  CHECK(complaint("[" + repeat("a.", 20) + "a]\nb = " + repeat("[", 20) + repeat("]", 20)) ==
        "t:2: nested deeper than 32 levels");
  std::string chain;  // Arrays of tables in each other.
  for (int index = 1; index <= 40; ++index) chain += "[[" + repeat("a.", index - 1) + "a]]\n";
  CHECK(complaint(chain) == "t:17: nested deeper than 32 levels");
}

TEST_CASE("a file that cannot be read is refused") {
  const TemporaryFolder folder;
  CHECK(message_of<InvalidArgument>([&] { toml::parse_file(folder.path); }) ==
        folder.path.string() + " is a folder: give the TOML file in it");
  CHECK(message_of<InvalidArgument>([] { toml::parse_file("/nowhere/x.toml"); }) ==
        "no such file: /nowhere/x.toml: expected a TOML file that describes a job");
  CHECK(toml::parse_file(folder.write("x.toml", "a = 1")).find("a")->integer == 1);
}

TEST_CASE("hostile text gives a tree or a FormatError") {
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
