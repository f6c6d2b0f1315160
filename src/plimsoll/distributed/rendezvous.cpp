#include "plimsoll/distributed/rendezvous.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace plimsoll::distributed {
namespace {

std::optional<std::string> variable_of_environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text ? std::optional<std::string>(text) : std::nullopt;
}

}  // namespace

std::optional<int> number_of_environment(const char* variable) {
  const auto text = variable_of_environment(variable);
  if (!text) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  TORCH_CHECK_VALUE(error == std::errc() && end == text->data() + text->size(), "The environment variable ", variable,
                    " must be a whole number, but is '", *text, "'.");
  return number;
}

int given_or_environment(std::optional<int> given, const char* what, const char* variable) {
  const auto number = given ? given : number_of_environment(variable);
  TORCH_CHECK_VALUE(number.has_value(), "init_process_group: missing ", what, ". Set InitOptions::", what,
                    ", or start the program with torchrun, which sets ", variable, ".");
  return *number;
}

// Mirrors _env_rendezvous_handler and _create_c10d_store of torch/distributed/rendezvous.py (torch 2.13).
c10::intrusive_ptr<c10d::Store> environment_store(int rank, int world_size, std::chrono::milliseconds timeout) {
  const auto host = variable_of_environment("MASTER_ADDR");
  const auto port = number_of_environment("MASTER_PORT");
  TORCH_CHECK_VALUE(
      host && port,
      "init_process_group: the ranks have no address to connect to: ", host ? "MASTER_PORT" : "MASTER_ADDR",
      " is not set. Start the program with torchrun, or set MASTER_ADDR and MASTER_PORT to a host and a free "
      "port of rank 0's, or give a store in InitOptions::store.");
  TORCH_CHECK_VALUE(*port >= 0 && *port < 65536,
                    "The environment variable MASTER_PORT must be from 0 to 65535, but is ", *port, ".");
  const bool hosted_by_agent = variable_of_environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(*port);
  options.isServer = rank == 0 && !hosted_by_agent;
  options.numWorkers = world_size;
  options.timeout = timeout;
  options.multiTenant = !hosted_by_agent;
  options.useLibUV = variable_of_environment("USE_LIBUV").value_or("1") == "1";
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(*host, options);
    store->setTimeout(timeout);
    return store;
  } catch (const c10::Error& error) {
    TORCH_CHECK_WITH(DistBackendError, false, "init_process_group: rank ", rank, " of ", world_size,
                     " could not connect to the others at ", *host, ":", *port, " within ", timeout.count(),
                     " ms: ", error.what_without_backtrace());
  }
}

}  // namespace plimsoll::distributed
