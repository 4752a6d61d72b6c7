// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/agent_watch.hpp"
#include "app/background_energy.hpp"
#include "app/control_loop.hpp"
#include "app/cpu_latency.hpp"
#include "app/gpu_control.hpp"
#include "app/gpu_watch.hpp"
#include "app/hold_back.hpp"
#include "app/ledger_book.hpp"
#include "app/level_control.hpp"
#include "app/lever_backends.hpp"
#include "app/neighbours.hpp"
#include "app/registration.hpp"
#include "app/shared_lever.hpp"
#include "app/thread_lever.hpp"
#include "app/timer_slack_value.hpp"
#include "app/views.hpp"
#include "core/admission.hpp"
#include "core/config.hpp"
#include "core/launch_environment.hpp"

namespace apusched::app {

/// Everything the application needs from outside. All borrowed; must outlive the Service.
struct Ports {
  ports::ProcessSource& processes;
  ports::Scheduler& scheduler;
  ports::Units& units;
  ports::GpuTopology& topology;
  ports::LevelWriter& levels;
  ports::LedgerStore& store;
  ports::EventLoop& loop;
  ports::Report& report;
  GpuWatch::HelperFactory make_helper;
  ports::AgentHub* agents = nullptr;           ///< null: agents are off
  ports::Meters* meters = nullptr;             ///< null: nothing is controlled
  ports::ControlLog* control_log = nullptr;    ///< null: nothing is recorded
  ports::PowerSource* power = nullptr;         ///< null: power is never to be saved
  ports::IdleLatency* idle_latency = nullptr;  ///< null: idle states are left alone
  ports::Freezer* freezer = nullptr;           ///< null: nothing is frozen
  ports::CpuEnergy* cpu_energy = nullptr;      ///< null: energy preferences are left alone
};

/// Hears of changes; called after the state has changed.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_added(core::RegistrationId id) = 0;
  virtual void on_removed(core::RegistrationId id) = 0;
  virtual void on_changed(core::RegistrationId id) = 0;
  virtual void on_gpu_changed(const core::PciAddress& gpu) = 0;
  virtual void on_state_changed() = 0;
};

struct RegisterRequest {
  std::unique_ptr<ports::ProcessHandle> process;
  std::string profile;
  std::optional<bool> include_children;
  std::string source;
  bool expects_agent = false;  ///< it was, or is about to be, started with the agent
};

/// The registry: takes registrations, applies their levers, follows their processes and restores.
/// Owner of the registrations. Event-loop thread.
class Service {
 public:
  Service(Ports ports, core::Config config, bool dry_run);

  /// Takes over and restores what an earlier run left, finds the GPUs.
  [[nodiscard]] core::Result<void> start();
  void set_observer(Observer* observer) { observer_ = observer; }

  /// Nice is in force when it returns; weights and GPU level follow.
  [[nodiscard]] core::Result<core::RegistrationId> add(RegisterRequest request);
  [[nodiscard]] core::Result<void> remove(core::RegistrationId id, std::string_view why);
  /// Releases everything; `done` once the originals are back or cannot be put back now.
  void stop(std::function<void()> done);
  void refresh_gpu(const core::PciAddress& gpu, std::function<void(core::Result<void>)> done);

  [[nodiscard]] std::optional<ProcessView> view(core::RegistrationId id) const;
  [[nodiscard]] std::vector<core::RegistrationId> ids() const;
  [[nodiscard]] std::vector<GpuView> gpus() const;
  [[nodiscard]] std::vector<std::string> degraded() const { return gpu_watch_.degraded(); }
  [[nodiscard]] const core::Config& config() const { return config_; }
  /// How a process stands: one line for each thing there is to say, in order.
  [[nodiscard]] std::vector<ExplainLine> explain(core::Pid pid) const;
  /// What the controllers did, the newest last.
  [[nodiscard]] std::vector<HistoryLine> history(std::size_t count) const {
    return book_of_control_.history(count);
  }
  [[nodiscard]] std::chrono::steady_clock::time_point now() const { return ports_.loop.now(); }
  [[nodiscard]] core::Result<std::map<std::string, std::string>> launch_environment(
      const std::string& profile, core::LaunchOptions options) const;
  /// `not_found` for a profile that is not there.
  [[nodiscard]] core::Result<AdmissionView> admission(const std::string& profile) const;
  [[nodiscard]] bool dry_run() const { return dry_run_; }
  /// Nothing of ours is left in the system.
  [[nodiscard]] bool clean() const;

 private:
  [[nodiscard]] core::Result<core::Profile> profile_named(const std::string& name) const;
  [[nodiscard]] core::Result<core::Profile> profile_of(const RegisterRequest& request) const;
  [[nodiscard]] core::Result<ports::ProcessIdentity> check(
      const ports::ProcessHandle& process) const;
  [[nodiscard]] core::Result<void> check_limits(const core::ProcessKey& key) const;
  [[nodiscard]] Member make_member(std::unique_ptr<ports::ProcessHandle> process,
                                   const core::ProcessKey& key, core::RegistrationId id);
  void member_exited(core::RegistrationId id, core::Pid pid);
  void release_member(Registration& registration, Member& member, bool exited);
  void release_shared(Registration& registration);

  [[nodiscard]] core::Result<void> admit(Registration& registration, RegisterRequest& request,
                                         core::Nice nice_found);
  void follow_up(core::RegistrationId id);
  /// One of the values that each thread has for itself.
  struct ThreadPart {
    core::LeverKind kind;
    ThreadLever& lever;
    ThreadState Member::*state;
  };
  using Threads = std::vector<ports::ThreadFacts>;
  [[nodiscard]] ThreadPart nice_part() {
    return {core::LeverKind::nice, thread_nice_, &Member::nice};
  }
  [[nodiscard]] std::array<ThreadPart, 4> thread_parts();
  [[nodiscard]] ThreadPart slack_part() {
    return {core::LeverKind::timer_slack, thread_slack_, &Member::slack};
  }
  void hold_slack(Registration& registration);
  [[nodiscard]] std::string why_no_slack(Registration& registration);
  [[nodiscard]] std::optional<core::LeverValue> thread_wish(const Registration& registration,
                                                            core::LeverKind kind) const;
  [[nodiscard]] core::Result<ThreadSummary> apply_threads(Registration& registration,
                                                          Member& member, const ThreadPart& part,
                                                          const Threads* listed = nullptr);
  void look_at_threads(Registration& registration, Member& member);
  void follow_up_threads(Registration& registration);
  void threads_status(Registration& registration);
  void thread_status(Registration& registration, const core::LeverValue& wish,
                     const ThreadPart& part);
  void disinherit(Registration& registration, const Member& parent, core::Pid child);
  [[nodiscard]] std::size_t stragglers();
  void apply_autogroup(Registration& registration);
  void apply_weights(Registration& registration);
  void unit_known(core::RegistrationId id, const core::Result<ports::UnitFacts>& facts);
  void follow_gpus(Registration& registration);
  void follow_levels();
  void hold_level(Registration& registration, const core::PciAddress& gpu);
  [[nodiscard]] core::LeverValue wish_of(const Registration& registration,
                                         core::LeverKind kind) const;
  [[nodiscard]] std::vector<core::Rung> rungs_of(core::RegistrationId id);
  void hold_nice(Registration& registration);
  void slices_status(Registration& registration);
  void hold_slices(Registration& registration);
  void slice_changed(Registration& registration);
  void hold_strongly(core::RegistrationId id, const std::vector<std::string>& engaged);
  [[nodiscard]] std::vector<core::Rung> dispatch_rungs(core::RegistrationId id, bool misses);
  void hold_for_dispatch(core::RegistrationId id, const std::vector<std::string>& engaged);
  void dispatch_statuses(Registration& registration);
  void agents_changed();
  void follow_agents();
  void follow_agents_of(Registration& registration);
  void shared_changed(core::LeverKind kind, const std::string& id);
  void control_state_changed(core::RegistrationId id);
  void freezer_changed(const std::string& unit);
  void energy_changed();
  void set_status(Registration& registration, core::LeverStatus status);
  [[nodiscard]] SharedLever& lever(core::LeverKind kind);

  void schedule_scan();
  void scan();
  struct Looked {
    std::uint32_t processes = 0;
    std::uint32_t threads = 0;
  };
  [[nodiscard]] Looked scan_one(Registration& registration);
  [[nodiscard]] bool has_stirred(Member& member);
  bool settle_inheritance(const ports::ProcessIdentity& identity);
  [[nodiscard]] Registration* owner_of(core::Pid pid);
  bool take_over(core::Pid pid);
  void scan_children(Registration& registration);
  void scan_children(Registration& registration, std::vector<core::Pid> waiting);
  void adopt_child(Registration& registration, const Member& parent, core::Pid child);
  void finish_stop();
  void await_stragglers();
  [[nodiscard]] std::size_t member_count() const;

  Ports ports_;
  core::Config config_;
  bool dry_run_;
  LedgerBook book_;
  NiceValue nice_value_;
  PolicyValue policy_value_;
  IoValue io_value_;
  TimerSlackValue slack_value_;
  ThreadLever thread_nice_;
  ThreadLever thread_policy_;
  ThreadLever thread_io_;
  ThreadLever thread_slack_;
  AutogroupBackend autogroup_backend_;
  WeightBackend cpu_backend_;
  WeightBackend io_backend_;
  LevelBackend level_backend_;
  FreezerBackend freezer_backend_;
  EnergyBackend energy_backend_;
  SharedLever autogroup_;
  SharedLever cpu_weight_;
  SharedLever io_weight_;
  SharedLever level_;
  SharedLever freezer_;
  SharedLever energy_;
  GpuWatch gpu_watch_;
  AgentWatch agent_watch_;
  ControlBook book_of_control_;
  ControlLoop control_;
  GpuControl gpu_control_;
  PowerSaving power_saving_;
  LevelControl level_control_;
  CpuLatency cpu_latency_;
  Neighbours neighbours_;
  HoldBack hold_back_;
  BackgroundEnergy background_energy_;
  core::Admission admission_;
  bool agents_due_ = false;                     ///< follow_agents is about to run
  std::set<core::RegistrationId> with_agents_;  ///< that had one when they were last followed
  Observer* observer_ = nullptr;
  std::map<core::RegistrationId, Registration> registrations_;
  std::uint32_t next_id_ = 1;
  std::unique_ptr<ports::Subscription> scan_timer_;
  std::chrono::steady_clock::time_point next_scan_{};
  std::optional<core::RegistrationId> scan_cursor_;  ///< where the next scan goes on
  std::function<void()> stopped_;
  std::unique_ptr<ports::Subscription> stop_deadline_;
  std::unique_ptr<ports::Subscription> straggler_timer_;
};

}  // namespace apusched::app
