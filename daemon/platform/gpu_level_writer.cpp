// SPDX-License-Identifier: MIT
#include "platform/gpu_level_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "gpu_helper/level_line.hpp"
#include "platform/clean_spawn.hpp"
#include "platform/errno_error.hpp"

namespace apusched::platform {

using core::ErrorCode;
using ports::LevelReading;

namespace {

constexpr std::size_t kMaxWaiting = 32;
/// Its one line is shorter; the rest of a mad program's output is not kept.
constexpr std::size_t kMaxOutput = 1024;

struct Started {
  int pid = 0;
  UniqueFd output;
};

std::vector<std::string> command_line(const LevelWriterOptions& options, const LevelCall& call) {
  std::vector<std::string> words{options.program,
                                 "--sysfs-root",
                                 options.sysfs_root,
                                 "--gpu",
                                 call.gpu.text(),
                                 "--deadline-ms",
                                 std::to_string(options.deadline.count())};
  if (!call.change) {
    words.emplace_back("--read");
    return words;
  }
  words.insert(words.end(), {"--level", std::string(core::to_string(call.change->level)),
                             "--expect", std::string(core::to_string(call.change->expected))});
  if (options.dry_run) words.emplace_back("--dry-run");
  return words;
}

core::Result<Started> start(const LevelWriterOptions& options, const LevelCall& call) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return tl::unexpected(errno_error(errno, "create", "level writer pipe"));
  Started out{0, UniqueFd(ends[0])};
  const UniqueFd child_end(ends[1]);
  fcntl(out.output.get(), F_SETFL, O_NONBLOCK);
  const auto pid = spawn_clean(command_line(options, call), {{child_end.get(), 1}});
  if (!pid) return tl::unexpected(pid.error());
  out.pid = *pid;
  return out;
}

/// Takes what there is; false at end of file.
bool drain(int fd, std::string& text) {
  std::array<char, 512> buffer{};
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (size == 0) return false;
    const auto room = kMaxOutput - std::min(kMaxOutput, text.size());
    text.append(buffer.data(), std::min(static_cast<std::size_t>(size), room));
  }
}

core::Result<LevelReading> result_of(const core::PciAddress& gpu, const std::string& text,
                                     int status) {
  if (WIFSIGNALED(status))
    return core::fail(ErrorCode::failed, "performance level", gpu.text(),
                      "apusched-gpu-write was ended by signal " + std::to_string(WTERMSIG(status)));
  const auto level = gpu_helper::parse_level_line(text, gpu);
  if (!level) return tl::unexpected(level.error());
  if (WEXITSTATUS(status) != 0)
    return core::fail(ErrorCode::failed, "performance level", gpu.text(),
                      "apusched-gpu-write ended with code " + std::to_string(WEXITSTATUS(status)) +
                          " after a success");
  return LevelReading{*level};
}

tl::unexpected<core::Error> timed_out(const LevelWriterOptions& options,
                                      const core::PciAddress& gpu) {
  return core::fail(ErrorCode::timed_out, "performance level", gpu.text(),
                    "no answer within " + std::to_string(options.deadline.count()) +
                        " ms; the GPU may be in a reset");
}

void kill_writer(int pid) {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
}

}  // namespace

LevelWriterProcess::LevelWriterProcess(ports::EventLoop& loop, LevelWriterOptions options)
    : loop_(loop), options_(std::move(options)) {}

LevelWriterProcess::~LevelWriterProcess() {
  for (const auto& [address, gpu] : gpus_)
    if (gpu.running) kill_writer(gpu.running->pid);
}

void LevelWriterProcess::read(const core::PciAddress& gpu, Callback done) {
  enqueue({gpu, std::nullopt}, std::move(done));
}

void LevelWriterProcess::write(const core::PciAddress& gpu, core::PerformanceLevel level,
                               core::PerformanceLevel expected, Callback done) {
  enqueue({gpu, LevelCall::Change{level, expected}}, std::move(done));
}

void LevelWriterProcess::answer_later(Callback done, core::Result<LevelReading> result) {
  loop_.defer([alive = std::weak_ptr(alive_), done = std::move(done), result = std::move(result)] {
    if (!alive.expired()) done(result);
  });
}

void LevelWriterProcess::enqueue(LevelCall call, Callback done) {
  const auto gpu = call.gpu;
  auto& state = gpus_[gpu];
  if (state.running && !state.running->done)
    return answer_later(std::move(done),
                        core::fail(ErrorCode::timed_out, "performance level", gpu.text(),
                                   "an earlier access to this GPU still hangs in the kernel"));
  if (state.waiting.size() >= kMaxWaiting)
    return answer_later(std::move(done), core::fail(ErrorCode::limit_reached, "performance level",
                                                    gpu.text(), "too many level changes at once"));
  state.waiting.push_back({std::move(call), std::move(done)});
  start_next(gpu);
}

void LevelWriterProcess::start_next(const core::PciAddress& gpu) {
  auto& state = gpus_[gpu];
  while (!state.running && !state.waiting.empty()) {
    auto next = std::move(state.waiting.front());
    state.waiting.pop_front();
    auto started = start(options_, next.call);
    if (!started) {
      answer_later(std::move(next.done), tl::unexpected(started.error()));
      continue;
    }
    state.running = std::make_unique<Running>();
    auto& run = *state.running;
    run.pid = started->pid;
    run.output = std::move(started->output);
    run.done = std::move(next.done);
    run.output_watch = loop_.watch_readable(run.output.get(), [this, gpu] { on_output(gpu); });
    run.exit_watch = loop_.watch_child(run.pid, [this, gpu](int status) { on_exit(gpu, status); });
    run.deadline = loop_.after(options_.deadline, [this, gpu] { on_deadline(gpu); });
  }
}

void LevelWriterProcess::on_output(const core::PciAddress& gpu) {
  auto& run = *gpus_[gpu].running;
  if (!drain(run.output.get(), run.text)) run.output_watch.reset();
}

/// A process in uninterruptible sleep outlives the kill: its callers are told, and its GPU stays
/// busy until it is reaped.
void LevelWriterProcess::on_deadline(const core::PciAddress& gpu) {
  auto& state = gpus_[gpu];
  state.running->deadline.reset();
  kill_writer(state.running->pid);
  answer_later(std::exchange(state.running->done, nullptr), timed_out(options_, gpu));
  while (!state.waiting.empty()) {
    answer_later(std::move(state.waiting.front().done), timed_out(options_, gpu));
    state.waiting.pop_front();
  }
}

void LevelWriterProcess::on_exit(const core::PciAddress& gpu, int status) {
  auto run = std::move(gpus_[gpu].running);
  drain(run->output.get(), run->text);
  if (run->done) answer_later(std::move(run->done), result_of(gpu, run->text, status));
  start_next(gpu);
}

core::Result<LevelReading> run_level_call_blocking(const LevelWriterOptions& options,
                                                   const LevelCall& call) {
  auto started = start(options, call);
  if (!started) return tl::unexpected(started.error());
  const auto end = std::chrono::steady_clock::now() + options.deadline;
  std::string text;
  bool open = true;
  while (open) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd output{started->output.get(), POLLIN, 0};
    if (poll(&output, 1, static_cast<int>(left.count())) > 0)
      open = drain(started->output.get(), text);
  }
  if (open) kill_writer(started->pid);
  // End of file comes a moment before the exit; one that cannot die is left behind.
  const UniqueFd exit_fd(static_cast<int>(::syscall(SYS_pidfd_open, started->pid, 0)));
  pollfd exited{exit_fd.get(), POLLIN, 0};
  poll(&exited, 1, 1000);
  int status = 0;
  const bool reaped = waitpid(started->pid, &status, WNOHANG) == started->pid;
  if (!reaped) kill_writer(started->pid);
  if (open || !reaped) return timed_out(options, call.gpu);
  return result_of(call.gpu, text, status);
}

core::Result<LevelReading> write_level_blocking(const LevelWriterOptions& options,
                                                const core::PciAddress& gpu,
                                                core::PerformanceLevel level,
                                                core::PerformanceLevel expected) {
  return run_level_call_blocking(options, {gpu, LevelCall::Change{level, expected}});
}

}  // namespace apusched::platform
