// SPDX-License-Identifier: MIT
// A word in memory that the client writes too, as the client does it.
#pragma once

#include <atomic>

namespace apusched::softapu {

template <class T>
std::atomic_ref<T> atomic_at(volatile T* address) {
  return std::atomic_ref<T>(*const_cast<T*>(address));  // NOLINT: shared with the client
}

}  // namespace apusched::softapu
