// SPDX-License-Identifier: MIT
#include "report/log_report.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

namespace apusched::report {
namespace {

/// systemd.exec(5): JOURNAL_STREAM holds device and inode of the stream it connected.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): at start
  struct stat info {};
  if (stream == nullptr || ::fstat(2, &info) != 0) return false;
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) == stream;
}

}  // namespace

LogReport::LogReport(const std::string& level) {
  spdlog::sink_ptr sink;
  if (stderr_is_journal())
    sink = std::make_shared<spdlog::sinks::systemd_sink_st>("apuschedd");
  else
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_st>();
  log_ = std::make_shared<spdlog::logger>("apuschedd", std::move(sink));
  log_->set_pattern("%l: %v");
  const auto parsed = spdlog::level::from_str(level);
  log_->set_level(parsed == spdlog::level::off ? spdlog::level::info : parsed);
  log_->flush_on(spdlog::level::trace);
}

LogReport::~LogReport() = default;

void LogReport::registered(core::RegistrationId id, const core::ProcessKey& process,
                           std::string_view profile) {
  log_->info("process {} registered as {} with profile {}", process.pid.value(), id.value(),
             profile);
}

void LogReport::released(core::RegistrationId id, std::string_view why) {
  log_->info("registration {} released: {}", id.value(), why);
}

void LogReport::lever(core::RegistrationId id, const core::LeverStatus& status) {
  const bool good =
      status.outcome == core::Outcome::applied || status.outcome == core::Outcome::dry_run;
  log_->log(good ? spdlog::level::debug : spdlog::level::info,
            "registration {}: {} {} on {}: {}{}{}", id.value(), core::to_string(status.kind),
            status.value, status.target.empty() ? "-" : status.target,
            core::to_string(status.outcome), status.detail.empty() ? "" : ": ", status.detail);
}

void LogReport::restored(const std::string& resource, std::string_view value) {
  log_->info("{} restored to {}", resource, value);
}

void LogReport::degraded(std::string_view what, std::string_view reason) {
  log_->warn("{} degraded: {}", what, reason);
}

void LogReport::recovered(std::string_view what) {
  log_->info("{} works again", what);
}
void LogReport::control(core::Pid pid, core::Latency what, const core::ControlEvent& event) {
  const auto* of = what == core::Latency::dispatch ? "GPU" : "CPU";
  if (event.what == core::ControlEvent::What::state)
    log_->info("process {}: {}: {}", pid.value(), of, event.text);
  else if (event.before > 0 || event.after > 0)
    log_->info("process {}: {} {}: {} (wait for the {} {:.0f} µs before, {:.0f} µs after)",
               pid.value(), event.rung, core::to_string(event.what), event.text, of, event.before,
               event.after);
  else
    log_->info("process {}: {} {}: {}", pid.value(), event.rung, core::to_string(event.what),
               event.text);
}
void LogReport::warning(std::string_view text) {
  log_->warn("{}", text);
}
void LogReport::info(std::string_view text) {
  log_->info("{}", text);
}
void LogReport::error(std::string_view text) {
  log_->error("{}", text);
}

}  // namespace apusched::report
