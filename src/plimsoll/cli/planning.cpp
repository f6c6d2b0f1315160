#include "plimsoll/cli/planning.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "plimsoll/base/errors.h"

namespace plimsoll::cli {

report::Report report_or_throw(PlanOutcome outcome) {
  if (outcome.report) return std::move(*outcome.report);
  if (outcome.usage) throw InvalidArgument(outcome.error);
  throw PlanningFailed(outcome.error);
}

namespace fs = std::filesystem;

fs::path find_planner(const Installation& installation) {
  const char* named = std::getenv("PLIMSOLL_PLANNER");
  if (named != nullptr && *named != '\0') {
    if (is_program(named)) return fs::absolute(named);
    throw PlanningFailed(
        fmt::format("PLIMSOLL_PLANNER is {}, which is not a program that can be run: unset it, or give the path of a "
                    "plimsoll-planner",
                    named));
  }
  const fs::path beside = installation.binary_folder / "plimsoll-planner";
  if (is_program(beside)) return beside;
  if (installation.is_package()) {
    throw PlanningFailed(fmt::format(
        "there is no {}, which runs the jobs: this package was built with a CPU build of torch. Planning needs a CUDA "
        "build, though no GPU: install one, and the package again",
        beside.string()));
  }
  throw PlanningFailed(fmt::format(
      "there is no {}, which runs the jobs: plimsoll was set up with a CPU build of torch, or the build is not "
      "complete. Planning needs a CUDA build of torch, though no GPU: remove {}/.plimsoll/venv, let pip find a CUDA "
      "build, and run ./plimsoll in {}, which sets up again",
      beside.string(), installation.home.string(), installation.home.string()));
}

Planner::Planner(const fs::path& program, std::size_t processes)
    : program_(program), worker_({program.string(), std::to_string(processes)}, signals_) {}

void Planner::send(std::string& outgoing, std::size_t& sent) {
  const ssize_t count =
      ::send(worker_.socket(), outgoing.data() + sent, outgoing.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) {
    sent += static_cast<std::size_t>(count);
  } else if (errno != EAGAIN && errno != EINTR) {
    sent = outgoing.size();  // It has closed its input. Its earlier answers can still be read.
  }
}

/// False at the end of the planner's output.
bool Planner::receive() {
  std::array<char, 65536> buffer;
  const ssize_t count = recv(worker_.socket(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count > 0) incoming_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

job::NumberedOutcome Planner::parse(const std::string& line) const {
  try {
    return job::parse_outcome(line);
  } catch (const FormatError& error) {
    throw PlanningFailed("the planner " + program_.string() + " gave an invalid answer: " + error.what());
  }
}

std::vector<PlanOutcome> Planner::run(const std::vector<PlanRequest>& requests, const OnDone& on_done) {
  const std::int64_t first_id = next_id_;
  next_id_ += static_cast<std::int64_t>(requests.size());
  std::string outgoing;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    outgoing += to_line(job::NumberedRequest{first_id + static_cast<std::int64_t>(i), requests[i]});
  }
  std::vector<PlanOutcome> outcomes(requests.size());
  std::vector<bool> answered(requests.size(), false);
  std::size_t waiting = requests.size();
  const auto take = [&](const std::string& line) {
    job::NumberedOutcome answer = parse(line);
    const std::int64_t index = answer.id - first_id;
    if (index < 0 || index >= static_cast<std::int64_t>(requests.size()) || answered[static_cast<std::size_t>(index)]) {
      throw PlanningFailed("the planner " + program_.string() + " answered a request that it did not get (id " +
                           std::to_string(answer.id) + "): is it of another version?");
    }
    const auto at = static_cast<std::size_t>(index);
    answered[at] = true;
    outcomes[at] = std::move(answer.outcome);
    --waiting;
    if (on_done) on_done(at, outcomes[at]);
  };

  std::size_t sent = 0;
  std::size_t searched = 0;  // The part of `incoming_` without an end of a line: answers can be long.
  while (waiting > 0) {
    // Send and receive at once: else each side could wait for the other to read.
    pollfd polled{worker_.socket(), static_cast<short>(POLLIN | (sent < outgoing.size() ? POLLOUT : 0)), 0};
    signals_.poll(polled);
    if ((polled.revents & POLLOUT) != 0) send(outgoing, sent);
    if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !receive()) {
      throw PlanningFailed("the planner " + program_.string() + " " + worker_.how_it_ended());
    }
    std::size_t begin = 0;
    for (std::size_t end = incoming_.find('\n', searched); end != std::string::npos;
         end = incoming_.find('\n', begin)) {
      take(incoming_.substr(begin, end - begin));
      begin = end + 1;
    }
    incoming_.erase(0, begin);
    searched = incoming_.size();
  }
  return outcomes;
}

}  // namespace plimsoll::cli
