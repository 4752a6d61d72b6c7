// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "ctl/render.hpp"

namespace apusched::ctl {

std::string render_daemon(const DaemonView& daemon, const Style& style) {
  const Tone tone = daemon.state == "degraded" ? Tone::attention
                    : daemon.state == "active" ? Tone::good
                                               : Tone::plain;
  std::string text =
      fmt::format("{} {}: {}, {}{}\n", style.paint(Tone::strong, "apuschedd"),
                  printable(daemon.version), style.paint(tone, printable(daemon.state)),
                  counted(daemon.process_count, "process", "processes"),
                  daemon.dry_run ? ", dry run: nothing is written" : "");
  for (const auto& reason : daemon.degraded)
    text += "  " + style.paint(Tone::attention, "degraded: ") + printable(reason) + "\n";
  return text;
}

std::string render_status(const StatusView& status, const Style& style) {
  std::string text = render_daemon(status.daemon, style);
  text += "\n" + render_gpus(status.gpus, style);
  for (const auto& process : status.processes) text += "\n" + render_process(process, style);
  if (status.processes.empty()) text += "\nno registered processes\n";
  return text;
}

}  // namespace apusched::ctl
