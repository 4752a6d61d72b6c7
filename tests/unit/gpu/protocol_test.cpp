// SPDX-License-Identifier: MIT
#include "gpu_helper/protocol.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace apusched::gpu_helper {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> bytes_of(const Record& record) {
  return {record.bytes().begin(), record.bytes().end()};
}
void put(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    bytes[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}
template <typename T>
T round_trip_event(const T& event) {
  const auto decoded = decode_event(encode(7, Event(event)).bytes());
  EXPECT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(decoded->sequence, 7U);
  return std::get<T>(decoded->message);
}
constexpr std::size_t kPayload = 16;

TEST(HelperProtocol, carries_every_field_of_a_mode) {
  const SetMode mode{ports::ProbeMode::burst, false, true, 5ms, 123ms, 456ms, 789ms, 17};
  const auto decoded = decode_command(encode(3, Command(mode)).bytes());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->sequence, 3U);
  EXPECT_EQ(std::get<SetMode>(decoded->message), mode);
}

TEST(HelperProtocol, carries_the_commands_without_payload) {
  for (const Command& command : {Command(TelemetryRequest{}), Command(Ping{}), Command(Quit{})}) {
    const auto decoded = decode_command(encode(1, command).bytes());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->message, command);
  }
}

TEST(HelperProtocol, carries_a_sample_with_and_without_device_time) {
  const auto with = round_trip_event(Sample{{core::ProbeSource::kernel, false, 42us, 7us}, 9});
  EXPECT_EQ(with.sample.source, core::ProbeSource::kernel);
  EXPECT_FALSE(with.sample.lost);
  EXPECT_EQ(with.sample.latency, 42us);
  EXPECT_EQ(with.sample.device, 7us);
  EXPECT_EQ(with.missed, 9U);
  const auto lost = round_trip_event(Sample{{core::ProbeSource::queue, true, 0ns, {}}, 0});
  EXPECT_TRUE(lost.sample.lost);
  EXPECT_FALSE(lost.sample.device);
}

TEST(HelperProtocol, keeps_absent_readings_absent) {
  const auto empty = round_trip_event(Telemetry{}).telemetry;
  EXPECT_FALSE(empty.busy_percent || empty.temperature_celsius || empty.power_watts);
  EXPECT_FALSE(empty.shader_clock_mhz || empty.vram_used_bytes || empty.gtt_used_bytes);
  EXPECT_FALSE(empty.level || empty.level_rsmi);
  ports::GpuTelemetry full{37,
                           51.5,
                           11.25,
                           400,
                           96,
                           300,
                           core::PerformanceLevel::automatic,
                           core::PerformanceLevel::perf_determinism};
  const auto same = round_trip_event(Telemetry{full}).telemetry;
  EXPECT_EQ(same.busy_percent, 37U);
  EXPECT_EQ(same.temperature_celsius, 51.5);
  EXPECT_EQ(same.power_watts, 11.25);
  EXPECT_EQ(same.shader_clock_mhz, 400U);
  EXPECT_EQ(same.vram_used_bytes, 96U);
  EXPECT_EQ(same.gtt_used_bytes, 300U);
  EXPECT_EQ(same.level, core::PerformanceLevel::automatic);
  EXPECT_EQ(same.level_rsmi, core::PerformanceLevel::perf_determinism);
}

TEST(HelperProtocol, carries_hello_status_and_pong) {
  EXPECT_EQ(round_trip_event(Hello{12, true}), (Hello{12, true}));
  EXPECT_EQ(round_trip_event(Pong{true}), Pong{true});
  const Status status{StatusCode::limited, "no kernel for ISA gfx1103"};
  EXPECT_EQ(round_trip_event(status), status);
}

TEST(HelperProtocol, cuts_and_cleans_status_texts) {
  const auto status =
      round_trip_event(Status{StatusCode::stuck, "\x1b[31mred\n" + std::string(500, 'x')});
  EXPECT_EQ(status.text.size(), kStatusTextSize);
  EXPECT_TRUE(status.text.starts_with("?[31mred?xx"));
}

TEST(HelperProtocol, rejects_every_other_size) {
  auto bytes = bytes_of(encode(1, Event(Pong{})));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_event(std::span(bytes).first(size))) << size;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_event(bytes));
}

TEST(HelperProtocol, rejects_a_wrong_magic_version_or_kind) {
  const auto good = bytes_of(encode(1, Event(Pong{})));
  ASSERT_TRUE(decode_event(good));
  for (const std::size_t at : {0UL, 3UL, 4UL, 5UL, 6UL, 7UL}) {
    auto bad = good;
    bad[at] ^= std::byte{0x40};
    EXPECT_FALSE(decode_event(bad)) << "byte " << at;
  }
}

TEST(HelperProtocol, takes_no_command_for_an_event_nor_the_reverse) {
  EXPECT_FALSE(decode_event(encode(1, Command(Ping{})).bytes()));
  EXPECT_FALSE(decode_command(encode(1, Event(Hello{})).bytes()));
}

TEST(HelperProtocol, rejects_modes_out_of_range) {
  const auto good = bytes_of(encode(1, Command(SetMode{ports::ProbeMode::burst})));
  ASSERT_TRUE(decode_command(good));
  const auto rejects = [&good](std::size_t at, std::uint64_t value, std::size_t size) {
    auto bad = good;
    put(bad, kPayload + at, value, size);
    return !decode_command(bad);
  };
  EXPECT_TRUE(rejects(0, 3, 4)) << "mode";
  EXPECT_TRUE(rejects(4, 0, 4)) << "no source";
  EXPECT_TRUE(rejects(4, 4, 4)) << "unknown source";
  for (const std::size_t duration : {8UL, 16UL, 24UL, 32UL}) {
    EXPECT_TRUE(rejects(duration, 0, 8)) << "zero at " << duration;
    EXPECT_TRUE(rejects(duration, ~0ULL, 8)) << "negative at " << duration;
    EXPECT_TRUE(rejects(duration, 1ULL << 62, 8)) << "absurd at " << duration;
  }
  EXPECT_TRUE(rejects(40, 0, 8)) << "no samples in a burst";
  EXPECT_TRUE(rejects(40, 1ULL << 32, 8)) << "more samples than 32 bits hold";
}

TEST(HelperProtocol, rejects_negative_and_absurd_latencies) {
  const auto good = bytes_of(encode(1, Event(Sample{{core::ProbeSource::queue, false, 1us, 1us}})));
  ASSERT_TRUE(decode_event(good));
  for (const std::size_t at : {8UL, 16UL})
    for (const std::uint64_t value : {~0ULL, 1ULL << 63, 61'000'000'000ULL}) {
      auto bad = good;
      put(bad, kPayload + at, value, 8);
      EXPECT_FALSE(decode_event(bad)) << at << " " << value;
    }
  for (const std::size_t at : {0UL, 4UL}) {
    auto bad = good;
    put(bad, kPayload + at, 99, 4);
    EXPECT_FALSE(decode_event(bad)) << "enumeration at " << at;
  }
}

TEST(HelperProtocol, rejects_readings_that_cannot_be) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto rejects = [](auto change) {
    ports::GpuTelemetry telemetry{37, 51, 11, 400, 96, 300, {}, {}};
    change(telemetry);
    return !decode_event(encode(1, Event(Telemetry{telemetry})).bytes());
  };
  EXPECT_FALSE(rejects([](auto&) {}));
  EXPECT_TRUE(rejects([](auto& t) { t.busy_percent = 101; }));
  for (const double value : {nan, infinite, -infinite, -300.0, 65535.0}) {
    EXPECT_TRUE(rejects([value](auto& t) { t.temperature_celsius = value; })) << value;
    EXPECT_TRUE(rejects([value](auto& t) { t.power_watts = value; })) << value;
  }
  EXPECT_TRUE(rejects([](auto& t) { t.shader_clock_mhz = 0xffffffffU; }));
  EXPECT_TRUE(rejects([](auto& t) { t.vram_used_bytes = 18446744073709547520ULL; }));
  EXPECT_TRUE(rejects([](auto& t) { t.gtt_used_bytes = ~0ULL; }));
  EXPECT_TRUE(rejects([](auto& t) { t.level = static_cast<core::PerformanceLevel>(77); }));
}

}  // namespace
}  // namespace apusched::gpu_helper
