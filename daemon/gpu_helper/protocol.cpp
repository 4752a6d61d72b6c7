// SPDX-License-Identifier: MIT
#include "gpu_helper/protocol.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <type_traits>

namespace apusched::gpu_helper {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

enum class Kind : std::uint16_t {
  set_mode = 1,
  telemetry_request = 2,
  ping = 3,
  quit = 4,
  hello = 16,
  sample = 17,
  telemetry = 18,
  status = 19,
  pong = 20,
};

constexpr std::size_t kHeaderSize = 16;
/// A latency beyond this is a broken clock, not a slow GPU: every wait is bounded by 10 s.
constexpr nanoseconds kMaxLatency = 60s;
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 50;

constexpr std::size_t payload_size(Kind kind) {
  switch (kind) {
    case Kind::set_mode:
      return 48;
    case Kind::telemetry_request:
    case Kind::ping:
    case Kind::quit:
      return 0;
    case Kind::hello:
      return 8;
    case Kind::sample:
      return 32;
    case Kind::telemetry:
      return 56;
    case Kind::status:
      return 8 + kStatusTextSize;
    case Kind::pong:
      return 8;
  }
  return 0;
}
static_assert(kHeaderSize + payload_size(Kind::status) <= kMaxRecordSize);

bool is_command(Kind kind) {
  return kind >= Kind::set_mode && kind <= Kind::quit;
}
bool is_event(Kind kind) {
  return kind >= Kind::hello && kind <= Kind::pong;
}

}  // namespace

class RecordWriter {
 public:
  RecordWriter(Kind kind, std::uint64_t sequence) {
    record_.size_ = kHeaderSize + payload_size(kind);
    number(kMagic);
    number(kProtocolVersion);
    number(static_cast<std::uint16_t>(kind));
    number(sequence);
  }
  template <typename T>
    requires std::is_unsigned_v<T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      record_.data_[at_++] = static_cast<std::byte>((value >> (8 * i)) & 0xffU);
  }
  void flag(bool value) { number<std::uint32_t>(value ? 1 : 0); }
  void duration(nanoseconds value) { number(static_cast<std::uint64_t>(value.count())); }
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view value) {
    std::transform(value.begin(), value.end(), record_.data_.begin() + static_cast<long>(at_),
                   [](char c) { return static_cast<std::byte>(c); });
    at_ += value.size();
  }
  [[nodiscard]] Record take() const { return record_; }

 private:
  Record record_;
  std::size_t at_ = 0;
};

namespace {

/// Reads a payload whose exact size was checked before.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      value = static_cast<T>(value | static_cast<T>(byte << (8 * i)));
    }
    return value;
  }
  std::optional<bool> flag() {
    const auto value = number<std::uint32_t>();
    return value > 1 ? std::nullopt : std::optional(value == 1);
  }
  /// No value unless 0 ≤ duration ≤ limit.
  std::optional<nanoseconds> duration(nanoseconds least, nanoseconds limit) {
    const auto value = number<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(limit.count())) return std::nullopt;
    const nanoseconds result(static_cast<std::int64_t>(value));
    return result < least ? std::nullopt : std::optional(result);
  }
  double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
  std::string_view text(std::size_t size) {
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += size;
    return {start, size};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

tl::unexpected<core::Error> reject(std::string detail) {
  return core::fail(core::ErrorCode::invalid_input, "decode", "helper record", std::move(detail));
}

core::Result<Command> read_set_mode(Reader in) {
  SetMode out;
  const auto mode = in.number<std::uint32_t>();
  if (mode > 2) return reject("unknown probe mode");
  out.mode = static_cast<ports::ProbeMode>(mode);
  const auto sources = in.number<std::uint32_t>();
  if (sources > 3) return reject("unknown probe source");
  out.queue = (sources & 1U) != 0;
  out.kernel = (sources & 2U) != 0;
  if (out.mode != ports::ProbeMode::off && sources == 0) return reject("no probe source");
  const auto period = in.duration(1ms, 10s);
  const auto deadline = in.duration(1ms, 10s);
  const auto gap = in.duration(1ms, 1h);
  const auto gap_max = in.duration(1ms, 1h);
  if (!period || !deadline || !gap || !gap_max) return reject("a duration is out of range");
  out.period = *period;
  out.deadline = *deadline;
  out.burst_interval = *gap;
  out.burst_interval_max = *gap_max;
  const auto samples = in.number<std::uint64_t>();
  if (samples < 1 || samples > 1000) return reject("burst samples out of range");
  out.burst_samples = static_cast<std::uint32_t>(samples);
  return out;
}

core::Result<Event> read_sample(Reader in) {
  Sample out;
  const auto source = in.number<std::uint32_t>();
  if (source > 1) return reject("unknown sample source");
  out.sample.source = static_cast<core::ProbeSource>(source);
  const auto flags = in.number<std::uint32_t>();
  if (flags > 3) return reject("unknown sample flags");
  out.sample.lost = (flags & 1U) != 0;
  const auto latency = in.duration(0ns, kMaxLatency);
  const auto device = in.duration(0ns, kMaxLatency);
  if (!latency || !device) return reject("a latency is negative or absurd");
  out.sample.latency = *latency;
  if ((flags & 2U) != 0) out.sample.device = *device;
  out.missed = in.number<std::uint64_t>();
  return out;
}

std::uint32_t level_number(const std::optional<core::PerformanceLevel>& level) {
  return level ? static_cast<std::uint32_t>(*level) + 1 : 0;
}
/// Outer: decoded at all; inner: carries a level.
std::optional<std::optional<core::PerformanceLevel>> read_level(Reader& in) {
  const auto value = in.number<std::uint32_t>();
  if (value > level_number(core::PerformanceLevel::perf_determinism)) return std::nullopt;
  std::optional<core::PerformanceLevel> level;
  if (value != 0) level = static_cast<core::PerformanceLevel>(value - 1);
  return level;
}

core::Result<Event> read_telemetry(Reader in) {
  ports::GpuTelemetry out;
  const auto present = in.number<std::uint32_t>();
  if (present > 63) return reject("unknown telemetry fields");
  const auto has = [present](unsigned bit) { return ((present >> bit) & 1U) != 0; };
  const auto busy = in.number<std::uint32_t>();
  const auto temperature = in.real();
  const auto power = in.real();
  const auto clock = in.number<std::uint64_t>();
  const auto vram = in.number<std::uint64_t>();
  const auto gtt = in.number<std::uint64_t>();
  const auto level = read_level(in);
  const auto level_rsmi = read_level(in);
  if (!level || !level_rsmi) return reject("unknown performance level");
  if (has(0) && busy > 100) return reject("busy over 100 percent");
  if (has(1) && !(std::isfinite(temperature) && temperature >= -60 && temperature <= 250))
    return reject("absurd temperature");
  if (has(2) && !(std::isfinite(power) && power >= 0 && power <= 2000))
    return reject("absurd power");
  if (has(3) && clock > 20000) return reject("absurd clock");
  if ((has(4) && vram > kMaxMemory) || (has(5) && gtt > kMaxMemory))
    return reject("absurd memory use");
  if (has(0)) out.busy_percent = busy;
  if (has(1)) out.temperature_celsius = temperature;
  if (has(2)) out.power_watts = power;
  if (has(3)) out.shader_clock_mhz = static_cast<std::uint32_t>(clock);
  if (has(4)) out.vram_used_bytes = vram;
  if (has(5)) out.gtt_used_bytes = gtt;
  out.level = *level;
  out.level_rsmi = *level_rsmi;
  return Telemetry{out};
}

core::Result<Event> read_status(Reader in) {
  const auto code = in.number<std::uint32_t>();
  if (code > static_cast<std::uint32_t>(StatusCode::stuck)) return reject("unknown status code");
  const auto size = in.number<std::uint32_t>();
  if (size > kStatusTextSize) return reject("status text longer than its record");
  return Status{static_cast<StatusCode>(code), printable(in.text(size), kStatusTextSize)};
}

struct Header {
  Kind kind;
  std::uint64_t sequence;
};

core::Result<Header> read_header(std::span<const std::byte> bytes, bool (*wanted)(Kind)) {
  if (bytes.size() < kHeaderSize) return reject("shorter than a header");
  Reader in(bytes);
  if (in.number<std::uint32_t>() != kMagic) return reject("wrong magic number");
  const auto version = in.number<std::uint16_t>();
  if (version != kProtocolVersion)
    return reject("protocol version " + std::to_string(version) + ", expected " +
                  std::to_string(kProtocolVersion));
  const auto kind = static_cast<Kind>(in.number<std::uint16_t>());
  if (!wanted(kind)) return reject("unknown kind");
  if (bytes.size() != kHeaderSize + payload_size(kind)) return reject("wrong size for its kind");
  return Header{kind, in.number<std::uint64_t>()};
}

struct CommandEncoder {
  std::uint64_t sequence;
  Record operator()(const SetMode& mode) const {
    RecordWriter out(Kind::set_mode, sequence);
    out.number(static_cast<std::uint32_t>(mode.mode));
    out.number((mode.queue ? 1U : 0U) | (mode.kernel ? 2U : 0U));
    out.duration(mode.period);
    out.duration(mode.deadline);
    out.duration(mode.burst_interval);
    out.duration(mode.burst_interval_max);
    out.number<std::uint64_t>(mode.burst_samples);
    return out.take();
  }
  Record operator()(const TelemetryRequest&) const {
    return RecordWriter(Kind::telemetry_request, sequence).take();
  }
  Record operator()(const Ping&) const { return RecordWriter(Kind::ping, sequence).take(); }
  Record operator()(const Quit&) const { return RecordWriter(Kind::quit, sequence).take(); }
};

struct EventEncoder {
  std::uint64_t sequence;
  Record operator()(const Hello& hello) const {
    RecordWriter out(Kind::hello, sequence);
    out.number(hello.pid);
    out.flag(hello.rsmi);
    return out.take();
  }
  Record operator()(const Sample& sample) const {
    RecordWriter out(Kind::sample, sequence);
    out.number(static_cast<std::uint32_t>(sample.sample.source));
    out.number((sample.sample.lost ? 1U : 0U) | (sample.sample.device ? 2U : 0U));
    out.duration(sample.sample.latency);
    out.duration(sample.sample.device.value_or(0ns));
    out.number(sample.missed);
    return out.take();
  }
  Record operator()(const Telemetry& event) const {
    const auto& t = event.telemetry;
    const auto bit = [](bool set, unsigned at) { return set ? 1U << at : 0U; };
    RecordWriter out(Kind::telemetry, sequence);
    out.number(bit(t.busy_percent.has_value(), 0) | bit(t.temperature_celsius.has_value(), 1) |
               bit(t.power_watts.has_value(), 2) | bit(t.shader_clock_mhz.has_value(), 3) |
               bit(t.vram_used_bytes.has_value(), 4) | bit(t.gtt_used_bytes.has_value(), 5));
    out.number(t.busy_percent.value_or(0));
    out.real(t.temperature_celsius.value_or(0));
    out.real(t.power_watts.value_or(0));
    out.number<std::uint64_t>(t.shader_clock_mhz.value_or(0));
    out.number(t.vram_used_bytes.value_or(0));
    out.number(t.gtt_used_bytes.value_or(0));
    out.number(level_number(t.level));
    out.number(level_number(t.level_rsmi));
    return out.take();
  }
  Record operator()(const Status& status) const {
    const auto text = printable(status.text, kStatusTextSize);
    RecordWriter out(Kind::status, sequence);
    out.number(static_cast<std::uint32_t>(status.code));
    out.number(static_cast<std::uint32_t>(text.size()));
    out.text(text);
    return out.take();
  }
  Record operator()(const Pong& pong) const {
    RecordWriter out(Kind::pong, sequence);
    out.flag(pong.queue_open);
    out.number<std::uint32_t>(0);
    return out.take();
  }
};

core::Result<Command> read_command(Kind kind, Reader in) {
  switch (kind) {
    case Kind::set_mode:
      return read_set_mode(in);
    case Kind::telemetry_request:
      return TelemetryRequest{};
    case Kind::ping:
      return Ping{};
    case Kind::quit:
      return Quit{};
    default:
      return reject("unknown kind");
  }
}

core::Result<Event> read_event(Kind kind, Reader in) {
  switch (kind) {
    case Kind::sample:
      return read_sample(in);
    case Kind::telemetry:
      return read_telemetry(in);
    case Kind::status:
      return read_status(in);
    case Kind::hello: {
      const auto pid = in.number<std::uint32_t>();
      const auto rsmi = in.flag();
      if (!rsmi) return reject("a flag is neither 0 nor 1");
      return Hello{pid, *rsmi};
    }
    case Kind::pong: {
      const auto open = in.flag();
      if (!open) return reject("a flag is neither 0 nor 1");
      return Pong{*open};
    }
    default:
      return reject("unknown kind");
  }
}

}  // namespace

Record encode(std::uint64_t sequence, const Command& command) {
  return std::visit(CommandEncoder{sequence}, command);
}

Record encode(std::uint64_t sequence, const Event& event) {
  return std::visit(EventEncoder{sequence}, event);
}

core::Result<Sequenced<Command>> decode_command(std::span<const std::byte> bytes) {
  const auto header = read_header(bytes, is_command);
  if (!header) return tl::unexpected(header.error());
  const auto command = read_command(header->kind, Reader(bytes.subspan(kHeaderSize)));
  if (!command) return tl::unexpected(command.error());
  return Sequenced<Command>{header->sequence, *command};
}

core::Result<Sequenced<Event>> decode_event(std::span<const std::byte> bytes) {
  const auto header = read_header(bytes, is_event);
  if (!header) return tl::unexpected(header.error());
  auto event = read_event(header->kind, Reader(bytes.subspan(kHeaderSize)));
  if (!event) return tl::unexpected(event.error());
  return Sequenced<Event>{header->sequence, std::move(*event)};
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out(text.substr(0, limit));
  for (char& c : out)
    if (c < 0x20 || c > 0x7e) c = '?';
  return out;
}

}  // namespace apusched::gpu_helper
