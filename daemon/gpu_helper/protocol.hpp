// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.hpp"
#include "ports/gpu.hpp"

/// Records between apuschedd and apusched-gpu-helper: one per SOCK_SEQPACKET message, each kind of
/// one fixed size, little-endian, versioned. Pure: no I/O. Neither side trusts the other.
namespace apusched::gpu_helper {

inline constexpr std::uint32_t kMagic = 0x41504847;  // "GHPA" in memory
inline constexpr std::uint16_t kProtocolVersion = 1;
/// Longest text in a status record, in bytes; longer text is cut.
inline constexpr std::size_t kStatusTextSize = 192;
/// No record is longer; a receive buffer one byte larger shows every oversized message.
inline constexpr std::size_t kMaxRecordSize = 256;

/// How the helper ends; the daemon turns it into a sentence.
enum class ExitCode : int {
  ok = 0,           ///< quit asked for, or the daemon closed the socket
  usage = 2,        ///< bad arguments or no usable socket
  queue_stuck = 3,  ///< a probe packet did not retire for many deadlines
  gpu_reset = 4,    ///< ROCr reported a hardware exception or a queue error
  bad_command = 5,  ///< the daemon sent something that is no command
  internal = 6,
  unavailable = 7,  ///< the probe could not be opened; a fresh process may be luckier
};

/// What the probe shall do. Limits (checked by decode): period 1 ms..10 s per source, deadline
/// 1 ms..10 s, burst gaps 1 ms..1 h, 1..1000 burst samples; at least one source unless off.
struct SetMode {
  ports::ProbeMode mode = ports::ProbeMode::off;
  bool queue = true;
  bool kernel = true;
  std::chrono::nanoseconds period{std::chrono::milliseconds(50)};
  std::chrono::nanoseconds deadline{std::chrono::milliseconds(250)};
  std::chrono::nanoseconds burst_interval{std::chrono::seconds(2)};
  std::chrono::nanoseconds burst_interval_max{std::chrono::seconds(30)};
  std::uint32_t burst_samples = 5;
  bool operator==(const SetMode&) const = default;
};
struct TelemetryRequest {
  bool operator==(const TelemetryRequest&) const = default;
};
struct Ping {
  bool operator==(const Ping&) const = default;
};
struct Quit {
  bool operator==(const Quit&) const = default;
};
using Command = std::variant<SetMode, TelemetryRequest, Ping, Quit>;

/// First record of a helper's life.
struct Hello {
  std::uint32_t pid = 0;
  bool rsmi = false;  ///< built with rocm-smi-lib and allowed to use it
  bool operator==(const Hello&) const = default;
};
struct Sample {
  ports::ProbeSample sample;
  /// Schedule slots skipped since the sample before, because the helper was late.
  std::uint64_t missed = 0;
};
struct Telemetry {
  ports::GpuTelemetry telemetry;
};
enum class StatusCode : std::uint32_t {
  ok = 0,           ///< probe running as asked, or off as asked
  limited = 1,      ///< runs, but not all that was asked for (no kernel for this ISA)
  unavailable = 2,  ///< no probe: no agent, the runtime refused
  stuck = 3,        ///< about to exit: a packet does not retire, or the GPU was reset
};
struct Status {
  StatusCode code = StatusCode::ok;
  std::string text;  ///< a sentence; printable ASCII after decode
  bool operator==(const Status&) const = default;
};
struct Pong {
  bool queue_open = false;  ///< the probe queue exists now
  bool operator==(const Pong&) const = default;
};
using Event = std::variant<Hello, Sample, Telemetry, Status, Pong>;

/// A record as it travels; `bytes()` is what goes into send().
class Record {
 public:
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.data(), size_}; }

 private:
  friend class RecordWriter;
  std::array<std::byte, kMaxRecordSize> data_{};
  std::size_t size_ = 0;
};

template <typename Message>
struct Sequenced {
  std::uint64_t sequence = 0;
  Message message;
};

[[nodiscard]] Record encode(std::uint64_t sequence, const Command& command);
[[nodiscard]] Record encode(std::uint64_t sequence, const Event& event);
/// `invalid_input` names the first thing that is wrong; never throws, never reads past `bytes`.
[[nodiscard]] core::Result<Sequenced<Command>> decode_command(std::span<const std::byte> bytes);
[[nodiscard]] core::Result<Sequenced<Event>> decode_event(std::span<const std::byte> bytes);

/// Keeps printable ASCII, '?' for the rest, at most `limit` bytes: text for a log or a terminal.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit);

}  // namespace apusched::gpu_helper
