#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/fsdp/checkpoint/stored_tensor.h"

/// Communication between ranks while state is saved or loaded. All ranks of the default group take part in each call.
/// Without a group the process is rank 0 of 1.
namespace plimsoll::fsdp {

bool is_main_rank();
int own_rank();    ///< 0 without a group.
int rank_count();  ///< 1 without a group.

/// Returns the whole tensor on rank 0, in its own CPU memory; undefined on other ranks. No rank holds more than this
/// one whole tensor at a time. REQUIRES: called for the same tensors in the same order on all ranks.
at::Tensor gather(const StoredTensor& entry);

/// Writes this rank's part of rank 0's whole tensor into the state. Bounded like gather().
void distribute(const StoredTensor& entry, const at::Tensor& whole);

/// Broadcasts rank 0's text.
std::string from_main_rank(std::string text, std::string_view doing);

/// If any rank has a defect, throws on all ranks, with the first such rank's number and message.
void fail_together(std::string_view doing, const std::optional<std::string>& defect);

/// Throws on all ranks unless they have the same tensors in the same order: otherwise a gather would hang.
void require_same_names(std::string_view doing, const StoredTensors& state);

/// The message of an exception that `work` throws, for fail_together(). Rethrows a failed collective: the ranks cannot
/// communicate after it.
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
