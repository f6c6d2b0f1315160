#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/fsdp/checkpoint/stored_tensor.h"

/// What ranks tell each other when state is saved or loaded. All ranks of the default group take part in each call
/// here; without a group the process is alone, and is rank 0.
namespace plimsoll::fsdp {

bool is_main_rank();
int rank_of_state();   ///< 0 without a group.
int ranks_of_state();  ///< 1 without a group.

/// The whole tensor on rank 0, on the CPU, in memory of its own; an undefined one elsewhere. No rank holds more than
/// this one whole tensor at a time. REQUIRES: called for the same tensors in the same order on all ranks.
at::Tensor gather(const StateTensor& entry);

/// Writes this rank's part of the whole tensor that rank 0 has into the state. As bounded as gather().
void distribute(const StateTensor& entry, const at::Tensor& whole);

/// Rank 0's text on all ranks.
std::string from_main_rank(std::string text, std::string_view doing);

/// Throws on all ranks, with the name and the message of the first that has a defect, where any has.
void fail_together(std::string_view doing, const std::optional<std::string>& defect);

/// Throws on all ranks unless they have the same tensors in the same order: else a gather would wait for ever.
void require_same_names(std::string_view doing, const State& state);

/// What `work` throws, to be told to the other ranks; but a failed collective goes on: there is nobody to tell it to.
template <class Work>
std::optional<std::string> defect_of(Work work) {
  try {
    work();
  } catch (const c10::DistBackendError&) {
    throw;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace plimsoll::fsdp
