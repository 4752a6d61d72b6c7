// SPDX-License-Identifier: MIT
// The packet processor of one AQL queue: takes packets in order, keeps the dispatches in flight,
// honours the barrier bit. No thread and no clock: step() does what can be done now.
// Not thread-safe; owned by the engine.
#pragma once

#include <hsa/amd_hsa_queue.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/state.h"
#include "queue/ports.h"

namespace apusched::softapu {

class PacketProcessor {
 public:
  struct Ring {
    std::byte* base = nullptr;     // packets * 64 bytes, the client's memory
    std::uint64_t packets = 0;     // power of two
    amd_queue_t* queue = nullptr;  // the client's memory
  };

  // All outlive the processor.
  PacketProcessor(Ring ring, std::size_t max_in_flight, Executor& executor, SignalPort& signals,
                  const KernelPort& kernels, QueueCounters& counters);

  // The doorbell was rung: packets below the present write index may be read. Obeys the doorbell,
  // not the index, so that a client which forgets to ring hangs as it would on hardware. True when
  // that are more packets than before.
  bool ring_doorbell();
  // True when anything changed: call again.
  bool step(Nanoseconds now);

  // Nothing in flight will end, nothing more is taken: the GPU was reset.
  void abandon();
  [[nodiscard]] bool in_flight() const { return !in_flight_.empty(); }
  // The next packet is a barrier whose signals only someone else can change.
  [[nodiscard]] bool waits_for_signal() const { return waits_for_signal_; }
  template <class Visitor>
  void for_each_run(Visitor visit) const {
    for (const InFlight& dispatch : in_flight_) visit(dispatch.run);
  }

 private:
  struct InFlight {
    RunIndex run;
    DispatchPacket packet;
    KernelWork work;
  };

  bool retire();
  bool take_next(Nanoseconds now);
  bool launch(const DispatchPacket& packet);
  bool dependencies_met(const std::uint64_t (&handles)[5], bool all);
  void release_slot();
  void complete(std::uint64_t signal, const RunTimes& times);
  void fail(QueueError error);

  Ring ring_;
  std::size_t max_in_flight_;
  Executor& executor_;
  SignalPort& signals_;
  const KernelPort& kernels_;
  QueueCounters& counters_;
  std::uint64_t next_ = 0;   // packet to take
  std::uint64_t limit_ = 0;  // packets below were announced
  std::vector<InFlight> in_flight_;
  bool waits_for_signal_ = false;
  bool failed_ = false;
};

}  // namespace apusched::softapu
