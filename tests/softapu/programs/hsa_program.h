// SPDX-License-Identifier: MIT
// A small layer over the HSA runtime for the test programs of the software APU: agents, kernels
// from a file, queues, packets, bounded waits. Errors end the program with a sentence and status 1.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace apusched::softapu {

// Prints what failed, with the runtime's words for `status`, and exits with 1.
void require(hsa_status_t status, const char* what);
[[noreturn]] void give_up(const std::string& sentence);

// A signal for completions, owned.
class Signal {
 public:
  explicit Signal(hsa_signal_value_t value = 1);
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  [[nodiscard]] hsa_signal_t get() const { return signal_; }
  void set(hsa_signal_value_t value) const { hsa_signal_store_screlease(signal_, value); }
  [[nodiscard]] hsa_signal_value_t value() const { return hsa_signal_load_scacquire(signal_); }
  // False: still not below 1 after `limit`.
  [[nodiscard]] bool wait(hsa_wait_state_t how,
                          std::chrono::nanoseconds limit = std::chrono::seconds{30}) const;

 private:
  hsa_signal_t signal_{};
};

struct Kernel {
  std::uint64_t object = 0;
};

// The runtime, its CPU and first GPU agent. One per process.
class Gpu {
 public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  [[nodiscard]] hsa_agent_t agent() const { return gpu_; }
  [[nodiscard]] hsa_agent_t cpu() const { return cpu_; }
  [[nodiscard]] std::string name() const;  // gfx1035
  // Loads kernels-<gfx>.hsaco from `directory` (empty: beside the executable, or in ../programs).
  void load_kernels(const std::string& directory = {});
  [[nodiscard]] Kernel kernel(const std::string& name) const;
  // Memory both can reach.
  [[nodiscard]] void* allocate(std::size_t bytes) const;
  void release(void* memory) const;

 private:
  hsa_agent_t cpu_{}, gpu_{};
  hsa_amd_memory_pool_t pool_{};
  std::optional<hsa_executable_t> executable_;
};

struct Dispatch {
  Kernel kernel;
  std::uint32_t workgroups = 1;
  std::uint16_t workgroup_size = 64;
  void* arguments = nullptr;
  bool barrier = true;  // wait for the packets before
};

// One producer or many (HSA_QUEUE_TYPE_MULTI); owned.
class Queue {
 public:
  explicit Queue(const Gpu& gpu, std::uint32_t packets = 256, bool profiling = false);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  [[nodiscard]] hsa_queue_t* get() const { return queue_; }
  // Waits for room, at most 30 s. `done` null: nobody is told.
  void dispatch(const Dispatch& what, const Signal* done) const;
  void barrier_and(const Signal* dependency, const Signal* done, bool barrier = true) const;
  void barrier_or(const Signal* first, const Signal* second, const Signal* done) const;
  // Any packet; `first_word` is stored last (header, setup).
  void submit(const void* packet, std::uint32_t first_word) const;

 private:
  hsa_queue_t* queue_ = nullptr;
};

struct DeviceTimes {
  std::chrono::nanoseconds start{}, end{};
};
// Of a completed dispatch on a queue with profiling.
[[nodiscard]] DeviceTimes device_times(const Gpu& gpu, const Signal& signal);

// Now, on the time line of device_times().
[[nodiscard]] std::chrono::nanoseconds system_time();

[[nodiscard]] std::string executable_directory();

}  // namespace apusched::softapu
