// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "doubles/fake_world.hpp"
#include "ports/event_loop.hpp"
#include "ports/gpu.hpp"
#include "ports/ledger_store.hpp"
#include "ports/report.hpp"
#include "ports/units.hpp"

namespace apusched::doubles {

/// An event loop whose time and events are the test's.
class FakeLoop final : public ports::EventLoop {
 public:
  std::unique_ptr<ports::Subscription> watch_readable(int fd, Callback callback) override {
    return subscribe(watches_, fd, std::move(callback));
  }
  std::unique_ptr<ports::Subscription> after(std::chrono::microseconds delay,
                                             Callback callback) override {
    return subscribe(timers_, now_ + delay, std::move(callback));
  }
  void defer(Callback callback) override { deferred_.push_back(std::move(callback)); }
  std::unique_ptr<ports::Subscription> watch_child(int, std::function<void(int)>) override {
    return nullptr;
  }
  std::chrono::steady_clock::time_point now() const override { return now_; }

  /// Runs what was deferred, also what that defers.
  void settle() {
    while (!deferred_.empty()) {
      const auto callback = std::move(deferred_.front());
      deferred_.pop_front();
      callback();
    }
  }
  void advance(std::chrono::milliseconds by) {
    const auto end = now_ + by;
    for (settle(); !timers_.empty() && timers_.begin()->first <= end; settle()) {
      now_ = std::max(now_, timers_.begin()->first);
      fire(timers_, timers_.begin());
    }
    now_ = end;
  }
  void become_readable(int fd) {
    if (const auto found = watches_.find(fd); found != watches_.end()) {
      const auto callback = *found->second;
      callback();
    }
    settle();
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }
  [[nodiscard]] std::size_t watches() const { return watches_.size(); }

 private:
  template <typename Key>
  using Table = std::multimap<Key, std::shared_ptr<Callback>>;
  template <typename Key>
  class Entry final : public ports::Subscription {
   public:
    Entry(Table<Key>& table, std::shared_ptr<Callback> mine)
        : table_(table), mine_(std::move(mine)) {}
    ~Entry() override {
      std::erase_if(table_, [&](const auto& item) { return item.second == mine_; });
    }

   private:
    Table<Key>& table_;
    std::shared_ptr<Callback> mine_;
  };
  template <typename Key>
  std::unique_ptr<ports::Subscription> subscribe(Table<Key>& table, Key key, Callback callback) {
    auto shared = std::make_shared<Callback>(std::move(callback));
    table.emplace(key, shared);
    return std::make_unique<Entry<Key>>(table, shared);
  }
  template <typename Key>
  void fire(Table<Key>& table, typename Table<Key>::iterator which) {
    const auto callback = which->second;
    table.erase(which);
    (*callback)();
  }

  std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  Table<std::chrono::steady_clock::time_point> timers_;
  Table<int> watches_;
  std::deque<Callback> deferred_;
};

class FakeStore final : public ports::LedgerStore {
 public:
  explicit FakeStore(FakeWorld& world) : world_(world) {}
  core::Result<core::Ledger> load() override { return ledger; }
  core::Result<void> put(const core::ResourceKey& key, const core::LedgerEntry& entry) override {
    return put_all({{key, entry}});
  }
  core::Result<void> put_all(
      const std::vector<std::pair<core::ResourceKey, core::LedgerEntry>>& records) override {
    if (fails)
      return core::fail(core::ErrorCode::failed, "write", "ledger", "No space left on device");
    for (const auto& [key, entry] : records) {
      auto record = entry;
      record.holders.clear();
      ledger.adopt(key, record);
      world_.log.push_back("put " + std::string(core::to_string(key.kind)) + " " + key.id);
    }
    return {};
  }
  core::Result<void> erase(const std::vector<core::ResourceKey>& keys) override {
    for (const auto& key : keys) ledger.forget(key);
    return {};
  }
  core::Ledger ledger;
  bool fails = false;

 private:
  FakeWorld& world_;
};

/// Answers wait until the test lets them go, or come at once where `at_once`.
class Answers {
 public:
  bool at_once = true;
  void give(std::function<void()> answer) {
    if (at_once)
      answer();
    else
      waiting_.push_back(std::move(answer));
  }
  void let_go() {
    while (!waiting_.empty()) {
      const auto answer = std::move(waiting_.front());
      waiting_.pop_front();
      answer();
    }
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  std::deque<std::function<void()>> waiting_;
};

class FakeUnits final : public ports::Units {
 public:
  void find(core::Pid, FactsCallback done) override { read("llama.service", std::move(done)); }
  void read(const std::string& unit, FactsCallback done) override {
    answers.give([this, unit, done] {
      if (absent)
        return done(core::fail(core::ErrorCode::unsupported, "find unit", "", "no systemd"));
      if (!is_slice(unit)) return done(facts);
      done(ports::UnitFacts{unit, slices[unit], {}, false});
    });
  }
  void set_weight(const std::string& unit, core::LeverKind kind, core::Weight weight,
                  DoneCallback done) override {
    answers.give([this, unit, kind, weight, done] {
      if (is_slice(unit))
        slices[unit] = weight;
      else
        (kind == core::LeverKind::cpu_weight ? facts.cpu_weight : facts.io_weight) = weight;
      drop_ins.insert({unit, kind});
      done({});
    });
  }
  bool has_drop_in(const std::string& unit, core::LeverKind kind) override {
    return drop_ins.contains({unit, kind});
  }
  core::Result<void> remove_drop_in(const std::string& unit, core::LeverKind kind) override {
    drop_ins.erase({unit, kind});
    return {};
  }
  static bool is_slice(const std::string& unit) { return unit.ends_with(".slice"); }
  ports::UnitFacts facts{"llama.service", {}, {}, false};
  std::map<std::string, core::Weight> slices;
  std::set<std::pair<std::string, core::LeverKind>> drop_ins;
  bool absent = false;
  Answers answers;
};

class FakeTopology final : public ports::GpuTopology {
 public:
  std::vector<ports::GpuFacts> discover(std::string& why_none) override {
    if (gpus.empty()) why_none = "no amdkfd";
    return gpus;
  }
  bool present(std::uint32_t) override { return !gone; }
  std::vector<std::uint32_t> queue_gpu_ids(core::Pid pid) override {
    return queues.contains(pid.value()) ? std::vector<std::uint32_t>{7}
                                        : std::vector<std::uint32_t>{};
  }
  std::uint32_t queue_count(std::uint32_t) override {
    return static_cast<std::uint32_t>(queues.size());
  }
  std::vector<ports::GpuFacts> gpus{
      {*core::PciAddress::parse("0000:04:00.0"), "gfx1035", "APU", 12, 7, 8, true}};
  std::set<int> queues;  ///< pids with a queue
  bool gone = false;
};

class FakeLevels final : public ports::LevelWriter {
 public:
  void read(const core::PciAddress&, Callback done) override {
    answers.give([this, done] {
      if (read_error) return done(tl::unexpected(*read_error));
      done(ports::LevelReading{level});
    });
  }
  void write(const core::PciAddress& gpu, core::PerformanceLevel wanted,
             core::PerformanceLevel expected, Callback done) override {
    answers.give([this, gpu, wanted, expected, done] {
      if (error) return done(tl::unexpected(*error));
      if (level != wanted && level != expected)
        return done(core::fail(core::ErrorCode::contended, "write level of", gpu.text(),
                               "somebody set it"));
      level = wanted;
      ++writes;
      done(ports::LevelReading{level});
    });
  }
  core::PerformanceLevel level = core::PerformanceLevel::automatic;
  std::optional<core::Error> error;  ///< of writing
  std::optional<core::Error> read_error;
  int writes = 0;
  Answers answers;
};

/// What the test sees of a helper; outlives the helper itself.
struct HelperLog {
  ports::ProbeMode mode = ports::ProbeMode::off;
  ports::GpuHelper::Events* events = nullptr;
  ports::HelperState state = ports::HelperState::absent;
  std::string reason;
  int telemetry_requests = 0;
};

class FakeHelper final : public ports::GpuHelper {
 public:
  explicit FakeHelper(HelperLog& log) : log_(log) {}
  void set_events(Events* events) override { log_.events = events; }
  void set_mode(ports::ProbeMode mode, const core::ProbeSettings&) override { log_.mode = mode; }
  void request_telemetry() override { ++log_.telemetry_requests; }
  ports::HelperState state() const override { return log_.state; }
  std::string reason() const override { return log_.reason; }

 private:
  HelperLog& log_;
};

class RecordingReport final : public ports::Report {
 public:
  void registered(core::RegistrationId, const core::ProcessKey&, std::string_view) override {}
  void released(core::RegistrationId, std::string_view) override {}
  void lever(core::RegistrationId, const core::LeverStatus&) override {}
  void restored(const std::string& resource, std::string_view value) override {
    lines.push_back(resource + " restored to " + std::string(value));
  }
  void degraded(std::string_view, std::string_view) override { ++degraded_count; }
  void recovered(std::string_view) override {}
  void warning(std::string_view text) override { warnings.emplace_back(text); }
  void control(core::Pid, core::Latency, const core::ControlEvent& event) override {
    events.push_back(event);
  }
  std::vector<core::ControlEvent> events;
  void info(std::string_view text) override { lines.emplace_back(text); }
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
  int degraded_count = 0;
};

}  // namespace apusched::doubles
