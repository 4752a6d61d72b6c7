// SPDX-License-Identifier: MIT
#include "app/level_control.hpp"

#include <utility>

namespace apusched::app {
namespace {

core::LevelSettings level_settings(const core::ControlSection& control) {
  core::LevelSettings settings;
  settings.check_after = control.enabled ? control.level_check_after : core::Moment{0};
  settings.gain_per_watt = control.level_percent_per_watt / 100.0;
  if (control.max_celsius) settings.max_celsius = control.max_celsius->value();
  settings.on_battery = control.level_on_battery;
  return settings;
}

}  // namespace

LevelControl::LevelControl(GpuWatch& gpus, PowerSaving& power, ControlBook& book,
                           ports::EventLoop& loop, const core::Config& config)
    : gpus_(gpus), power_(power), book_(book), loop_(loop), config_(config) {}

bool LevelControl::update(const std::map<core::PciAddress, Wish>& wishes) {
  bool changed =
      std::erase_if(trials_, [&](const auto& item) { return !wishes.contains(item.first); }) > 0;
  const auto now = moment(loop_);
  for (const auto& [pci, wish] : wishes) {
    auto& gpu = trials_.try_emplace(pci, Gpu{core::LevelTrial(level_settings(config_.control)), {}})
                    .first->second;
    const auto seen = gpus_.take_seen(pci);
    auto output = gpu.trial.step(
        {now, wish.working || seen.busy, seen.latency_us, seen.watts, seen.celsius, power_.now()});
    if (!output.event.empty())
      book_.tell(wish.pid, core::Latency::dispatch,
                 {output.hold ? core::ControlEvent::What::kept : core::ControlEvent::What::undone,
                  "performance_level", output.event, output.before, output.after});
    if (output.why == gpu.why) continue;
    gpu.why = std::move(output.why);
    changed = true;
  }
  return changed;
}

std::string LevelControl::why_not(const core::PciAddress& gpu) const {
  const auto found = trials_.find(gpu);
  return found == trials_.end() ? std::string() : found->second.why;
}

}  // namespace apusched::app
