#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <type_traits>
#include <vector>

/// Real ranks for tests: processes that run one function each and connect through a file.
///
///   on_ranks(4, [](const Rank& rank) {
///     init_process_group({.backend = "gloo", .store = rank.store(), .rank = rank.rank, .world_size = rank.size});
///     CHECK(...);  // doctest's assertions work; failures are reported with the rank.
///   });
///
/// The ranks are forked from a process that was itself forked before the first test, when torch had no threads. So they
/// do not see state that tests changed, and the function's captures are copied as bytes: numbers and pointers to
/// constants, not strings or tensors.
namespace ranks {

struct Rank {
  int rank;
  int size;
  const char* file;  ///< Of the store: new, and removed at the end.
  int report;        ///< File descriptor for defects.

  c10::intrusive_ptr<c10d::Store> store() const { return c10::make_intrusive<c10d::FileStore>(file, size); }

  /// Ends the process like a crash; the test expects it.
  [[noreturn]] void die() const {
    (void)!write(report, "", 1);
    raise(SIGKILL);
    std::abort();
  }
};

namespace detail {

constexpr std::size_t kMostCaptured = 256;
constexpr std::chrono::seconds kPatience{60};  ///< A rank that takes longer hangs.

struct Order {
  void (*run)(const void* captured, const Rank& rank);
  alignas(16) std::array<char, kMostCaptured> captured;
  int size;
  std::array<char, 128> file;
};

inline std::string& defects() {
  static std::string defects;
  return defects;
}

inline void note_assertion(const doctest::AssertData& data) {
  if (!data.m_failed) {
    return;
  }
  std::string text = std::string(data.m_file) + ":" + std::to_string(data.m_line) + ": " +
                     doctest::assertString(data.m_at) + "( " + data.m_expr + " )";
  if (data.m_threw) {
    text += " threw " + std::string(data.m_exception.c_str());
  } else if (data.m_decomp.size() > 0) {
    text += " is " + std::string(data.m_decomp.c_str());
  }
  defects() += (defects().empty() ? "" : "\n  ") + text;
  if (data.m_at & doctest::assertType::is_require) {
    throw std::runtime_error("stopped at a REQUIRE");
  }
}

[[noreturn]] inline void be_rank(const Order& order, const Rank& rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler(note_assertion);
  doctest::is_running_in_test = false;  // Assertions go to the handler.
  try {
    order.run(order.captured.data(), rank);
  } catch (const std::exception& error) {
    defects() += (defects().empty() ? "" : "\n  ") + std::string("threw: ") + error.what();
  }
  defects().push_back('\0');  // The report is complete.
  (void)!write(rank.report, defects().data(), defects().size());
  for (;;) {
    pause();  // Until all have reported: others may still be connecting to this one.
  }
}

struct Child {
  pid_t process;
  int pipe;
  std::string report = {};
};

/// The defects of the ranks, one per line; empty without defects.
inline std::string run(const Order& order) {
  std::vector<Child> children;
  for (int rank = 0; rank < order.size; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return "no pipe for a rank\n";
    }
    const pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      be_rank(order, {rank, order.size, order.file.data(), ends[1]});
    }
    close(ends[1]);
    children.push_back({process, ends[0]});
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string defects;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    Child& child = children[rank];
    for (bool open = true; open;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd wanted{child.pipe, POLLIN, 0};
      if (left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) == 0) {
        kill(child.process, SIGKILL);
        child.report = "hangs";
        break;
      }
      char bytes[4096];
      const ssize_t count = read(child.pipe, bytes, sizeof(bytes));
      child.report.append(bytes, count > 0 ? count : 0);
      open = count > 0 && child.report.back() != '\0';
    }
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    Child& child = children[rank];
    const bool whole = !child.report.empty() && child.report.back() == '\0';
    if (whole) {
      kill(child.process, SIGKILL);
      child.report.pop_back();
    }
    int status = 0;
    waitpid(child.process, &status, 0);
    close(child.pipe);
    if (!whole) {
      child.report += WIFSIGNALED(status) ? " ended by signal " + std::to_string(WTERMSIG(status))
                                          : " ended with status " + std::to_string(WEXITSTATUS(status));
    }
    if (!child.report.empty()) {
      defects += "rank " + std::to_string(rank) + " of " + std::to_string(order.size) + ": " + child.report + "\n";
    }
  }
  return defects;
}

/// The process from which ranks are forked. It runs orders until the tests have ended.
class Nursery {
 public:
  static Nursery& instance() {
    static Nursery nursery;
    return nursery;
  }

  Nursery() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("no socket pair for the ranks of tests");
    }
    if (fork() == 0) {
      close(ends[0]);
      serve(ends[1]);
    }
    close(ends[1]);
    socket_ = ends[0];
  }

  std::string run(const Order& order) const {
    std::string defects;
    if (send(socket_, &order, sizeof(order), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(order))) {
      return "the process that ranks are forked from has ended\n";
    }
    std::size_t size = 0;
    if (recv(socket_, &size, sizeof(size), MSG_WAITALL) != static_cast<ssize_t>(sizeof(size))) {
      return "the process that ranks are forked from has crashed\n";
    }
    defects.resize(size);
    if (size > 0 && recv(socket_, defects.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
      return "the process that ranks are forked from has crashed\n";
    }
    return defects;
  }

 private:
  [[noreturn]] static void serve(int socket) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Order order;
    while (recv(socket, &order, sizeof(order), MSG_WAITALL) == static_cast<ssize_t>(sizeof(order))) {
      const std::string defects = detail::run(order);
      const std::size_t size = defects.size();
      (void)!write(socket, &size, sizeof(size));
      (void)!write(socket, defects.data(), size);
    }
    _exit(0);
  }

  int socket_ = -1;
};

/// doctest calls a listener when the tests begin: the point to fork.
struct Listener : doctest::IReporter {
  explicit Listener(const doctest::ContextOptions&) {}
  void test_run_start() override { Nursery::instance(); }
  void report_query(const doctest::QueryData&) override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
inline const int kListens = doctest::registerReporter<Listener>("ranks", 0, false);

}  // namespace detail

/// Runs the function on that many ranks and returns the defects: one per line, each with its rank.
template <class Function>
std::string defects_on_ranks(int size, const Function& function) {
  static_assert(std::is_trivially_copyable_v<Function> && sizeof(Function) <= detail::kMostCaptured,
                "ranks are other processes: only numbers and pointers to constants can be captured");
  detail::Order order{};
  order.run = [](const void* captured, const Rank& rank) { (*static_cast<const Function*>(captured))(rank); };
  std::memcpy(order.captured.data(), &function, sizeof(function));
  order.size = size;
  std::string file = "/tmp/plimsoll_ranks_XXXXXX";
  close(mkstemp(file.data()));
  file.copy(order.file.data(), order.file.size() - 1);
  const std::string defects = detail::Nursery::instance().run(order);
  unlink(file.c_str());
  return defects;
}

/// The same; defects fail the test.
template <class Function>
void on_ranks(int size, const Function& function) {
  const std::string defects = defects_on_ranks(size, function);
  CHECK_MESSAGE(defects.empty(), defects);
}

}  // namespace ranks
