// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <set>

#include "ports/meters.hpp"

namespace apusched::doubles {

/// Threads whose times a test moves on.
class FakeMeters final : public ports::Meters {
 public:
  core::Result<std::unique_ptr<ports::ThreadMeter>> open(core::Pid, core::Tid tid) override {
    ++opened;
    return std::make_unique<Meter>(*this, tid);
  }
  core::Result<std::vector<ThreadRan>> threads(core::Pid pid, std::uint32_t limit) override {
    ++listed;
    std::vector<ThreadRan> result;
    for (const auto tid : members[pid])
      if (result.size() < limit) result.push_back({tid, times[tid].ran});
    return result;
  }
  core::Result<std::chrono::nanoseconds> process(core::Pid pid) override {
    ++clocks;
    std::chrono::nanoseconds total{0};
    for (const auto tid : members[pid]) total += times[tid].ran;
    return total;
  }
  core::Result<ports::MachineTimes> machine() override {
    ++machine_reads;
    if (machine_fails)
      return core::fail(core::ErrorCode::unsupported, "read", "/proc/stat", "it is not mounted");
    return machine_times;
  }

  void add(int pid, int tid) {
    members[*core::Pid::make(pid)].insert(*core::Tid::make(tid));
    times[*core::Tid::make(tid)];
  }
  /// A thread works: so many slices, each after a wait.
  void work(int tid, std::uint64_t slices, std::chrono::nanoseconds wait,
            std::chrono::nanoseconds run = std::chrono::microseconds(100)) {
    auto& t = times[*core::Tid::make(tid)];
    t.slices += slices;
    t.waited += wait * slices;
    t.ran += run * slices;
    machine_times.busy += run * slices;
  }
  /// The clock of the machine: two CPUs, of which others use a share.
  void pass(std::chrono::nanoseconds time, double others) {
    machine_times.all += 2 * time;
    machine_times.busy += std::chrono::nanoseconds(
        static_cast<std::int64_t>(others * 2 * static_cast<double>(time.count())));
  }

  std::map<core::Pid, std::set<core::Tid>> members;
  std::map<core::Tid, ports::ThreadTimes> times;
  std::set<core::Tid> ended;
  ports::MachineTimes machine_times;
  bool machine_fails = false;
  int machine_reads = 0;
  int opened = 0;
  int reads = 0;
  int clocks = 0;  ///< times the CPU time of a process was read
  int listed = 0;  ///< times the threads of a process were listed

 private:
  class Meter final : public ports::ThreadMeter {
   public:
    Meter(FakeMeters& world, core::Tid tid) : world_(world), tid_(tid) {}
    core::Result<ports::ThreadTimes> read() override {
      ++world_.reads;
      if (world_.ended.contains(tid_))
        return core::fail(core::ErrorCode::gone, "read", core::to_string(tid_), "ended");
      return world_.times.at(tid_);
    }

   private:
    FakeMeters& world_;
    core::Tid tid_;
  };
};

}  // namespace apusched::doubles
