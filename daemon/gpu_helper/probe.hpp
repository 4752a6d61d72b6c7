// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::gpu_helper {

/// The HSA runtime and one probe queue on one GPU, open from construction to destruction: while
/// this lives, amdkfd has a queue of ours and the GPU may not power down (gfx11, gfx12).
/// Not thread-safe. Every wait is bounded.
class Probe {
 public:
  /// `unsupported` when the runtime knows no agent at that PCI address, `failed` otherwise.
  [[nodiscard]] static core::Result<std::unique_ptr<Probe>> open(const core::PciAddress& gpu);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  struct Outcome {
    bool lost = false;
    std::chrono::nanoseconds latency{0};               ///< steady clock, before header to wake-up
    std::optional<std::chrono::nanoseconds> device{};  ///< ROCr's timestamps, where sane
  };
  /// One packet and its completion, waited for at most `deadline`.
  /// Nothing while an earlier packet that missed its deadline is still in flight.
  [[nodiscard]] std::optional<Outcome> sample(core::ProbeSource source,
                                              std::chrono::nanoseconds deadline);

  /// Since when a lost packet is in flight; nothing when none is.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> stuck_since();
  /// Set by the runtime's own threads: hardware exception, memory fault or queue error.
  [[nodiscard]] bool faulted() const;

  [[nodiscard]] bool has_kernel() const;
  /// Why there is no kernel source; empty when there is one.
  [[nodiscard]] const std::string& kernel_problem() const;

 private:
  struct State;
  explicit Probe(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace apusched::gpu_helper
