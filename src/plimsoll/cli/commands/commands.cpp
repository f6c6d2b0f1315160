#include "plimsoll/cli/commands/commands.h"

#include <ostream>

#include "plimsoll/base/errors.h"
#include "plimsoll/cli/planner.h"
#include "plimsoll/pretend/model/profile.h"

namespace plimsoll::cli {
namespace {

constexpr int kExitOfBugs = 70;  ///< In `run`, whose exit code is else the script's.

struct Dispatch {
  const Streams& streams;
  const Installation installation = find_installation();
  const StartPlanning start = [this](std::size_t processes) -> std::unique_ptr<Planning> {
    return std::make_unique<Planner>(find_planner(installation), processes);
  };

  int operator()(const Answer& answer) const {
    (answer.exit_code == 0 ? streams.out : streams.err) << answer.text;
    return answer.exit_code;
  }
  int operator()(const RunOptions& options) const { return run_command(options, installation, streams); }
  int operator()(const PlanOptions& options) const { return plan_command(options, installation, start, streams); }
  int operator()(const ExplainOptions& options) const { return explain_command(options, installation, start, streams); }
  int operator()(const FitOptions& options) const { return fit_command(options, installation, start, streams); }
  int operator()(const SweepOptions& options) const { return sweep_command(options, installation, start, streams); }
  int operator()(const CompareOptions& options) const { return compare_command(options, streams); }
  int operator()(const ModelsOptions& options) const { return models_command(options, streams); }
  int operator()(const GpusOptions&) const { return gpus_command(installation, streams); }
};

}  // namespace

int gpus_command(const Installation& installation, const Streams& streams) {
  report::Table table({{"name"},
                       {"memory", report::Align::kRight},
                       {"compute capability", report::Align::kRight},
                       {"SMs", report::Align::kRight},
                       {"reported as"}});
  for (const std::string& name : pretend::profile_names(installation.profiles())) {
    const pretend::Profile profile = pretend::find_profile(name, installation.profiles());
    table.add({profile.name, format_bytes(profile.memory),
               std::to_string(profile.compute_major) + "." + std::to_string(profile.compute_minor),
               std::to_string(profile.multiprocessors), profile.device_name});
  }
  if (table.empty()) throw InvalidArgument("no GPU profiles in " + installation.profiles().string());
  streams.out << table.render("") << "\nEach is a file with its sources in " << installation.profiles().string()
              << "; --gpu takes a file of your own too.\n";
  return 0;
}

int plimsoll_main(const std::vector<std::string>& arguments, const Streams& streams) {
  bool is_run = false;
  const auto said = [&](const std::string& message, int exit_code) {
    streams.err << "plimsoll: " << message << "\n";
    return exit_code;
  };
  try {
    const Command command = parse_command_line(arguments, version());
    is_run = std::holds_alternative<RunOptions>(command);
    const int exit_code = std::visit(Dispatch{.streams = streams}, command);
    // A full disk behind a redirection must not pass for an answer.
    if (!is_run && !streams.out.flush()) return said("cannot write to standard output", kExitFailed);
    return exit_code;
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const InternalError& error) {
    return said(std::string("a bug in plimsoll: ") + error.what(), is_run ? kExitOfBugs : kExitFailed);
  } catch (const InvalidArgument& error) {
    return said(error.what(), kExitBadUsage);
  } catch (const FormatError& error) {
    return said(error.what(), kExitBadUsage);
  } catch (const std::exception& error) {
    return said(error.what(), is_run ? kExitBadUsage : kExitFailed);
  }
}

}  // namespace plimsoll::cli
