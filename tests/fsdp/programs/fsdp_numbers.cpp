// One rank of training under FSDP over gloo, for each case on standard input; prints its values as one JSON object.
// test_fsdp_numbers.py compares it with Python's FSDP2 (tests/python/programs/fsdp_numbers.py). The rank, the world
// size and the store's address come from torchrun's variables. `--values` prints the numbers beside their checksums.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "fsdp/training.h"
#include "plimsoll/distributed/collectives.h"
#include "programs/programs.h"

namespace fsdp_numbers {

namespace {

using namespace plimsoll;
using Json = nlohmann::ordered_json;
using scenarios::Case;

bool values = false;

/// zlib's crc32.
std::uint32_t crc32(const unsigned char* data, std::size_t size) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xEDB88320U ^ (value >> 1) : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t sum = 0xFFFFFFFFU;
  for (std::size_t i = 0; i < size; ++i) sum = table[(sum ^ data[i]) & 0xFF] ^ (sum >> 8);
  return sum ^ 0xFFFFFFFFU;
}

/// A checksum of a tensor's bytes; null for an undefined tensor.
Json print_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  const auto data = tensor.detach().contiguous().reshape({-1});
  char text[9];
  const auto sum = crc32(static_cast<const unsigned char*>(data.const_data_ptr()), data.nbytes());
  std::snprintf(text, sizeof text, "%08x", sum);
  if (!values) return text;
  const auto doubles = data.to(at::kDouble);
  return {text,
          std::vector<double>(doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel())};
}

/// The whole tensor of which this rank has a shard.
at::Tensor full(const at::Tensor& shard, at::IntArrayRef sizes, const scenarios::Placement& placement) {
  if (!shard.defined() || !placement.group) return shard;
  const std::int64_t ranks = placement.group->getSize();
  const std::int64_t length = (sizes[placement.dim] + ranks - 1) / ranks;
  auto padded_sizes = sizes.vec();
  padded_sizes[placement.dim] = length;
  auto padded = at::zeros(padded_sizes, shard.options());
  if (shard.numel() > 0) padded.narrow(placement.dim, 0, shard.size(placement.dim)).copy_(shard);
  padded_sizes.insert(padded_sizes.begin(), ranks);
  auto all = at::empty(padded_sizes, shard.options());
  distributed::all_gather_single(all.view({-1}), padded.view({-1}), placement.group);
  return at::cat(all.unbind(0), placement.dim).narrow(placement.dim, 0, sizes[placement.dim]);
}

template <class Training>
Json run(Training& training, const Case& c) {
  Json found;
  const auto see = [&](int step, const std::vector<at::Tensor>& losses) {
    Json of_losses = Json::array(), of_gradients = Json::array(), wholes = Json::object();
    for (const auto& loss : losses) of_losses.push_back(print_of(loss));
    found["losses"].push_back(of_losses);
    const bool last = step + 1 == c.number("steps", 10);
    for (const auto& [name, parameter] : training.parameters()) {
      of_gradients.push_back(print_of(parameter.grad()));
      if (last) wholes[name] = print_of(full(parameter.grad(), training.sizes(name), training.placement(name)));
    }
    found["gradients"].push_back(of_gradients);
    if (last) found["full_gradients"] = wholes;
  };
  training.run(distributed::get_rank(), see);
  for (const auto& [name, parameter] : training.parameters()) {
    found["shapes"][name] = parameter.sizes().vec();
    found["full_parameters"][name] = print_of(full(parameter.detach(), training.sizes(name), training.placement(name)));
  }
  return found;
}

}  // namespace

int run_program(int argc, char** argv) {
  values = argc > 1 && std::string(argv[1]) == "--values";
  std::string line;
  try {
    at::set_num_threads(1);
    distributed::init_process_group({.backend = "gloo"});
    Json all = Json::object();
    while (std::getline(std::cin, line)) {
      const Case c(line);
      all[line] = scenarios::with_training(
          c, at::kCPU, [](const std::string&) {}, [&](auto training) { return run(*training, c); });
      distributed::barrier(distributed::default_group());
    }
    distributed::destroy_process_group();
    std::cout << all.dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "fsdp_numbers: " << line << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}

const programs::Program program("fsdp_numbers", &run_program);

}  // namespace fsdp_numbers
