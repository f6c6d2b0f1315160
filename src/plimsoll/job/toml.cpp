#include "plimsoll/job/toml.h"

#include <fstream>
#include <utility>

#include "plimsoll/base/errors.h"
#include "plimsoll/job/toml_scanner.h"
#include "plimsoll/job/values.h"

namespace plimsoll::job::toml {
namespace {

using Kind = Value::Kind;
using Made = Value::Made;

/// A table, and how many others it lies in.
struct Place {
  Value* table;
  int depth;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : scanner_(text, origin) {}

  Value read() {
    Value root;
    root.line = 1;
    Place current{&root, 0};
    while (true) {
      scanner_.skip_empty_lines();
      if (scanner_.at_end()) return root;
      if (scanner_.peek() == '[') {
        current = header(root);
      } else {
        assignment(current);
      }
      scanner_.end_line();
    }
  }

 private:
  void refuse_depth(int depth) const {
    if (depth > kDeepest) scanner_.fail("nested deeper than " + std::to_string(kDeepest) + " levels");
  }

  static std::string joined(const std::vector<std::string>& key, std::size_t parts) {
    std::string text;
    for (std::size_t index = 0; index < parts; ++index) text += (index == 0 ? "" : ".") + key[index];
    return in_quotes(text);
  }

  Value& add(Value& table, const std::string& key, Kind kind, Made made) {
    auto value = std::make_unique<Value>();
    value->kind = kind;
    value->made = made;
    value->line = scanner_.line();
    return *(table.table[key] = std::move(value));
  }

  /// [a.b] or [[a.b]]: the table that follows.
  Place header(Value& root) {
    const bool is_array = scanner_.take("[[");
    if (!is_array) scanner_.take("[");
    const std::vector<std::string> key = scanner_.key();
    scanner_.expect(is_array ? "]]" : "]", "at the end of a table's name");
    Place place{&root, 0};
    for (std::size_t part = 0; part + 1 < key.size(); ++part) place = on_the_way(place, key, part);
    return is_array ? element(place, key) : table(place, key);
  }

  Place on_the_way(Place place, const std::vector<std::string>& key, std::size_t part) {
    refuse_depth(++place.depth);
    const auto found = place.table->table.find(key[part]);
    if (found == place.table->table.end()) {
      return {&add(*place.table, key[part], Kind::kTable, Made::kOnTheWay), place.depth};
    }
    Value* value = found->second.get();
    if (value->kind == Kind::kArray && value->made == Made::kByHeaders) {
      refuse_depth(++place.depth);
      value = &value->array.back();
    } else if (value->kind != Kind::kTable || value->made == Made::kAtOnce) {
      scanner_.fail(joined(key, part + 1) + " is " + name(value->kind) + " of line " + std::to_string(value->line) +
                    ", to which nothing can be added");
    }
    return {value, place.depth};
  }

  Place table(Place place, const std::vector<std::string>& key) {
    refuse_depth(++place.depth);
    const auto found = place.table->table.find(key.back());
    if (found == place.table->table.end()) {
      return {&add(*place.table, key.back(), Kind::kTable, Made::kByHeader), place.depth};
    }
    Value& value = *found->second;
    if (value.kind != Kind::kTable || value.made != Made::kOnTheWay) twice(key, value);
    value.made = Made::kByHeader;
    value.line = scanner_.line();
    return {&value, place.depth};
  }

  Place element(Place place, const std::vector<std::string>& key) {
    refuse_depth(place.depth += 2);
    const auto found = place.table->table.find(key.back());
    Value& array = found == place.table->table.end() ? add(*place.table, key.back(), Kind::kArray, Made::kByHeaders)
                                                     : *found->second;
    if (array.kind != Kind::kArray || array.made != Made::kByHeaders) twice(key, array);
    Value& last = array.array.emplace_back();
    last.made = Made::kByHeader;
    last.line = scanner_.line();
    return {&last, place.depth};
  }

  [[noreturn]] void twice(const std::vector<std::string>& key, const Value& first) const {
    scanner_.fail(joined(key, key.size()) + " is there twice: first in line " + std::to_string(first.line));
  }

  /// a.b = value
  void assignment(Place place) {
    const std::vector<std::string> key = scanner_.key();
    scanner_.expect("=", "after a key");
    for (std::size_t part = 0; part + 1 < key.size(); ++part) {
      refuse_depth(++place.depth);
      const auto found = place.table->table.find(key[part]);
      if (found == place.table->table.end()) {
        place.table = &add(*place.table, key[part], Kind::kTable, Made::kByDots);
      } else if (found->second->kind == Kind::kTable && found->second->made == Made::kByDots) {
        place.table = found->second.get();
      } else {
        scanner_.fail(joined(key, part + 1) + " is " + name(found->second->kind) + " of line " +
                      std::to_string(found->second->line) + ", to which nothing can be added here");
      }
    }
    const auto found = place.table->table.find(key.back());
    if (found != place.table->table.end()) twice(key, *found->second);
    scanner_.skip_blanks();
    place.table->table[key.back()] = std::make_unique<Value>(value(place.depth + 1));
  }

  Value value(int depth) {
    const int line = scanner_.line();
    if (scanner_.peek() == '[') return array(depth);
    if (scanner_.peek() == '{') return inline_table(depth);
    if (scanner_.peek() != '"' && scanner_.peek() != '\'') return scanner_.scalar();
    Value value;
    value.kind = Kind::kString;
    value.line = line;
    value.text = scanner_.string();
    return value;
  }

  Value array(int depth) {
    refuse_depth(depth);
    Value result;
    result.kind = Kind::kArray;
    result.line = scanner_.line();
    scanner_.take("[");
    while (true) {
      scanner_.skip_empty_lines();
      if (scanner_.take("]")) return result;
      result.array.push_back(value(depth + 1));
      scanner_.skip_empty_lines();
      if (scanner_.take("]")) return result;
      scanner_.expect(",", "between the values of an array");
    }
  }

  /// Nothing may be added to it later, nor to what it holds.
  Value inline_table(int depth) {
    refuse_depth(depth);
    Value result;
    result.line = scanner_.line();
    scanner_.take("{");
    scanner_.skip_blanks();
    if (scanner_.take("}")) return result;
    while (true) {
      assignment({&result, depth});
      scanner_.skip_blanks();
      if (scanner_.take("}")) return result;
      scanner_.expect(",", "between the values of an inline table, which stands on one line");
    }
  }

  Scanner scanner_;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto found = table.find(key);
  return found == table.end() ? nullptr : found->second.get();
}

const char* name(Value::Kind kind) {
  switch (kind) {
    case Kind::kString:
      return "a text";
    case Kind::kInteger:
      return "a whole number";
    case Kind::kFloat:
      return "a number";
    case Kind::kBoolean:
      return "true or false";
    case Kind::kDate:
      return "a date";
    case Kind::kArray:
      return "an array";
    case Kind::kTable:
      break;
  }
  return "a table";
}

Value parse(std::string_view text, const std::string& origin) { return Reader(text, origin).read(); }

Value parse_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InvalidArgument(path.string() + " is a folder: give the TOML file in it");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InvalidArgument("cannot read " + path.string() + ": expected a TOML file that describes a job");
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) throw InvalidArgument("cannot read " + path.string() + " to its end");
  return parse(text, path.string());
}

}  // namespace plimsoll::job::toml
