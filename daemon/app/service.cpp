// SPDX-License-Identifier: MIT
#include "app/service.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
constexpr auto kStopDeadline = 5s;
constexpr core::Moment kQuietBeforeAdmission = 2s;
/// (uid_t)-1 is nobody's.
constexpr std::uint32_t kUnknownUser = 0xffffffffU;
constexpr std::string_view kRegister = "register process";
constexpr std::array kShared{core::LeverKind::autogroup, core::LeverKind::cpu_weight,
                             core::LeverKind::io_weight, core::LeverKind::performance_level,
                             core::LeverKind::freezer,   core::LeverKind::energy_preference};

std::string names_of(const std::map<std::string, core::Profile>& profiles) {
  std::string names;
  for (const auto& [name, profile] : profiles) names += (names.empty() ? "" : ", ") + name;
  return names;
}

core::LeverStatus pending(core::LeverKind kind, const core::LeverValue& value) {
  return {kind, core::Outcome::pending, {}, core::to_string(value), {}};
}

}  // namespace

Service::Service(Ports ports, core::Config config, bool dry_run)
    : ports_(std::move(ports)),
      config_(std::move(config)),
      dry_run_(dry_run),
      book_(ports_.store, ports_.report),
      nice_value_(ports_.scheduler),
      policy_value_(ports_.scheduler),
      io_value_(ports_.scheduler),
      slack_value_(ports_.scheduler),
      thread_nice_(nice_value_, ports_.processes, book_, ports_.report, config_.limits, dry_run),
      thread_policy_(policy_value_, ports_.processes, book_, ports_.report, config_.limits,
                     dry_run),
      thread_io_(io_value_, ports_.processes, book_, ports_.report, config_.limits, dry_run),
      thread_slack_(slack_value_, ports_.processes, book_, ports_.report, config_.limits, dry_run),
      autogroup_backend_(ports_.processes, ports_.scheduler),
      cpu_backend_(core::LeverKind::cpu_weight, ports_.units, ports_.report),
      io_backend_(core::LeverKind::io_weight, ports_.units, ports_.report),
      level_backend_(ports_.levels),
      freezer_backend_(ports_.freezer),
      energy_backend_(ports_.cpu_energy, config_.control.background_energy),
      autogroup_(core::LeverKind::autogroup, autogroup_backend_, book_, ports_.loop, ports_.report,
                 dry_run),
      cpu_weight_(core::LeverKind::cpu_weight, cpu_backend_, book_, ports_.loop, ports_.report,
                  dry_run),
      io_weight_(core::LeverKind::io_weight, io_backend_, book_, ports_.loop, ports_.report,
                 dry_run),
      level_(core::LeverKind::performance_level, level_backend_, book_, ports_.loop, ports_.report,
             dry_run),
      freezer_(core::LeverKind::freezer, freezer_backend_, book_, ports_.loop, ports_.report,
               dry_run),
      energy_(core::LeverKind::energy_preference, energy_backend_, book_, ports_.loop,
              ports_.report, dry_run),
      gpu_watch_(ports_.topology, ports_.loop, ports_.report, config_, ports_.make_helper),
      agent_watch_(ports_.agents, ports_.loop, ports_.report, config_, dry_run),
      book_of_control_(ports_.control_log, ports_.loop, ports_.report),
      control_(ports_.meters, book_of_control_, ports_.loop, config_),
      gpu_control_(agent_watch_, book_of_control_, ports_.loop, config_, registrations_),
      power_saving_(ports_.power, ports_.loop),
      level_control_(gpu_watch_, power_saving_, book_of_control_, ports_.loop, config_),
      cpu_latency_(ports_.idle_latency, power_saving_, ports_.loop, config_, dry_run),
      neighbours_(ports_.processes, ports_.meters, ports_.loop),
      hold_back_(ports_.freezer, freezer_, ports_.processes, config_, registrations_),
      background_energy_(ports_.cpu_energy, energy_, ports_.processes, ports_.loop, config_,
                         registrations_, dry_run),
      admission_(kQuietBeforeAdmission) {
  for (const auto kind : kShared)
    lever(kind).on_changed([this, kind](const std::string& id) { shared_changed(kind, id); });
  gpu_watch_.on_changed([this](const core::PciAddress& gpu) {
    if (observer_ != nullptr) observer_->on_gpu_changed(gpu);
    if (observer_ != nullptr) observer_->on_state_changed();
  });
  gpu_watch_.on_level_seen([this](const core::PciAddress& gpu, core::PerformanceLevel level,
                                  std::chrono::steady_clock::time_point asked) {
    level_.observed(gpu.text(), level, asked);
  });
  agent_watch_.on_changed([this] { agents_changed(); });
  control_.on_kept_back(
      [this](core::RegistrationId id) { return hold_back_.kept_from_others(id); });
  control_.on_rungs([this](core::RegistrationId id) { return rungs_of(id); });
  control_.on_apply([this](core::RegistrationId id, const std::vector<std::string>& engaged) {
    hold_strongly(id, engaged);
  });
  gpu_control_.on_pressed([this] { follow_agents(); });
  gpu_control_.on_rungs(
      [this](core::RegistrationId id, bool misses) { return dispatch_rungs(id, misses); });
  gpu_control_.on_apply([this](core::RegistrationId id, const std::vector<std::string>& engaged) {
    hold_for_dispatch(id, engaged);
  });
  book_of_control_.on_state([this](core::RegistrationId id) { control_state_changed(id); });
}

void Service::agents_changed() {
  if (std::exchange(agents_due_, true)) return;
  ports_.loop.soon([this] {
    agents_due_ = false;
    follow_agents();
  });
}

SharedLever& Service::lever(core::LeverKind kind) {
  switch (kind) {
    case core::LeverKind::autogroup:
      return autogroup_;
    case core::LeverKind::cpu_weight:
      return cpu_weight_;
    case core::LeverKind::io_weight:
      return io_weight_;
    case core::LeverKind::freezer:
      return freezer_;
    case core::LeverKind::energy_preference:
      return energy_;
    default:
      return level_;
  }
}

core::Result<void> Service::start() {
  // A dry run leaves alone what an earlier run left, and its record.
  if (!dry_run_) {
    if (auto loaded = book_.load(); !loaded) return loaded;
    for (const auto& part : thread_parts()) part.lever.restore_leftovers();
    await_stragglers();
    for (const auto kind : kShared) lever(kind).restore_leftovers();
  }
  gpu_watch_.discover();
  std::vector<ports::GpuFacts> gpus;
  for (const auto& gpu : gpu_watch_.views()) gpus.push_back(gpu.facts);
  agent_watch_.set_gpus(gpus);
  gpu_control_.set_gpus(gpus);
  return {};
}

core::Result<core::Profile> Service::profile_named(const std::string& name) const {
  const auto found = config_.profiles.find(name);
  if (found == config_.profiles.end())
    return core::fail(core::ErrorCode::not_found, "use profile", "\"" + name + "\"",
                      "no such profile; there are: " + names_of(config_.profiles));
  return found->second;
}

core::Result<core::Profile> Service::profile_of(const RegisterRequest& request) const {
  auto named = profile_named(request.profile);
  if (!named) return named;
  auto profile = std::move(*named);
  if (request.include_children) profile.include_children = *request.include_children;
  // Bounded here once: what is applied, shown and looked for at release is then the same value.
  for (auto* nice : {&profile.nice, &profile.autogroup_nice})
    if (*nice) *nice = std::max(**nice, config_.limits.nice_floor);
  return profile;
}

core::Result<ports::ProcessIdentity> Service::check(const ports::ProcessHandle& process) const {
  const auto pid = process.pid();
  const auto text = core::to_string(pid);
  if (pid.value() == 1)
    return core::fail(core::ErrorCode::denied, std::string(kRegister), text,
                      "that is the init process; it must not be touched");
  if (pid.value() == ::getpid())
    return core::fail(core::ErrorCode::denied, std::string(kRegister), text,
                      "that is the daemon itself");
  auto identity = ports_.processes.identity(pid);
  if (!identity) return identity;
  if (identity->kernel_thread)
    return core::fail(core::ErrorCode::denied, std::string(kRegister), text,
                      "that is a kernel thread; it must not be touched");
  // The pidfd outlives the reading above: only if the process still lives was it about this one.
  if (!process.alive())
    return core::fail(core::ErrorCode::gone, std::string(kRegister), text, "it has exited");
  return identity;
}

std::size_t Service::member_count() const {
  std::size_t count = 0;
  for (const auto& [id, registration] : registrations_) count += registration.members.size();
  return count;
}

core::Result<void> Service::check_limits(const core::ProcessKey& key) const {
  const auto text = core::to_string(key.pid);
  for (const auto& [id, registration] : registrations_)
    if (registration.key == key)
      return core::fail(core::ErrorCode::contended, std::string(kRegister), text,
                        "it is registered already; unregister it first");
  if (registrations_.size() >= config_.limits.max_processes)
    return core::fail(
        core::ErrorCode::limit_reached, std::string(kRegister), text,
        "limits.max_processes = " + std::to_string(config_.limits.max_processes) + " is reached");
  if (member_count() >= config_.limits.max_members)
    return core::fail(
        core::ErrorCode::limit_reached, std::string(kRegister), text,
        "limits.max_members = " + std::to_string(config_.limits.max_members) + " is reached");
  return {};
}

core::Result<core::RegistrationId> Service::add(RegisterRequest request) {
  const auto profile = profile_of(request);
  if (!profile) return tl::unexpected(profile.error());
  auto identity = check(*request.process);
  if (!identity) return tl::unexpected(identity.error());
  if (auto room = check_limits(identity->key); !room) return tl::unexpected(room.error());
  if (settle_inheritance(*identity)) identity = check(*request.process);
  if (!identity) return tl::unexpected(identity.error());

  const auto id = *core::RegistrationId::make(next_id_++);
  Registration registration{id,
                            identity->key,
                            *profile,
                            {},
                            kUnknownUser,
                            request.source,
                            {},
                            {},
                            request.expects_agent,
                            {},
                            {},
                            {},
                            {},
                            {}};
  if (profile->cpu_weight)
    set_status(registration, pending(core::LeverKind::cpu_weight, *profile->cpu_weight));
  if (profile->io_weight)
    set_status(registration, pending(core::LeverKind::io_weight, *profile->io_weight));
  if (profile->autogroup_nice)
    set_status(registration, pending(core::LeverKind::autogroup, *profile->autogroup_nice));
  if (auto admitted = admit(registration, request, identity->nice); !admitted)
    return tl::unexpected(admitted.error());
  registrations_.emplace(id, std::move(registration));
  ports_.loop.soon([this, id] { follow_up(id); });
  if (observer_ != nullptr) observer_->on_added(id);
  return id;
}

/// Takes the process (and its children there are) in and applies nice; on failure nothing stays.
/// `nice_found` is the main thread's.
core::Result<void> Service::admit(Registration& registration, RegisterRequest& request,
                                  core::Nice nice_found) {
  const auto pid = registration.key.pid;
  auto& root =
      registration.members
          .emplace(pid, make_member(std::move(request.process), registration.key, registration.id))
          .first->second;
  if (root.exit_watch == nullptr)
    return core::fail(core::ErrorCode::limit_reached, std::string(kRegister), core::to_string(pid),
                      "no file descriptor left to watch it with");
  root.nice.just_read = {{*core::Tid::make(pid.value()), registration.key.start}, nice_found};
  if (registration.profile.include_children) scan_children(registration);
  const auto result = apply_threads(registration, root, nice_part());
  if (!result && (result.error().code == core::ErrorCode::gone ||
                  result.error().code == core::ErrorCode::limit_reached)) {
    for (auto& [member_pid, member] : registration.members)
      release_member(registration, member, false);
    return tl::unexpected(result.error());
  }
  root.summaries.insert_or_assign(core::LeverKind::nice, result);
  return {};
}

Member Service::make_member(std::unique_ptr<ports::ProcessHandle> process,
                            const core::ProcessKey& key, core::RegistrationId id) {
  Member member{nullptr,          nullptr,          ThreadState{key},
                ThreadState{key}, ThreadState{key}, ThreadState{key}};
  member.exit_watch = ports_.loop.watch_readable(
      process->exit_fd(), [this, id, pid = key.pid] { member_exited(id, pid); });
  member.handle = std::move(process);
  return member;
}

/// What needs not be in force when the caller gets its answer.
void Service::follow_up(core::RegistrationId id) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  ports_.report.registered(id, registration.key, registration.profile.name);
  schedule_scan();
  const auto facts = ports_.processes.facts(registration.key.pid);
  if (facts && facts->key == registration.key) {
    registration.executable = facts->executable;
    registration.uid = facts->uid;
  }
  if (auto placement = ports_.processes.placement(registration.key.pid))
    registration.placement = std::move(*placement);
  follow_up_threads(registration);
  for (auto& [pid, member] : registration.members)
    member.activity = ports_.processes.activity(pid).value_or(0);
  apply_autogroup(registration);
  apply_weights(registration);
  follow_gpus(registration);
  if (!registration.gpus.empty()) {
    std::map<core::PciAddress, bool> worked;
    for (const auto& [other_id, other] : registrations_)
      for (const auto& gpu : other.gpus) worked.try_emplace(*core::PciAddress::parse(gpu), true);
    gpu_watch_.update(worked);
  }
  follow_agents_of(registration);
  if (agent_watch_.count() > 0) follow_agents();
  control_.begin(registration);
  hold_back_.follow();
  background_energy_.follow();
  if (observer_ != nullptr) observer_->on_changed(id);
}

core::Result<void> Service::remove(core::RegistrationId id, std::string_view why) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end())
    return core::fail(core::ErrorCode::not_found, "unregister", core::to_string(id),
                      "no such registration");
  auto registration = std::move(found->second);
  registrations_.erase(found);
  for (auto& [pid, member] : registration.members) release_member(registration, member, false);
  cpu_latency_.release(id);
  release_shared(registration);
  control_.end(id);
  gpu_control_.end(id);
  hold_back_.end(id);
  background_energy_.end(id);
  admission_.note(id, false, moment(ports_.loop));
  if (agent_watch_.count() > 0) agent_watch_.update(registrations_);
  with_agents_.erase(id);
  neighbours_.forget(id);
  ports_.report.released(id, why);
  if (registrations_.empty()) {
    scan_timer_.reset();
    gpu_watch_.update({});
  }
  if (observer_ != nullptr) observer_->on_removed(id);
  return {};
}

void Service::member_exited(core::RegistrationId id, core::Pid pid) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  const auto member = registration.members.find(pid);
  if (member == registration.members.end()) return;
  // A wrapper may end before its workers: they stay covered until the last one is gone. Look for
  // them while the kernel still knows whose children they were.
  release_member(registration, member->second, true);
  registration.members.erase(member);
  if (registration.members.empty())
    static_cast<void>(remove(id, "it has exited"));
  else if (observer_ != nullptr)
    observer_->on_changed(id);
}

void Service::release_shared(Registration& registration) {
  if (registration.placement.autogroup)
    autogroup_.release(*registration.placement.autogroup, registration.id);
  if (!registration.unit.empty()) {
    cpu_weight_.release(registration.unit, registration.id);
    io_weight_.release(registration.unit, registration.id);
  }
  for (const auto& slice : registration.slices) cpu_weight_.release(slice, registration.id);
  for (const auto& gpu : registration.gpus) level_.release(gpu, registration.id);
}

void Service::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  for (const auto id : ids()) static_cast<void>(remove(id, "the daemon is stopping"));
  gpu_watch_.stop();
  stop_deadline_ = ports_.loop.after(kStopDeadline, [this] {
    ports_.report.warning(
        "not everything could be restored in time, the rest stays in the "
        "ledger for apuschedd --restore");
    if (auto finish = std::exchange(stopped_, nullptr)) finish();
  });
  finish_stop();
}

void Service::finish_stop() {
  if (!stopped_ || !clean() || stragglers() > 0) return;
  stop_deadline_.reset();
  std::exchange(stopped_, nullptr)();
}

bool Service::clean() const {
  return book_.ledger().size() == 0;
}

void Service::refresh_gpu(const core::PciAddress& gpu,
                          std::function<void(core::Result<void>)> done) {
  gpu_watch_.refresh(gpu, std::move(done));
}

std::vector<core::RegistrationId> Service::ids() const {
  std::vector<core::RegistrationId> result;
  for (const auto& [id, registration] : registrations_) result.push_back(id);
  return result;
}

std::optional<ProcessView> Service::view(core::RegistrationId id) const {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return std::nullopt;
  const auto& registration = found->second;
  ProcessView view{registration.key,
                   registration.executable,
                   registration.unit,
                   registration.uid,
                   registration.profile.work_class,
                   registration.profile.name,
                   registration.source,
                   {},
                   0,
                   static_cast<std::uint32_t>(registration.members.size()),
                   {registration.gpus.begin(), registration.gpus.end()},
                   agent_watch_.view(registration),
                   control_.view(id),
                   gpu_control_.view(id)};
  for (const auto& [kind, status] : registration.levers) view.levers.push_back(status);
  for (const auto& [pid, member] : registration.members) view.threads += member.threads;
  return view;
}

std::vector<GpuView> Service::gpus() const {
  auto views = gpu_watch_.views();
  for (auto& view : views) {
    const auto* entry =
        book_.ledger().find({core::LeverKind::performance_level, view.facts.pci.text()});
    if (entry == nullptr) continue;
    if (entry->written && !entry->contended) view.level = core::to_string(*entry->written);
    if (entry->contended)
      view.level_owner = "other";
    else if (!entry->holders.empty())
      view.level_owner = "apusched";
  }
  return views;
}

}  // namespace apusched::app
