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
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/errors.h"
#include "plimsoll/job/job_json.h"
#include "plimsoll/plan/run_job.h"
#include "plimsoll/report/plan_report_read.h"

namespace plimsoll::plan {
namespace {

using Json = nlohmann::ordered_json;

/// Cards to try, one after the other, where memory runs out on the job's own.
constexpr std::array<Bytes, 2> kLargerCards = {Bytes{2} << 40, Bytes{24} << 40};

struct Request {
  std::int64_t id = 0;
  job::Job job;
  std::string profile;
  Wanted wanted = {};
};

Request parse_request(const std::string& line) {
  const auto json = Json::parse(line);
  Request request{.id = json.at("id").get<std::int64_t>(),
                  .job = job::job_from_json(json.at("job").dump(), "request"),
                  .profile = json.at("profile").get<std::string>()};
  request.wanted.depth = json.at("depth").get<int>();
  if (!json.at("log").is_null()) request.wanted.log = json.at("log").get<std::string>();
  if (!json.at("snapshot").is_null()) request.wanted.snapshot = json.at("snapshot").get<std::string>();
  return request;
}

std::string failure(const std::string& message, bool usage) {
  return Json{{"error", message}, {"usage", usage}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The answer of a job without its id, as the fields of an object.
std::string answer(const Request& request) {
  try {
    const auto report = run_job(request.job, request.wanted);
    return R"({"report":)" + report::to_json(report, report::JsonForm::kOneLine) + "}";
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

/// What a process must know before it first touches CUDA.
void set_card(const Request& request, std::optional<Bytes> memory) {
  setenv("PLIMSOLL_GPU_PROFILE", request.profile.c_str(), 1);
  setenv("PLIMSOLL_GPUS", "1", 1);
  if (!memory) memory = request.job.gpu_memory;
  if (memory) {
    setenv("PLIMSOLL_GPU_MEMORY", std::to_string(*memory).c_str(), 1);
  } else {
    unsetenv("PLIMSOLL_GPU_MEMORY");
  }
  // The same job is the same plan, whoever asks.
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
  Request request;
  std::size_t attempt = 0;                ///< How many cards were too small.
  std::optional<Json> first_report = {};  ///< Of the job's own card, where that was too small.
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
    // What libraries print must not be taken for an answer.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    set_card(child.request, child.attempt == 0 ? std::nullopt : std::optional(kLargerCards[child.attempt - 1]));
    int code = 0;
    try {
      write_all(ends[1], answer(child.request));
    } catch (const std::exception&) {
      code = 1;
    }
    std::_Exit(code);  // Nothing is left to do, and taking a large model apart takes time.
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
        running_.push_back({.request = std::move(waiting_.front())});
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
      waiting_.push_back(parse_request(input_.substr(0, end)));
      input_.erase(0, end + 1);
    }
  }

  void finish(std::list<Child>::iterator child) {
    close(child->pipe);
    int status = 0;
    while (waitpid(child->process, &status, 0) < 0 && errno == EINTR) {
    }
    auto result = Json::parse(child->text, nullptr, /*allow_exceptions=*/false);
    if (status != 0 || result.is_discarded()) result = Json::parse(failure(how_it_died(status), /*usage=*/false));
    if (is_too_small(result) && child->attempt < kLargerCards.size()) {
      if (!child->first_report) child->first_report = std::move(result["report"]);
      ++child->attempt;
      start(*child);
      return;
    }
    if (child->first_report && result.contains("report")) {
      auto& report = result["report"];
      for (const char* field : {"fits", "gpu", "oom", "alloc_retries"}) report[field] = (*child->first_report)[field];
    }
    Json line{{"id", child->request.id}};
    line.update(result);
    write_all(options_.output, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    running_.erase(child);
  }

  static bool is_too_small(const Json& result) {
    return result.contains("report") && !result["report"]["oom"].is_null();
  }

  WorkerOptions options_;
  std::string input_;
  bool input_ended_ = false;
  std::deque<Request> waiting_;
  std::list<Child> running_;
};

}  // namespace

int serve(const WorkerOptions& options) { return Worker(options).run(); }

}  // namespace plimsoll::plan
