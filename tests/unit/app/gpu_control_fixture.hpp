// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>

#include "service_fixture.hpp"

namespace apusched::app {

inline constexpr const char* kTheGpu = "0000:04:00.0";
using What = core::ControlEvent::What;

/// A process with a target, and others in its way: as long as they have CUs in common.
class GpuControlTest : public ServiceTest {
 protected:
  void SetUp() override {
    topology_.gpus.front().geometry = {12, 1, 2, 1, true};
    auto& decode = config_.profiles["decode"];
    decode.name = "decode";
    decode.work_class = core::WorkClass::critical;
    decode.target_dispatch = core::PercentOf::of<150>();
    agent_hub_ = &agents_;
  }
  core::AgentId engine(int pid) {
    world_.add(pid);
    topology_.queues.insert(pid);
    const core::AgentFacts facts{
        {pid_of(pid), {world_.processes.at(pid).start}},     true, true, true, true, true, true, 0,
        {{*core::PciAddress::parse(kTheGpu), 12, "gfx1035"}}};
    const auto id = agents_.come(facts);
    loop_.settle();
    return id;
  }
  core::CuMask mask_of(core::AgentId id) {
    const auto& masks = agents_.agents.at(id).settings.masks;
    const auto mask = masks.find(*core::PciAddress::parse(kTheGpu));
    return mask == masks.end() ? core::CuMask::first(12) : mask->second;
  }
  bool disturbs(core::AgentId rival, core::AgentId of) {
    const bool gated =
        agents_.agents.at(rival).settings.gate_closed_until > loop_.now().time_since_epoch();
    return masks_act_ && !gated ? mask_of(rival).intersects(mask_of(of)) : !(gates_act_ && gated);
  }
  /// A tick's worth of dispatches; `wait` of nothing: none.
  void dispatch(core::AgentId id, std::optional<std::chrono::nanoseconds> wait) {
    auto& report = agents_.agents.at(id).report;
    report.samples += 10;
    report.waits.clear();
    if (!wait) return;
    report.busy_samples += 9;
    report.submitted += 100;
    report.taken += 100;
    report.wait_count += 2;
    report.waits = {*wait, *wait};
  }
  void run(std::chrono::milliseconds time, core::AgentId of, core::AgentId rival, bool rival_works,
           bool works = true) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      const bool disturbed = rival_works && disturbs(rival, of);
      dispatch(of, works ? std::optional(disturbed ? 500us : 100us) : std::nullopt);
      dispatch(rival, rival_works ? std::optional(1ms) : std::nullopt);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
  }
  std::optional<ControlView> control(core::RegistrationId id) {
    const auto view = service_->view(id);
    return view ? view->gpu_control : std::nullopt;
  }
  std::string state(core::RegistrationId id) {
    const auto view = control(id);
    return view ? view->state : "none";
  }
  int told(What what) {
    return static_cast<int>(std::ranges::count(report_.events, what, &core::ControlEvent::what));
  }

  bool masks_act_ = true, gates_act_ = true;
};

}  // namespace apusched::app
