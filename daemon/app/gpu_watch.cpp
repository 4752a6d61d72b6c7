// SPDX-License-Identifier: MIT
#include "app/gpu_watch.hpp"

#include <algorithm>
#include <utility>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
constexpr int kIdleScansBeforeBursts = 4;
constexpr auto kFreshReading = 3s;
constexpr std::uint32_t kBusyPercent = 10;
constexpr auto kRefreshDeadline = 4s;
/// Refresh is open to every user: no more than this often does it reach the hardware.
constexpr auto kRefreshInterval = 1s;

std::string_view to_string(ports::ProbeMode mode) {
  switch (mode) {
    case ports::ProbeMode::off:
      return "off";
    case ports::ProbeMode::burst:
      return "burst";
    case ports::ProbeMode::continuous:
      return "continuous";
  }
  return "?";
}

constexpr std::string_view kGone = "it is gone: the driver does not list it any more";

std::string helper_text(const ports::GpuHelper* helper, const std::string& trouble) {
  if (helper == nullptr) return "absent";
  if (!trouble.empty()) return "degraded: " + trouble;
  switch (helper->state()) {
    case ports::HelperState::absent:
      return "absent";
    case ports::HelperState::starting:
      return "starting";
    case ports::HelperState::ready:
      return "ready";
    case ports::HelperState::degraded:
      return "degraded: " + helper->reason();
  }
  return "?";
}

}  // namespace

GpuWatch::GpuWatch(ports::GpuTopology& topology, ports::EventLoop& loop, ports::Report& report,
                   const core::Config& config, HelperFactory make_helper)
    : topology_(topology),
      loop_(loop),
      report_(report),
      config_(config),
      make_helper_(std::move(make_helper)) {}

void GpuWatch::discover() {
  if (!config_.gpu.enabled) {
    why_none_ = "GPU functions are off: gpu.enabled is false in the configuration";
    return;
  }
  for (auto& facts : topology_.discover(why_none_)) {
    auto gpu = std::make_unique<Gpu>(facts);
    gpu->helper = make_helper_(facts);
    gpu->helper->set_events(this);
    for (const auto source : {core::ProbeSource::queue, core::ProbeSource::kernel})
      gpu->windows.emplace(source, core::LatencyWindow(config_.probe.window_samples));
    gpus_.push_back(std::move(gpu));
  }
  if (gpus_.empty())
    why_none_ = "GPU functions are off: " + (why_none_.empty() ? "no GPU found" : why_none_);
}

std::vector<core::PciAddress> GpuWatch::gpus_of(core::Pid pid) {
  std::vector<core::PciAddress> result;
  if (gpus_.empty()) return result;
  const auto ids = topology_.queue_gpu_ids(pid);
  for (const auto& gpu : gpus_)
    if (std::ranges::find(ids, gpu->facts.kfd_gpu_id) != ids.end())
      result.push_back(gpu->facts.pci);
  return result;
}

void GpuWatch::update(const std::map<core::PciAddress, bool>& worked) {
  const auto now = loop_.now();
  for (const auto& gpu : gpus_) {
    note_presence(*gpu);
    const auto found = worked.find(gpu->facts.pci);
    if (found == worked.end() || !config_.probe.enabled || gpu->gone) {
      set_mode(*gpu, ports::ProbeMode::off);
      continue;
    }
    gpu->idle_scans = found->second ? 0 : gpu->idle_scans + 1;
    const bool idle = gpu->idle_scans >= kIdleScansBeforeBursts;
    set_mode(*gpu, idle ? ports::ProbeMode::burst : ports::ProbeMode::continuous);
    if (!idle && now - gpu->telemetry_asked >= config_.gpu.telemetry_interval) {
      gpu->telemetry_asked = now;
      ask(*gpu);
    }
  }
}

void GpuWatch::note_presence(Gpu& gpu) {
  const bool gone = !topology_.present(gpu.facts.kfd_gpu_id);
  if (gone == gpu.gone) return;
  gpu.gone = gone;
  gpu.telemetry.reset();
  if (gone)
    report_.degraded("GPU " + gpu.facts.pci.text(), std::string(kGone));
  else
    report_.recovered("GPU " + gpu.facts.pci.text());
  if (changed_) changed_(gpu.facts.pci);
}

void GpuWatch::set_mode(Gpu& gpu, ports::ProbeMode mode) {
  if (gpu.mode == mode) return;
  const bool starts = gpu.mode == ports::ProbeMode::off;
  gpu.mode = mode;
  if (starts) {
    gpu.idle_scans = 0;
    for (auto& [source, window] : gpu.windows) window.clear();
  }
  gpu.helper->set_mode(mode, config_.probe);
  if (changed_) changed_(gpu.facts.pci);
}

void GpuWatch::stop() {
  for (const auto& gpu : gpus_) {
    set_mode(*gpu, ports::ProbeMode::off);
    answer(*gpu, core::fail(core::ErrorCode::failed, "refresh", "", "the daemon is stopping"));
  }
}

GpuWatch::Gpu* GpuWatch::find(const core::PciAddress& address) {
  const auto found =
      std::ranges::find_if(gpus_, [&](const auto& gpu) { return gpu->facts.pci == address; });
  return found == gpus_.end() ? nullptr : found->get();
}

void GpuWatch::refresh(const core::PciAddress& address,
                       std::function<void(core::Result<void>)> done) {
  constexpr std::size_t kMaxWaiters = 64;
  auto* gpu = find(address);
  if (gpu == nullptr)
    return done(core::fail(core::ErrorCode::not_found, "refresh", address.text(), "no such GPU"));
  if (gpu->telemetry && loop_.now() - gpu->telemetry_at < kRefreshInterval) return done({});
  if (gpu->waiters.size() >= kMaxWaiters)
    return done(core::fail(core::ErrorCode::limit_reached, "refresh", address.text(),
                           "too many callers are waiting; try again"));
  auto timeout = loop_.after(kRefreshDeadline, [this, address] {
    if (auto* late = find(address))
      answer(*late, core::fail(core::ErrorCode::timed_out, "refresh", address.text(),
                               "the GPU helper did not answer: " + late->helper->reason()));
  });
  const bool first = gpu->waiters.empty();
  gpu->waiters.push_back({std::move(done), std::move(timeout)});
  if (first) ask(*gpu);
}

void GpuWatch::ask(Gpu& gpu) {
  if (!gpu.asked) gpu.asked = loop_.now();
  gpu.helper->request_telemetry();
}

void GpuWatch::answer(Gpu& gpu, const core::Result<void>& result) {
  for (auto& waiter : std::exchange(gpu.waiters, {})) waiter.done(result);
}

GpuWatch::Seen GpuWatch::take_seen(const core::PciAddress& address) {
  Seen seen;
  auto* gpu = find(address);
  if (gpu == nullptr) return seen;
  for (const auto source : {core::ProbeSource::queue, core::ProbeSource::kernel}) {
    const auto fresh = std::exchange(gpu->fresh[source], {});
    if (fresh.count > 0)
      seen.latency_us = std::chrono::duration<double, std::micro>(fresh.sum).count() / fresh.count;
  }
  if (!gpu->telemetry || loop_.now() - gpu->telemetry_at > kFreshReading) return seen;
  seen.watts = gpu->telemetry->power_watts;
  seen.celsius = gpu->telemetry->temperature_celsius;
  seen.busy = gpu->telemetry->busy_percent.value_or(0) >= kBusyPercent;
  return seen;
}

GpuView GpuWatch::view_of(const Gpu& gpu) const {
  GpuView view{gpu.facts, {}, {}, {}, {}, 0, {}, {}, {}};
  if (gpu.telemetry && topology_.present(gpu.facts.kfd_gpu_id)) {
    view.telemetry = gpu.telemetry;
    view.telemetry_age =
        std::chrono::duration_cast<std::chrono::milliseconds>(loop_.now() - gpu.telemetry_at);
    if (gpu.telemetry->level) view.level = core::to_string(*gpu.telemetry->level);
  }
  view.queue_count = topology_.queue_count(gpu.facts.kfd_gpu_id);
  view.helper = helper_text(gpu.helper.get(), gpu.trouble);
  view.probe_mode = to_string(gpu.mode);
  for (const auto& [source, window] : gpu.windows)
    if (const auto summary = window.summary()) view.latency.emplace(source, *summary);
  return view;
}

std::vector<GpuView> GpuWatch::views() const {
  std::vector<GpuView> result;
  result.reserve(gpus_.size());
  for (const auto& gpu : gpus_) result.push_back(view_of(*gpu));
  return result;
}

std::vector<std::string> GpuWatch::degraded() const {
  std::vector<std::string> result;
  if (gpus_.empty()) result.push_back(why_none_);
  for (const auto& gpu : gpus_)
    if (!topology_.present(gpu->facts.kfd_gpu_id))
      result.push_back("GPU " + gpu->facts.pci.text() + ": " + std::string(kGone));
    else if (!gpu->trouble.empty())
      result.push_back("GPU " + gpu->facts.pci.text() + ": " + gpu->trouble);
  return result;
}

void GpuWatch::on_sample(const core::PciAddress& address, const ports::ProbeSample& sample) {
  auto* gpu = find(address);
  if (gpu == nullptr) return;
  const auto window = gpu->windows.find(sample.source);
  if (window == gpu->windows.end()) return;
  if (sample.lost) return window->second.add_lost();
  window->second.add(sample.latency);
  auto& fresh = gpu->fresh[sample.source];
  fresh.sum += sample.latency;
  ++fresh.count;
  // A sample is no answer to what the helper still complains of, as that sysfs is slow.
  if (gpu->trouble.empty() || gpu->helper->state() == ports::HelperState::degraded) return;
  gpu->trouble.clear();
  report_.recovered("GPU " + address.text());
  if (changed_) changed_(address);
}

void GpuWatch::on_telemetry(const core::PciAddress& address, const ports::GpuTelemetry& telemetry) {
  auto* gpu = find(address);
  if (gpu == nullptr) return;
  gpu->telemetry = telemetry;
  gpu->telemetry_at = loop_.now();
  const auto asked = std::exchange(gpu->asked, std::nullopt).value_or(gpu->telemetry_at);
  if (telemetry.level && level_seen_) level_seen_(address, *telemetry.level, asked);
  answer(*gpu, {});
}

void GpuWatch::on_state(const core::PciAddress& address, ports::HelperState state,
                        const std::string& reason) {
  auto* gpu = find(address);
  if (gpu == nullptr) return;
  // A helper that was started again shows with its first sample that the GPU works: while the GPU
  // hangs, one after the other comes up and fails.
  if (state == ports::HelperState::degraded) {
    gpu->trouble = reason;
    report_.degraded("GPU " + address.text(), reason);
  } else if (state == ports::HelperState::absent) {
    gpu->trouble.clear();
  }
  if (changed_) changed_(address);
}

}  // namespace apusched::app
