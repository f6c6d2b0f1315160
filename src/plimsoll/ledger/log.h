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

/// The values of the last event. Equal values are not written again, and ids are written as distances.
struct LogContext {
  AllocationId id{};
  DeviceId device{};
  StreamId stream{};
  CategoryId category{};
  OwnerId owner{};
};

/// Every event of a ledger, in order: Ledger::record_to. An event takes a few bytes, see bench/ledger.cpp. NOT
/// thread-safe.
class Log {
 public:
  Log() = default;
  /// Takes the data() of another log, for example from a file. Throws FormatError with the place if the data are not
  /// valid.
  explicit Log(std::vector<std::uint8_t> data);

  void append(const Event& event);

  /// Without events of kind kNamed.
  std::uint64_t events() const { return events_; }
  std::span<const std::uint8_t> data() const { return data_; }

 private:
  std::vector<std::uint8_t> data_;
  std::uint64_t events_ = 0;
  LogContext context_;
};

/// Reads the events of a log one by one.
class LogReader {
 public:
  /// Does not copy `data`.
  explicit LogReader(std::span<const std::uint8_t> data);

  /// Returns false at the end. `event.name` points into the log. Throws FormatError for data that a ledger cannot
  /// write: an unknown kind of event, an id before its name, a name twice, too many names, a cut-off event.
  bool next(Event& event);
  const LogContext& context() const { return context_; }

 private:
  std::uint8_t byte();
  std::uint64_t varint();
  std::int64_t signed_varint();
  void read_named(Event& event);
  /// Reads an index below the number of names of that kind.
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

/// Returns a ledger with the same books: balances, peaks with their contents, defects. Retained peaks are not restored.
/// `on_left` is called for each module that is left, with the peaks from Ledger::left.
Ledger replay(const Log& log, const Ledger::Options& options = {},
              const std::function<void(const Ledger&, const ModulePeaks&)>& on_left = {});

}  // namespace plimsoll::ledger
