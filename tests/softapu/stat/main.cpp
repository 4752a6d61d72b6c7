// SPDX-License-Identifier: MIT
// softapu-stat DIR: the device state of a session as JSON.
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "device/shared_device.h"
#include "session/layout.h"

namespace {

using namespace apusched::softapu;
using nlohmann::json;

std::string mask_text(const CuMask& mask) {
  // All words, most significant first, without leading zeros.
  std::string text;
  for (std::size_t i = mask.words.size(); i-- > 0;) {
    if (text.empty() && mask.words[i] == 0 && i > 0) continue;
    char word[17];
    std::snprintf(word, sizeof word, text.empty() ? "%llx" : "%016llx",
                  static_cast<unsigned long long>(mask.words[i]));
    text += word;
  }
  return "0x" + text;
}

json queue_json(const QueueState& queue, const DeviceState& state) {
  const QueueCounters& c = queue.counters;
  return {{"pid", state.clients[queue.client].pid},
          {"id", queue.id},
          {"mask", mask_text(queue.mask)},
          {"mask_updates", queue.mask_updates},
          {"priority", queue.priority},
          {"priority_updates", queue.priority_updates},
          {"percent", queue.percent},
          {"packets", c.launched.load()},
          {"submitted", c.submitted.load()},
          {"retired", c.retired.load()},
          {"dispatches", c.dispatches.load()},
          {"barriers", c.barriers.load()},
          {"overlapped", c.overlapped.load()},
          {"errors", c.errors.load()}};
}

json client_json(const Client& client) {
  return {{"pid", client.pid},
          {"vram_bytes", client.vram_used},
          {"gtt_bytes", client.gtt_used},
          {"wakeups", client.wakeups.load()},
          {"doorbell_faults", client.doorbell_faults.load()}};
}

json faults_json(const FaultState& faults) {
  json names = json::array();
  for (std::size_t i = 0; i < kFaults; i++)
    if (faults.has(Fault{static_cast<std::uint32_t>(i)})) names.push_back(kFaultNames[i]);
  return names;
}

json snapshot(SharedDevice& device) {
  SharedDevice::Access access(device);
  const DeviceState& state = access.state();
  json out = {{"gfx", state.description.gfx_name.data()},
              {"compute_units", state.description.compute_units},
              {"level", level_name(state.level)},
              {"level_writes", state.level_writes},
              {"sclk_mhz", access->sclk_mhz()},
              {"mclk_mhz", access->mclk_mhz()},
              {"busy_percent", state.busy_percent},
              {"readings_rest", state.readings_rest != 0},
              {"busy_ns", state.busy_ns},
              {"load", state.load},
              {"power_w", state.power_w},
              {"gfx_power_w", state.gfx_power_w},
              {"cpu_power_w", state.cpu_power_w},
              {"cpu_load", state.cpu_load},
              {"temperature_c", state.temperature_c},
              {"throttled_by_power", (state.throttled & kThrottlePower) != 0},
              {"throttled_by_heat", (state.throttled & kThrottleHeat) != 0},
              {"gfx_off", state.gfx_off != 0},
              {"gfxoff_entries", state.gfxoff_entries},
              {"runlists_busy", std::popcount(state.busy_lists)},
              {"kernels_in_flight", state.live_count},
              {"clients_seen", state.clients_seen},
              {"clients_reaped", state.clients_reaped},
              {"faults", faults_json(state.faults)},
              {"losses", state.faults.losses.load()},
              {"clients", json::array()},
              {"queues", json::array()}};
  for (const Client& client : state.clients)
    if (client.pid != 0) out["clients"].push_back(client_json(client));
  for (const QueueState& queue : state.queues)
    if (queue.used != 0) out["queues"].push_back(queue_json(queue, state));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t gpu = 0;
  const std::string_view number = argc == 3 ? argv[2] : "0";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), gpu);
  if (argc < 2 || argc > 3 || error != std::errc{} || end != number.data() + number.size()) {
    std::fprintf(stderr, "usage: softapu-stat SESSION-DIRECTORY [NUMBER-OF-GPU]\n");
    return 2;
  }
  const auto device = SharedDevice::open(std::string(argv[1]) + "/" + file_of(kStateFile, gpu));
  if (device == nullptr) {
    std::fprintf(stderr, "softapu-stat: GPU %zu of %s: %s\n", gpu, argv[1], std::strerror(errno));
    return 1;
  }
  std::cout << snapshot(*device).dump(2) << '\n';
  return 0;
}
