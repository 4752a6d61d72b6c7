// SPDX-License-Identifier: MIT
#include "app/neighbours.hpp"

#include <algorithm>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto kBetweenLists = 500ms;
constexpr auto kListAgain = 2000ms;
/// CPU clocks read in one look: one system call each.
constexpr std::size_t kMostNeighbours = 256;
/// All together, of one CPU: who uses less makes nobody wait for long.
constexpr double kBusyShare = 0.05;

}  // namespace

bool Neighbours::busy(core::RegistrationId id) const {
  const auto found = groups_.find(id);
  return found != groups_.end() && found->second.busy;
}

void Neighbours::list(Group& group, const Registration& registration) {
  const auto now = loop_.now();
  if (group.listed && now - *group.listed < kListAgain) return;
  if (listed_ && now - *listed_ < kBetweenLists) return;
  listed_ = group.listed = now;
  const auto found = processes_.sharing_group(registration.key.pid);
  if (!found) return;
  decltype(group.used) used;
  for (const auto pid : *found) {
    if (used.size() >= kMostNeighbours) break;
    if (registration.members.contains(pid)) continue;
    const auto before = group.used.find(pid);
    used.emplace(pid, before == group.used.end() ? std::nullopt : before->second);
  }
  group.used = std::move(used);
}

void Neighbours::look(const Registration& registration) {
  if (meters_ == nullptr) return;
  auto& group = groups_[registration.id];
  list(group, registration);
  const auto now = loop_.now();
  const auto passed = now - std::exchange(group.read, now);
  nanoseconds worked{0};
  for (auto& [pid, used] : group.used) {
    const auto time = meters_->process(pid);
    if (!time) continue;
    // Less than before: another process has the PID now.
    if (used && *time > *used) worked += *time - *used;
    used = *time;
  }
  if (passed > 0ns)
    group.busy = static_cast<double>(worked.count()) >
                 kBusyShare * static_cast<double>(nanoseconds(passed).count());
}

}  // namespace apusched::app
