#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/ledger/event.h"
#include "plimsoll/ledger/ids.h"
#include "plimsoll/ledger/ledger.h"

namespace plimsoll::ledger {

/// What stays the same from one event to the next is not written again, and ids are written as distances.
struct LogContext {
  AllocationId id{};
  DeviceId device{};
  StreamId stream{};
  CategoryId category{};
  OwnerId owner{};
};

/// Every event of a ledger, in order: Ledger::record_to. A few bytes each, see bench/ledger.cpp.
/// NOT thread-safe, like the ledger that writes it.
class Log {
 public:
  Log() = default;
  /// Takes over what another log's data() were, from a file for example.
  /// Throws FormatError that says what is wrong, and where, when it is not that.
  explicit Log(std::vector<std::uint8_t> data);

  void append(const Event& event);

  /// Without those of kind kNamed.
  std::uint64_t events() const { return events_; }
  std::span<const std::uint8_t> data() const { return data_; }

 private:
  std::vector<std::uint8_t> data_;
  std::uint64_t events_ = 0;
  LogContext context_;
};

/// Reads a log event by event.
class LogReader {
 public:
  /// `data` is not copied.
  explicit LogReader(std::span<const std::uint8_t> data);

  /// False at the end. `event.name` points into the log.
  /// Throws FormatError for what no ledger can have written: an unknown kind of event, an id before its name, a name
  /// twice or too many of them, an event that is cut off.
  bool next(Event& event);
  const LogContext& context() const { return context_; }

 private:
  std::uint8_t byte();
  std::uint64_t varint();
  std::int64_t signed_varint();
  void read_named(Event& event);
  /// An index below the number of names of that kind.
  std::uint64_t index(NameKind kind);
  Bytes bytes(std::uint8_t flags);
  void read_allocated(Event& event, std::uint8_t flags);
  [[noreturn]] void fail(const std::string& why) const;

  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
  std::size_t event_at_ = 0;
  LogContext context_;
  Names names_;
};

/// A ledger with the same books: balances, peaks with their contents, defects. What was retained is not.
/// `on_left` hears of every module that is left, with the peaks that Ledger::left gave.
Ledger replay(const Log& log, const Ledger::Options& options = {},
              const std::function<void(const Ledger&, const ModulePeaks&)>& on_left = {});

}  // namespace plimsoll::ledger
