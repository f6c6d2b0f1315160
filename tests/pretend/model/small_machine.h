#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/pretend/model/machine.h"

namespace plimsoll::pretend {

using namespace plimsoll::literals;

/// A card with 1 GiB and a context of 10 MiB.
inline Profile small_profile() {
  Profile profile;
  profile.name = "small";
  profile.device_name = "Small";
  profile.memory = 1_GiB;
  profile.context = 10_MiB;
  profile.threads_per_multiprocessor = 2048;
  profile.blocks_per_multiprocessor = 32;
  profile.shared_per_multiprocessor = 228_KiB;
  return profile;
}

/// A kernel launch, to put on a stream.
inline Event launch(const char* name) {
  Event event;
  event.kind = Happening::kLaunch;
  event.name = name;
  return event;
}

}  // namespace plimsoll::pretend
