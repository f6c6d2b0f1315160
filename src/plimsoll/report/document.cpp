#include "plimsoll/report/document.h"

#include <nlohmann/json.hpp>

#include "plimsoll/report/fields.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::report {
namespace {

// Ordered: the fields of a document keep the order of fields.h.
using Json = nlohmann::ordered_json;

/// Whether `T` is an instance of the template: kIs<std::optional, std::optional<int>>.
template <template <class...> class Template, class T>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Parts>
inline constexpr bool kIs<Template, Template<Parts...>> = true;
template <class T>
inline constexpr bool kIsNamed = false;
template <class E, std::size_t N>
inline constexpr bool kIsNamed<Named<E, N>> = true;
/// A list that is an object in JSON: names and values.
template <class T>
inline constexpr bool kIsObject = std::is_same_v<T, std::vector<CategoryBytes>>;
template <class T>
inline constexpr bool kIsObject<std::vector<std::pair<std::string, T>>> = true;

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

// ---------------------------------------------------------------------------------------------------------- writing

template <class T>
Json json_of(const T& value);

class Writer {
 public:
  void type(const char*) {}
  void constant(const char* name, const Json& value) { json_[name] = value; }
  void derived(const char* name, const std::string& text) { json_[name] = text; }
  template <class T>
  void operator()(const char* name, const T& value) {
    json_[name] = json_of(value);
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

template <class T>
Json json_of(const T& value) {
  if constexpr (Plain<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, JobValue>) {
    return std::visit([](const auto& held) { return Json(held); }, value);
  } else if constexpr (kIs<std::optional, T>) {
    return value ? json_of(*value) : Json(nullptr);
  } else if constexpr (kIs<OrNull, T>) {
    return value.value.empty() ? Json(nullptr) : json_of(value.value);
  } else if constexpr (kIsNamed<T>) {
    return value.names.at(static_cast<std::size_t>(value.value));
  } else if constexpr (kIsObject<T>) {
    Json json = Json::object();
    constexpr bool kIsJob = std::is_same_v<T, JobValues>;
    for (const auto& [name, held] : value) json[kIsJob ? underscored(name) : name] = json_of(held);
    return json;
  } else if constexpr (kIs<AsList, T>) {
    Json json = Json::array();
    for (const auto& [name, bytes] : value.value) json.push_back({{"name", name}, {"bytes", bytes}});
    return json;
  } else if constexpr (kIs<std::vector, T>) {
    Json json = Json::array();
    for (const auto& entry : value) json.push_back(json_of(entry));
    return json;
  } else {
    Writer writer;
    describe(writer, value);
    return writer.take();
  }
}

std::string dumped(const Json& json, JsonForm form) {
  return json.dump(form == JsonForm::kOneLine ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---------------------------------------------------------------------------------------------------------- reading

template <class T>
void read(const JsonValue& from, T& value, ReadMode mode);

class Reader {
 public:
  Reader(const JsonValue& from, ReadMode mode) : from_(from), mode_(mode) {}

  void type(const char*) {}
  template <class T>
  void constant(const char*, const T&) {}
  void derived(const char*, const std::string&) {}
  template <class T>
  void operator()(const char* name, T&& value) {
    if (mode_ == ReadMode::kStrict) return read(from_[name], value, mode_);
    const std::optional<JsonValue> found = from_.find(name);
    if (found && !found->is_null()) read(*found, value, mode_);
  }

 private:
  const JsonValue& from_;
  ReadMode mode_;
};

void read_plain(const JsonValue& from, bool& value) { value = from.flag(); }
void read_plain(const JsonValue& from, Bytes& value) { value = from.whole(); }
void read_plain(const JsonValue& from, std::int64_t& value) { value = from.integer(); }
void read_plain(const JsonValue& from, double& value) { value = from.number(); }
void read_plain(const JsonValue& from, std::string& value) { value = from.text(); }
void read_plain(const JsonValue& from, JobValue& value) {
  const Json& json = from.json();
  if (json.is_null()) {
    value = nullptr;
  } else if (json.is_boolean()) {
    value = json.get<bool>();
  } else if (json.is_number_integer()) {
    value = from.integer();
  } else if (json.is_number()) {
    value = json.get<double>();
  } else if (json.is_string()) {
    value = json.get<std::string>();
  } else {
    from.mismatch("text, a number, true, false or null");
  }
}

template <class T>
void read(const JsonValue& from, T& value, ReadMode mode) {
  if constexpr (Plain<T> || std::is_same_v<T, JobValue>) {
    read_plain(from, value);
  } else if constexpr (kIs<std::optional, T>) {
    value.reset();
    if (!from.is_null()) read(from, value.emplace(), mode);
  } else if constexpr (kIs<OrNull, T>) {
    value.value.clear();
    if (!from.is_null()) read(from, value.value, mode);
  } else if constexpr (kIsNamed<T>) {
    const std::string name = from.text();
    for (std::size_t i = 0; i < value.names.size(); ++i) {
      if (name == value.names[i]) {
        value.value = static_cast<std::remove_reference_t<decltype(value.value)>>(i);
        return;
      }
    }
    from.mismatch("one of the names in the schema");
  } else if constexpr (kIsObject<T>) {
    value.clear();
    for (const std::string& name : from.names()) {
      auto& [key, held] = value.emplace_back();
      key = name;
      read(from[name.c_str()], held, mode);
    }
  } else if constexpr (kIs<AsList, T>) {
    for (std::size_t i = 0; i < from.length(); ++i) {
      const JsonValue entry = from.element(i);
      value.value.emplace_back(entry["name"].text(), entry["bytes"].whole());
    }
  } else if constexpr (kIs<std::vector, T>) {
    value.clear();
    for (std::size_t i = 0, length = from.length(); i < length; ++i) read(from.element(i), value.emplace_back(), mode);
  } else {
    Reader reader(from, mode);
    describe(reader, value);
  }
}

Report read_report(const JsonValue& document, bool is_run, ReadMode mode) {
  Report report;
  if (is_run) report.subject = ScriptRun{};
  read(document, report, mode);
  return report;
}

// ----------------------------------------------------------------------------------------------------------- schema

/// Makes the schema of a type: types with a name are definitions, and other schemas refer to them.
class Schema {
 public:
  explicit Schema(Json& definitions) : definitions_(definitions) {}

  void type(const char* name) { name_ = name; }
  void constant(const char* name, const Json& value) { properties_[name] = {{"const", value}}; }
  void derived(const char* name, const std::string& text) { properties_[name] = of(text); }
  template <class T>
  void operator()(const char* name, const T& value) {
    properties_[name] = of(value);
  }

  /// A reference to the definition of `value`'s type, which is added.
  template <class T>
  static Json define(const T& value, Json& definitions) {
    Schema schema(definitions);
    describe(schema, value);
    Json required = Json::array();
    for (const auto& [name, property] : schema.properties_.items()) required.push_back(name);
    definitions[schema.name_] = {{"type", "object"},
                                 {"properties", schema.properties_},
                                 {"required", required},
                                 {"additionalProperties", false}};
    return {{"$ref", std::string("#/$defs/") + schema.name_}};
  }

 private:
  static Json nullable(Json schema) {
    if (schema.contains("type") && schema["type"].is_string()) {
      schema["type"] = {schema["type"], "null"};
      return schema;
    }
    return {{"anyOf", {schema, {{"type", "null"}}}}};
  }

  template <class T>
  Json of(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_unsigned_v<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {{"type", "number"}};
    } else if constexpr (std::is_same_v<T, std::string>) {
      return {{"type", "string"}};
    } else if constexpr (std::is_same_v<T, JobValue>) {
      return {{"type", {"string", "integer", "number", "boolean", "null"}}};
    } else if constexpr (kIs<std::optional, T>) {
      return nullable(of(typename T::value_type{}));
    } else if constexpr (kIs<OrNull, T>) {
      return nullable(of(value.value));
    } else if constexpr (kIsNamed<T>) {
      return {{"enum", value.names}};
    } else if constexpr (kIsObject<T>) {
      const auto& [name, held] = typename T::value_type{};
      return {{"type", "object"}, {"additionalProperties", of(held)}};
    } else if constexpr (kIs<AsList, T>) {
      const Json item{{"type", "object"},
                      {"properties", {{"name", of(std::string())}, {"bytes", of(Bytes{})}}},
                      {"required", {"name", "bytes"}},
                      {"additionalProperties", false}};
      return {{"type", "array"}, {"items", item}};
    } else if constexpr (kIs<std::vector, T>) {
      return {{"type", "array"}, {"items", of(typename T::value_type{})}};
    } else {
      return define(value, definitions_);
    }
  }

  Json& definitions_;
  Json properties_ = Json::object();
  const char* name_ = "";
};

// -------------------------------------------------------------------------------------------------------------- CSV

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

/// The fields of a row; the settings of a job have a column each.
std::vector<std::pair<std::string, Json>> columns_of(const Json& row) {
  std::vector<std::pair<std::string, Json>> columns;
  for (const auto& [name, value] : row.items()) {
    if (value.is_object()) {
      for (const auto& [setting, held] : value.items()) columns.emplace_back(setting, held);
    } else {
      columns.emplace_back(name, value);
    }
  }
  return columns;
}

}  // namespace

std::string to_json(const Report& report, JsonForm form) { return dumped(json_of(report), form); }
std::string to_json(const Sweep& sweep, JsonForm form) { return dumped(json_of(sweep), form); }
std::string to_json(const Fit& fit, JsonForm form) { return dumped(json_of(fit), form); }
std::string to_json(const Comparison& comparison, JsonForm form) { return dumped(json_of(comparison), form); }
std::string to_json(const Explanation& explanation, JsonForm form) { return dumped(json_of(explanation), form); }

std::string to_json(const Attribution& attribution) {
  const Json peak{{"categories", json_of(attribution.categories)},
                  {"module", json_of(or_null(attribution.module))},
                  {"stage", json_of(or_null(attribution.stage))}};
  return dumped({{"peak", peak}, {"modules", json_of(attribution.modules)}, {"causes", json_of(attribution.causes)}},
                JsonForm::kOneLine);
}

std::string to_csv(const Sweep& sweep) {
  std::string titles;
  std::string text;
  const std::vector<SweepLine> lines = lines_of(sweep);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line;
    std::size_t column = 0;
    for (const auto& [name, value] : columns_of(json_of(lines[i]))) {
      const bool is_setting = column < sweep.axes.size();
      const std::string cell = is_setting          ? sweep.rows[i].values.at(column)
                               : value.is_null()   ? ""
                               : value.is_string() ? value.get<std::string>()
                                                   : value.dump();
      if (i == 0) titles += (column == 0 ? "" : ",") + quoted(name);
      line += (column++ == 0 ? "" : ",") + quoted(cell);
    }
    text += line + "\n";
  }
  return titles + "\n" + text;
}

Json json_of_report(const Report& report) { return json_of(report); }

Report report_from(const JsonValue& document) {
  const std::int64_t version = document["version"].integer();
  if (version != 1 && version != kDocumentVersion) document["version"].mismatch("1 or 2");
  // Version 1 of `run` had no field "command".
  const std::optional<JsonValue> command = document.find("command");
  if (!command && version != 1) document["command"].text();
  if (command && command->text() != "plan" && command->text() != "run") command->mismatch("\"plan\" or \"run\"");
  const bool is_run = !command || command->text() == "run";
  if (version == 1) {
    // It lacks fields of version 2, but not these.
    for (const char* needed : {"fits", "gpu", "peak", "steps"}) document[needed].json();
  }
  Report report = read_report(document, is_run, version == 1 ? ReadMode::kLenient : ReadMode::kStrict);
  const std::optional<bool> said = report.verdict.fits;
  report.verdict = verdict_of(report, report.verdict.reserve);
  // Version 1 said of a script that used no GPU that it fits.
  if ((version != 1 || !is_run) && said != report.verdict.fits) {
    document["fits"].fail(std::string("is ") + document["fits"].json().dump() +
                          ", but the other values of the document say otherwise");
  }
  return report;
}

Report report_from_json(std::string_view text, const std::string& origin) {
  const Json json = parse_document(text, origin);
  return report_from(JsonValue(json, origin));
}

Report report_record_from(const JsonValue& document) {
  if (document["version"].integer() != kDocumentVersion) document["version"].mismatch(std::to_string(kDocumentVersion));
  return read_report(document, /*is_run=*/true, ReadMode::kLenient);
}

std::string document_schema() {
  Json definitions = Json::object();
  Report run;
  run.subject = ScriptRun{};
  const auto define = [&](const auto& document) { return Schema::define(document, definitions); };
  const Json one_of{define(Report{}), define(run),          define(Sweep{}),
                    define(Fit{}),    define(Comparison{}), define(Explanation{})};
  return dumped(Json{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "plimsoll"},
                     {"description", "The JSON documents of plimsoll. Amounts of memory are in bytes."},
                     {"oneOf", one_of},
                     {"$defs", definitions}},
                JsonForm::kIndented);
}

}  // namespace plimsoll::report
