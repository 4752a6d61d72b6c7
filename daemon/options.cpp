// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace apusched {

tl::expected<Options, int> parse_options(int argc, char** argv) {
  Options options;
  options.gpu_helper = std::string(APUSCHED_LIBEXECDIR) + "/apusched-gpu-helper";
  options.gpu_write = std::string(APUSCHED_LIBEXECDIR) + "/apusched-gpu-write";
  options.freezer = std::string(APUSCHED_LIBEXECDIR) + "/apusched-freezer";
  options.agent_library = APUSCHED_AGENT_LIBRARY;
  CLI::App app("Keeps GPU dispatch latency low for AI inference on AMD APUs.", "apuschedd");
  app.set_version_flag("--version", std::string("apuschedd ") + APUSCHED_VERSION);
  const auto* config = app.add_option("--config", options.config_file, "Configuration file");
  app.add_flag("--check-config", options.check_config, "Check the configuration and exit");
  app.add_flag("--dry-run", options.dry_run, "Change nothing; show what would be changed");
  app.add_flag("--restore", options.restore,
               "Put back what a daemon that is gone left changed, and exit");
  app.add_option("--bus", options.bus, "system, session, or the address of a bus");
  app.add_option("--sysfs-root", options.sysfs_root, "Where to look for sysfs");
  app.add_option("--cgroup-root", options.cgroup_root, "Where to look for cgroup file systems");
  app.add_option("--cpu-latency-device", options.cpu_latency_device,
                 "What takes the limit on CPU latency");
  app.add_option("--runtime-dir", options.runtime_dir, "Where the ledger is kept (a tmpfs)");
  app.add_option("--gpu-helper", options.gpu_helper, "Program that owns the GPU runtime");
  app.add_option("--gpu-write", options.gpu_write, "Program that writes performance levels");
  app.add_option("--freezer", options.freezer, "Program that stops background units");
  app.add_option("--agent-library", options.agent_library, "What apuschedctl run loads");
  app.add_option("--systemd-control-dir", options.systemd_control_dir,
                 "Where systemd keeps runtime drop-ins");
  app.add_option("--record", options.record, "Write every decision of the control loop there");
  app.add_option("--replay", options.replay,
                 "Decide a record again, say whether it comes out the same, and exit");
  app.add_option("--log-level", options.log_level, "What to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(app.exit(error) == 0 ? static_cast<int>(kOk) : static_cast<int>(kUsage));
  }
  options.config_given = config->count() > 0;
  return options;
}

}  // namespace apusched
