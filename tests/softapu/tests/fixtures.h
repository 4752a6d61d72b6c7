// SPDX-License-Identifier: MIT
// A small device for unit tests: 4 CUs, 1000 MHz reference, clock at the reference.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/cu_map.h"
#include "device/model.h"

namespace apusched::softapu {

class NoObserver final : public RateObserver {
 public:
  void runs_end_earlier(ClientIndex client) override { told.push_back(client); }
  std::vector<ClientIndex> told;
};

inline DeviceDescription small_device() {
  DeviceDescription d;
  d.compute_units = 4;
  d.shader_engines = 1;
  d.arrays_per_engine = 2;
  d.simds_per_cu = 2;
  d.gfx_major = 10;
  d.max_in_flight_per_queue = 4;
  d.allowed_levels = 0xff & ~(1U << static_cast<unsigned>(Level::profile_peak));
  d.sclk = {3, {250, 500, 1000}};
  d.mclk = {2, {400, 800}};
  d.reference_sclk_mhz = 1000;
  d.dispatch_overhead_ns = 1000;
  d.workgroup_ns = 10;
  d.copy_bytes_per_us = 1000;
  d.load_time_constant_us = 10'000;
  EXPECT_TRUE(place_units(d));
  return d;
}

// The state is large; keep it off the stack.
class SmallDevice {
 public:
  explicit SmallDevice(Level level = Level::high, const DeviceDescription& d = small_device())
      : state(std::make_unique<DeviceState>()) {
    state->description = d;
    model = std::make_unique<DeviceModel>(*state, observer);
    model->set_level(level, Nanoseconds{0});
    client = *model->add_client(100, Nanoseconds{0});
  }
  QueueIndex queue(ClientIndex of) { return *model->add_queue(of, {++ids, 4096, 0, 100}, now()); }
  QueueIndex queue() { return queue(client); }
  [[nodiscard]] Nanoseconds now() const { return Nanoseconds{state->now_ns}; }

  std::unique_ptr<DeviceState> state;
  NoObserver observer;
  std::unique_ptr<DeviceModel> model;
  ClientIndex client{};
  std::uint32_t ids = 0;
};

}  // namespace apusched::softapu
