// SPDX-License-Identifier: MIT
#include "core/config.hpp"

namespace apusched::core {
namespace {

Profile llm_interactive() {
  Profile profile;
  profile.name = "llm-interactive";
  profile.work_class = WorkClass::critical;
  profile.nice = Nice::of<-10>();
  profile.autogroup_nice = Nice::of<-10>();
  profile.cpu_weight = Weight::make(1000);
  profile.io_weight = Weight::make(500);
  profile.performance_level = PerformanceLevel::high;
  profile.queue_priority = QueuePriority::high;
  profile.target_wait = WaitTarget::of<20>();
  profile.target_dispatch = PercentOf::of<150>();
  return profile;
}

Profile background() {
  Profile profile;
  profile.name = "background";
  profile.work_class = WorkClass::background;
  profile.nice = Nice::of<10>();
  profile.autogroup_nice = Nice::of<10>();
  profile.scheduling = SchedulingPolicy::idle;
  profile.io_class = IoClass::idle;
  profile.cpu_weight = Weight::make(20);
  profile.io_weight = Weight::make(20);
  profile.queue_priority = QueuePriority::low;
  return profile;
}

}  // namespace

Config default_config() {
  Config config;
  for (auto& profile : {llm_interactive(), background()}) config.profiles[profile.name] = profile;
  return config;
}

}  // namespace apusched::core
