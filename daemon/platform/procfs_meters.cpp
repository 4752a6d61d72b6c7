// SPDX-License-Identifier: MIT
#include "platform/procfs_meters.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <limits>
#include <string>

#include "platform/errno_error.hpp"
#include "platform/proc_dir.hpp"
#include "platform/proc_parse.hpp"

namespace apusched::platform {
namespace {

using std::chrono::nanoseconds;

/// Takes one number and the blanks before it off the front.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

std::optional<nanoseconds> take_nanoseconds(std::string_view& text) {
  const auto value = take_number(text);
  if (!value || *value > static_cast<std::uint64_t>(nanoseconds::max().count()))
    return std::nullopt;
  return nanoseconds(static_cast<std::int64_t>(*value));
}

/// Kept open from the first reading on; at most one buffer of it.
core::Result<std::string_view> read_again(UniqueFd& fd, const char* path,
                                          std::array<char, 256>& buffer) {
  if (!fd) fd.reset(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return tl::unexpected(errno_error(errno, "open", path));
  const auto size = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return tl::unexpected(errno_error(errno, "read", path));
  return std::string_view(buffer.data(), static_cast<std::size_t>(size));
}

class ProcfsThreadMeter final : public ports::ThreadMeter {
 public:
  ProcfsThreadMeter(UniqueFd fd, core::Tid tid) : fd_(std::move(fd)), tid_(tid) {}

  core::Result<ports::ThreadTimes> read() override {
    std::array<char, 96> text{};
    const auto size = ::pread(fd_.get(), text.data(), text.size(), 0);
    if (size < 0)
      return tl::unexpected(errno_error(errno, "read schedstat of", core::to_string(tid_)));
    const auto times =
        parse_schedstat(std::string_view(text.data(), static_cast<std::size_t>(size)));
    if (!times)
      return core::fail(core::ErrorCode::unsupported, "read schedstat of", core::to_string(tid_),
                        "the kernel was built without CONFIG_SCHED_INFO");
    return *times;
  }

 private:
  UniqueFd fd_;
  core::Tid tid_;
};

}  // namespace

std::optional<ports::ThreadTimes> parse_schedstat(std::string_view text) {
  const auto ran = take_nanoseconds(text);
  const auto waited = take_nanoseconds(text);
  const auto slices = take_number(text);
  if (!ran || !waited || !slices) return std::nullopt;
  return ports::ThreadTimes{*ran, *waited, *slices};
}

std::optional<std::uint32_t> parse_runnable(std::string_view text) {
  for (int average = 0; average < 3; ++average) {
    const auto blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
  }
  const auto running = take_number(text);
  if (!running || !text.starts_with('/') || *running > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*running);
}

std::optional<ports::MachineTimes> parse_machine_stat(std::string_view text,
                                                      long ticks_per_second) {
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kIoWait = 4;
  constexpr std::size_t kFields = 8;  // user nice system idle iowait irq softirq steal
  if (!text.starts_with("cpu ") || ticks_per_second <= 0) return std::nullopt;
  text.remove_prefix(4);
  const auto tick = nanoseconds(std::chrono::seconds(1)) / ticks_per_second;
  if (tick.count() == 0) return std::nullopt;
  const auto most = static_cast<std::uint64_t>(nanoseconds::max() / tick) / kFields;
  std::uint64_t all = 0;
  std::uint64_t idle = 0;
  for (std::size_t field = 0; field < kFields; ++field) {
    const auto value = take_number(text);
    if (!value || *value > most) return std::nullopt;
    all += *value;
    if (field == kIdle || field == kIoWait) idle += *value;
  }
  return ports::MachineTimes{static_cast<std::int64_t>(all - idle) * tick,
                             static_cast<std::int64_t>(all) * tick, 0};
}

core::Result<std::unique_ptr<ports::ThreadMeter>> ProcfsMeters::open(core::Pid pid, core::Tid tid) {
  const auto path =
      "/proc/" + core::to_string(pid) + "/task/" + core::to_string(tid) + "/schedstat";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return tl::unexpected(errno_error(errno, "open", path));
  return std::make_unique<ProcfsThreadMeter>(std::move(fd), tid);
}

core::Result<std::vector<ProcfsMeters::ThreadRan>> ProcfsMeters::threads(core::Pid pid,
                                                                         std::uint32_t limit) {
  auto tasks = ProcDir::open("/proc/" + core::to_string(pid) + "/task");
  if (!tasks) return tl::unexpected(tasks.error());
  std::vector<ThreadRan> result;
  ProcDir::Text text;
  const auto listed = tasks->for_each([&](core::Pid number) {
    const auto ran = parse_schedstat_run(tasks->read(number, "schedstat", text)).value_or(0);
    result.push_back(
        {*core::Tid::make(number.value()), nanoseconds(static_cast<std::int64_t>(ran))});
    return result.size() < limit;
  });
  if (!listed) return tl::unexpected(listed.error());
  return result;
}

core::Result<nanoseconds> cpu_time_of(core::Pid pid) {
  // What clock_getcpuclockid(3) answers, without the system call by which it looks whether there is
  // such a process. Any process may read any other's CPU clock (linux
  // kernel/time/posix-cpu-timers.c, CPUCLOCK_SCHED).
  constexpr clockid_t kScheduled = 2;
  const clockid_t clock = (~static_cast<clockid_t>(pid.value()) * 8) | kScheduled;
  timespec time{};
  if (::clock_gettime(clock, &time) != 0)
    return tl::unexpected(
        errno_error(errno == EINVAL ? ESRCH : errno, "read the CPU time of", core::to_string(pid)));
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

core::Result<nanoseconds> ProcfsMeters::process(core::Pid pid) {
  return cpu_time_of(pid);
}

core::Result<ports::MachineTimes> ProcfsMeters::machine() {
  std::array<char, 256> buffer{};
  const auto text = read_again(stat_, "/proc/stat", buffer);
  if (!text) return tl::unexpected(text.error());
  static const long ticks = ::sysconf(_SC_CLK_TCK);
  auto times = parse_machine_stat(*text, ticks);
  if (!times)
    return core::fail(core::ErrorCode::failed, "read", "/proc/stat", "it has another form");
  const auto load = read_again(loadavg_, "/proc/loadavg", buffer);
  if (load) times->runnable = parse_runnable(*load).value_or(0);
  return *times;
}

}  // namespace apusched::platform
