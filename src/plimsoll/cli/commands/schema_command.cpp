#include <ostream>

#include "plimsoll/cli/commands/commands.h"
#include "plimsoll/report/document.h"

namespace plimsoll::cli {
namespace {

CommandShape schema_shape() {
  return {.name = "schema",
          .about = "Prints the JSON Schema of the documents that --json writes.",
          .footer = "Example:\n  plimsoll schema > report.schema.json"};
}

int run_schema(const CommandWords&, const Context& context) {
  context.streams.out << report::document_schema();
  return kExitFits;
}

}  // namespace

Command schema_command() { return {schema_shape(), run_schema}; }

}  // namespace plimsoll::cli
