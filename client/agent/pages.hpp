// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "agent/abi.hpp"

namespace apusched::agent {

/// Memory of a memfd that somebody else has made, mapped. Children of fork() do not get it.
class SharedPage {
 public:
  SharedPage() = default;
  ~SharedPage() { unmap(); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  /// False where it could ever be shorter than `bytes`: then an access would be a SIGBUS in the
  /// host program. `descriptor` stays the caller's and may be closed afterwards.
  [[nodiscard]] bool map(int descriptor, std::size_t bytes, bool writable) noexcept;
  void unmap() noexcept;
  [[nodiscard]] bool is_mapped() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] void* memory() const noexcept { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A copy that was not being written; nothing where the writer does not get done, which is then no
/// reason to wait for it.
[[nodiscard]] std::optional<agent_abi::Control> read_control(const void* page) noexcept;

/// `telemetry.sequence` is what the page gets; the first `bytes` are written, a multiple of 8.
void write_telemetry(void* page, const agent_abi::Telemetry& telemetry, std::size_t bytes) noexcept;

}  // namespace apusched::agent
