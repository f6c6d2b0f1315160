#pragma once

namespace plimsoll::report {

/// How a document is laid out. Either way it ends with a line feed.
enum class JsonForm {
  kIndented,
  kOneLine,  ///< For a stream of documents, one a line.
};

}  // namespace plimsoll::report
