// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/render.hpp"
#include "ctl_sample_views.hpp"

namespace apusched::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

const Style kPlain(false);

TEST(RenderStatus, shows_daemon_gpu_latency_and_every_lever) {
  EXPECT_EQ(render_status(sample_status(), kPlain),
            "apuschedd 0.1.0: active, 1 process\n"
            "\n"
            "gpu 0000:04:00.0  AMD Radeon 680M (gfx1035, 12 CUs)\n"
            "  level      high (set by apusched)\n"
            "  queues     3 of 24\n"
            "  readings   busy 87 %, 18.2 W\n"
            "  probe      continuous, helper ready\n"
            "  LATENCY BY     P50      P95      P99      MAX       SAMPLES  LOST\n"
            "  queue       8.1 µs  12.0 µs  45.0 µs  2.30 ms  1200 of 5000     2\n"
            "\n"
            "process 4711  /usr/bin/llama-server  llm-interactive (critical)\n"
            "  14 threads in 1 process, uid 1000, asked for by dbus:0\n"
            "  unit llama.service, queues on 0000:04:00.0\n"
            "  LEVER       OUTCOME      VALUE  TARGET         WHY\n"
            "  nice        applied      -10    14 threads     acts within llama.service\n"
            "  autogroup   unsupported  -10                   a cpu cgroup overrides autogroups\n"
            "  cpu_weight  pending      1000   llama.service\n");
}

TEST(RenderStatus, what_is_held_for_a_target_comes_last_in_the_order_of_trying) {
  auto status = sample_status();
  for (const auto* name : {"freezer", "energy_preference", "cpu_latency"})
    status.processes.front().levers[name] = {"standby", "", "", ""};
  const auto text = render_status(status, kPlain);
  EXPECT_LT(text.find("cpu_weight"), text.find("cpu_latency"));
  EXPECT_LT(text.find("cpu_latency"), text.find("energy_preference"));
  EXPECT_LT(text.find("energy_preference"), text.find("freezer"));
  EXPECT_NE(text.find("freezer"), std::string::npos);
}

TEST(RenderStatus, says_what_is_missing_instead_of_showing_nothing) {
  StatusView status;
  status.daemon = {"0.1.0", "degraded", {"no GPU: /sys/class/kfd is absent"}, false, 0, {}};
  EXPECT_EQ(render_status(status, kPlain),
            "apuschedd 0.1.0: degraded, 0 processes\n"
            "  degraded: no GPU: /sys/class/kfd is absent\n"
            "\n"
            "no GPU: only CPU settings apply\n"
            "\n"
            "no registered processes\n");
}

TEST(RenderStatus, says_when_nothing_is_written) {
  auto status = sample_status();
  status.daemon.dry_run = true;
  EXPECT_THAT(render_status(status, kPlain), HasSubstr("dry run: nothing is written"));
}

TEST(RenderGpu, a_reading_that_is_missing_is_left_out) {
  auto gpu = sample_gpu();
  gpu.telemetry = {};
  gpu.dispatch_latency.clear();
  const auto text = render_gpus({gpu}, kPlain);
  EXPECT_THAT(text, HasSubstr("  readings   no readings\n"));
  EXPECT_THAT(text, HasSubstr("  no latency samples\n"));
}

TEST(RenderGpu, tells_whose_the_performance_level_is) {
  auto gpu = sample_gpu();
  gpu.performance_level_owner = "other";
  EXPECT_THAT(render_gpus({gpu}, kPlain), HasSubstr("high (changed by somebody else, left alone)"));
  gpu.performance_level_owner = "";
  EXPECT_THAT(render_gpus({gpu}, kPlain), HasSubstr("level      high\n"));
  gpu.performance_level = "";
  EXPECT_THAT(render_gpus({gpu}, kPlain), HasSubstr("level      unknown\n"));
}

TEST(RenderGpu, shows_that_two_readings_of_the_level_differ) {
  auto gpu = sample_gpu();
  gpu.telemetry.level = "high";
  gpu.telemetry.level_rocm_smi = "high";
  EXPECT_THAT(render_gpus({gpu}, kPlain), Not(HasSubstr("rocm-smi")));
  gpu.telemetry.level_rocm_smi = "auto";
  EXPECT_THAT(render_gpus({gpu}, kPlain), HasSubstr("rocm-smi reads level auto"));
}

TEST(RenderList, is_one_aligned_line_per_process) {
  auto other = sample_process();
  other.pid = 7;
  other.unit = "";
  EXPECT_EQ(render_list({sample_process(), other}, kPlain),
            " PID  PROFILE          CLASS     THREADS  UNIT           EXECUTABLE\n"
            "4711  llm-interactive  critical       14  llama.service  /usr/bin/llama-server\n"
            "   7  llm-interactive  critical       14  -              /usr/bin/llama-server\n");
}

TEST(Render, control_characters_of_a_hostile_name_do_not_reach_the_terminal) {
  auto process = sample_process();
  process.executable = "/tmp/\x1b[2J\nevil\xc2\x9b";
  for (const auto& text : {render_list({process}, kPlain), render_process(process, kPlain)}) {
    EXPECT_THAT(text, HasSubstr("/tmp/?[2J?evil?"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
}

TEST(Render, colour_never_changes_the_alignment) {
  std::string painted = render_status(sample_status(), Style(true));
  EXPECT_NE(painted.find('\x1b'), std::string::npos);
  for (auto at = painted.find('\x1b'); at != std::string::npos; at = painted.find('\x1b'))
    painted.erase(at, painted.find('m', at) + 1 - at);
  EXPECT_EQ(painted, render_status(sample_status(), kPlain));
}

TEST(WantsColour, only_on_a_capable_terminal_without_no_color) {
  EXPECT_TRUE(wants_colour(true, std::nullopt, "xterm"));
  EXPECT_TRUE(wants_colour(true, "", std::nullopt));
  EXPECT_FALSE(wants_colour(false, std::nullopt, "xterm"));
  EXPECT_FALSE(wants_colour(true, "1", "xterm"));
  EXPECT_FALSE(wants_colour(true, std::nullopt, "dumb"));
}

TEST(Human, durations_change_their_unit_where_they_grow) {
  using std::chrono::nanoseconds;
  EXPECT_EQ(human(nanoseconds{0}), "0 ns");
  EXPECT_EQ(human(nanoseconds{999}), "999 ns");
  EXPECT_EQ(human(nanoseconds{1000}), "1.0 µs");
  EXPECT_EQ(human(nanoseconds{1500000}), "1.50 ms");
  EXPECT_EQ(human(nanoseconds{2000000000}), "2.00 s");
}

TEST(Human, bytes_change_their_unit_where_they_grow) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{512} << 20U), "512 MiB");
}

}  // namespace
}  // namespace apusched::ctl
