#include "plimsoll/plan/worker.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/job/worker_protocol.h"
#include "plimsoll/plan/run_job.h"
#include "plimsoll/report/verdict.h"

namespace plimsoll::plan {
namespace {

/// Cards to try, one after the other, where memory runs out on the job's own.
constexpr std::array<Bytes, 2> kLargerCards = {Bytes{2} << 40, Bytes{24} << 40};

using job::NumberedOutcome;
using job::NumberedRequest;
using job::PlanOutcome;
using job::PlanRequest;

PlanOutcome failure(const std::string& message, bool usage) { return {.report = {}, .error = message, .usage = usage}; }

PlanOutcome outcome_of(const PlanRequest& request) {
  try {
    return {.report = run_job(request)};
  } catch (const InternalError& error) {
    return failure(std::string("a bug in plimsoll: ") + error.what(), /*usage=*/false);
  } catch (const InvalidArgument& error) {
    return failure(error.what(), /*usage=*/true);
  } catch (const FormatError& error) {
    return failure(error.what(), /*usage=*/true);
  } catch (const c10::Error& error) {
    return failure(error.what_without_backtrace(), /*usage=*/false);
  } catch (const std::exception& error) {
    return failure(error.what(), /*usage=*/false);
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw SystemError("cannot write an answer");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Sets the environment that a process needs before it first touches CUDA.
void set_card(const PlanRequest& request, std::optional<Bytes> memory) {
  setenv("PLIMSOLL_GPU_PROFILE", request.profile.c_str(), 1);
  setenv("PLIMSOLL_GPUS", "1", 1);
  if (!memory) memory = request.job.gpu_memory;
  if (memory) {
    setenv("PLIMSOLL_GPU_MEMORY", std::to_string(*memory).c_str(), 1);
  } else {
    unsetenv("PLIMSOLL_GPU_MEMORY");
  }
  // The same job must give the same plan in every environment.
  for (const char* name :
       {"CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "PYTORCH_NO_CUDA_MEMORY_CACHING", "PLIMSOLL_EVENT_LAG"}) {
    unsetenv(name);
  }
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (request.job.alloc_conf) {
      setenv(name, request.job.alloc_conf->c_str(), 1);
    } else {
      unsetenv(name);
    }
  }
}

/// A job that runs in a process of its own.
struct Child {
  NumberedRequest numbered;
  std::size_t attempt = 0;                          ///< Number of cards that were too small.
  std::optional<report::Report> first_report = {};  ///< On the job's own card, if that card was too small.
  pid_t process = 0;
  int pipe = -1;
  std::string text = {};
};

void start(Child& child) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw SystemError("cannot make a pipe");
  child.process = fork();
  if (child.process < 0) throw SystemError("cannot start a process");
  if (child.process == 0) {
    // The output of libraries must not mix with answers.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    set_card(child.numbered.request,
             child.attempt == 0 ? std::nullopt : std::optional(kLargerCards[child.attempt - 1]));
    int code = 0;
    try {
      write_all(ends[1], job::to_line(NumberedOutcome{child.numbered.id, outcome_of(child.numbered.request)}));
    } catch (const std::exception&) {
      code = 1;
    }
    std::_Exit(code);  // Destroying a large model takes time.
  }
  close(ends[1]);
  child.pipe = ends[0];
  child.text.clear();
}

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "the process that ran the job was ended by signal " + std::to_string(signal) + " (" + strsignal(signal) +
           ")" + (signal == SIGKILL ? ": the machine may have too little memory" : "");
  }
  return "the process that ran the job ended with exit code " + std::to_string(WEXITSTATUS(status));
}

class Worker {
 public:
  explicit Worker(const WorkerOptions& options) : options_(options) {}

  int run() {
    while (!input_ended_ || !waiting_.empty() || !running_.empty()) {
      while (!waiting_.empty() && running_.size() < options_.parallel) {
        running_.push_back({.numbered = std::move(waiting_.front())});
        waiting_.pop_front();
        start(running_.back());
      }
      wait();
    }
    return 0;
  }

 private:
  void wait() {
    std::vector<pollfd> polled;
    for (const auto& child : running_) polled.push_back({child.pipe, POLLIN, 0});
    if (!input_ended_) polled.push_back({options_.input, POLLIN, 0});
    if (polled.empty() || (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR)) return;
    std::size_t index = 0;
    for (auto child = running_.begin(); child != running_.end(); ++index) {
      const auto current = child++;
      if (polled[index].revents != 0 && read_some(current->pipe, current->text) == 0) finish(current);
    }
    if (!input_ended_ && polled.back().revents != 0) read_requests();
  }

  static ssize_t read_some(int descriptor, std::string& text) {
    std::array<char, 65536> buffer;
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return 1;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    return count < 0 ? 0 : count;
  }

  void read_requests() {
    if (read_some(options_.input, input_) == 0) input_ended_ = true;
    for (auto end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      waiting_.push_back(job::parse_request(input_.substr(0, end)));
      input_.erase(0, end + 1);
    }
  }

  void finish(std::list<Child>::iterator child) {
    close(child->pipe);
    int status = 0;
    while (waitpid(child->process, &status, 0) < 0 && errno == EINTR) {
    }
    PlanOutcome outcome = status == 0 ? read_outcome(child->text) : failure(how_it_died(status), /*usage=*/false);
    if (outcome.report && outcome.report->oom && child->attempt < kLargerCards.size()) {
      if (!child->first_report) child->first_report = std::move(outcome.report);
      ++child->attempt;
      start(*child);
      return;
    }
    if (child->first_report && outcome.report) put_over(*child->first_report, *outcome.report);
    write_all(options_.output, job::to_line(NumberedOutcome{child->numbered.id, std::move(outcome)}));
    running_.erase(child);
  }

  static PlanOutcome read_outcome(const std::string& text) {
    try {
      return job::parse_outcome(text).outcome;
    } catch (const FormatError& error) {
      return failure(std::string("a bug in plimsoll: ") + error.what(), /*usage=*/false);
    }
  }

  /// The events on the job's own card are the answer; the memory is that of the larger card.
  static void put_over(const report::Report& first, report::Report& report) {
    report.gpu = first.gpu;
    report.oom = first.oom;
    report.alloc_retries = first.alloc_retries;
    report.verdict = report::verdict_of(report);
  }

  WorkerOptions options_;
  std::string input_;
  bool input_ended_ = false;
  std::deque<NumberedRequest> waiting_;
  std::list<Child> running_;
};

}  // namespace

int serve(const WorkerOptions& options) { return Worker(options).run(); }

}  // namespace plimsoll::plan
