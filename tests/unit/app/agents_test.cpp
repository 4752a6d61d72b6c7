// SPDX-License-Identifier: MIT
#include <algorithm>

#include "service_fixture.hpp"

namespace apusched::app {
namespace {

constexpr const char* kGpu = "0000:04:00.0";

class AgentsTest : public ServiceTest {
 protected:
  void SetUp() override {
    topology_.gpus.front().geometry = {12, 1, 2, 1, true};
    auto& critical = config_.profiles["critical"];
    critical.name = "critical";
    critical.cu_weight = core::CuWeight::of<200>();
    critical.cu_exclusive = true;
    critical.queue_priority = core::QueuePriority::high;
    auto& modest = config_.profiles["modest"];
    modest.name = "modest";
    modest.cu_weight = core::CuWeight::of<100>();
    modest.serial = true;
    modest.queue_limit = core::QueueLimit::of<2>();
    modest.memory_limit = core::MebiBytes::of<64>();
    agent_hub_ = &agents_;
  }
  /// A process with a GPU queue and an agent.
  core::AgentId engine(int pid) {
    if (!world_.processes.contains(pid)) world_.add(pid);
    topology_.queues.insert(pid);
    const auto id = agents_.come(facts(pid));
    loop_.settle();
    return id;
  }
  core::AgentFacts facts(int pid) {
    return {{pid_of(pid), {world_.processes.at(pid).start}},  true, true, true, true, true, true, 0,
            {{*core::PciAddress::parse(kGpu), 12, "gfx1035"}}};
  }
  core::CuMask mask_of(core::AgentId id) {
    const auto& masks = agents_.agents.at(id).settings.masks;
    const auto mask = masks.find(*core::PciAddress::parse(kGpu));
    return mask == masks.end() ? core::CuMask() : mask->second;
  }
  std::string why(int pid, const std::string& what) {
    for (const auto& line : service_->explain(pid_of(pid)))
      if (line.what == what) return line.value + ": " + line.why;
    return {};
  }
};

TEST_F(AgentsTest, a_lone_process_keeps_all_cus_and_gets_its_priority) {
  start();
  const auto agent = engine(100);
  const auto id = added(100, "critical");
  EXPECT_TRUE(mask_of(agent).empty());
  EXPECT_EQ(agents_.agents.at(agent).settings.priority, core::QueuePriority::high);
  EXPECT_EQ(outcome(id, LeverKind::queue_priority), Outcome::applied);
  EXPECT_EQ(lever(id, LeverKind::cu_mask)->value, "12 of 12 CUs (0xfff) of 0000:04:00.0");
}

TEST_F(AgentsTest, two_processes_divide_the_cus_by_weight_and_get_them_back) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  added(100, "critical");
  const auto modest = added(200, "modest");
  EXPECT_EQ(mask_of(first).count(), 8U);
  EXPECT_EQ(mask_of(second).count(), 4U);
  EXPECT_FALSE(mask_of(first).intersects(mask_of(second)));
  remove(modest);
  EXPECT_TRUE(mask_of(first).empty());
  EXPECT_EQ(agents_.agents.at(second).settings, core::AgentSettings{});
}

TEST_F(AgentsTest, settings_reach_an_agent_that_comes_after_the_registration) {
  start();
  world_.add(100);
  const auto id = added(100, "modest");
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::unsupported);
  const auto agent = engine(100);
  scan();
  const auto& settings = agents_.agents.at(agent).settings;
  EXPECT_TRUE(settings.serial);
  EXPECT_EQ(settings.queue_limit, core::QueueLimit::of<2>());
  EXPECT_EQ(settings.memory_limit, core::MebiBytes::of<64>());
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::applied);
}

TEST_F(AgentsTest, nothing_is_asked_of_agents_in_processes_that_are_not_registered) {
  start();
  engine(100);
  world_.add(200);
  added(200, "critical");
  scan();
  EXPECT_EQ(agents_.sets, 0);
}

TEST_F(AgentsTest, an_agent_of_a_process_that_reused_the_pid_is_not_taken_for_the_old_one) {
  start();
  world_.add(100);
  auto other = facts(100);
  other.process.start = {world_.processes.at(100).start + 1};
  agents_.come(other);
  const auto id = added(100, "modest");
  EXPECT_EQ(agents_.sets, 0);
  EXPECT_FALSE(service_->view(id)->agent);
}

TEST_F(AgentsTest, settings_are_pending_until_the_agent_reports_them_in_force) {
  agents_.obeys = false;
  start();
  const auto agent = engine(100);
  const auto id = added(100, "modest");
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::pending);
  agents_.agents.at(agent).report.settings = agents_.agents.at(agent).sequence;
  scan();
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::applied);
}

TEST_F(AgentsTest, what_the_runtime_refuses_is_shown_with_its_status) {
  start();
  const auto agent = engine(100);
  agents_.agents.at(agent).report.priority = {core::AgentOutcome::failed, 4097};
  const auto id = added(100, "critical");
  EXPECT_EQ(outcome(id, LeverKind::queue_priority), Outcome::failed);
  EXPECT_NE(lever(id, LeverKind::queue_priority)->detail.find("4097"), std::string::npos);
}

TEST_F(AgentsTest, a_runtime_that_cannot_do_it_makes_it_unsupported) {
  start();
  world_.add(100);
  auto plain = facts(100);
  plain.can_serialise = false;
  agents_.come(plain);
  const auto id = added(100, "modest");
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::unsupported);
  EXPECT_EQ(outcome(id, LeverKind::queue_limit), Outcome::applied);
}

TEST_F(AgentsTest, a_mask_against_the_programs_own_is_shown_as_contended) {
  start();
  const auto agent = engine(100);
  engine(200);
  agents_.agents.at(agent).report.masks.front() = {core::AgentOutcome::conflict, 0};
  const auto id = added(100, "critical");
  added(200, "modest");
  scan();
  EXPECT_EQ(outcome(id, LeverKind::cu_mask), Outcome::contended);
}

TEST_F(AgentsTest, the_others_get_the_cus_of_an_agent_that_is_gone) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  added(100, "critical");
  added(200, "modest");
  ASSERT_EQ(mask_of(first).count(), 8U);
  agents_.go(second);
  loop_.settle();
  EXPECT_TRUE(mask_of(first).empty());
}

TEST_F(AgentsTest, a_process_without_gpu_queues_takes_no_cus) {
  start();
  const auto first = engine(100);
  engine(200);
  topology_.queues.erase(200);
  added(100, "critical");
  added(200, "modest");
  scan();
  EXPECT_TRUE(mask_of(first).empty());
}

TEST_F(AgentsTest, a_dry_run_asks_nothing_of_agents) {
  start(true);
  engine(100);
  const auto id = added(100, "modest");
  scan();
  EXPECT_EQ(agents_.sets, 0);
  EXPECT_EQ(outcome(id, LeverKind::serial), Outcome::dry_run);
}

TEST_F(AgentsTest, stopping_releases_all_settings) {
  start();
  const auto agent = engine(100);
  added(100, "modest");
  bool stopped = false;
  service_->stop([&] { stopped = true; });
  loop_.settle();
  loop_.advance(1s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(agents_.agents.at(agent).settings, core::AgentSettings{});
}

TEST_F(AgentsTest, reports_are_summed_up_for_the_bus) {
  start();
  const auto agent = engine(100);
  const auto id = added(100, "modest");
  auto& report = agents_.agents.at(agent).report;
  report.queues = 2;
  report.submitted = 500;
  report.taken = 498;
  report.waits = {10us, 20us};
  scan();
  const auto view = service_->view(id)->agent;
  ASSERT_TRUE(view);
  EXPECT_EQ(view->submitted, 500U);
  EXPECT_EQ(view->in_flight, 2U);
  EXPECT_EQ(view->waits->max, 20us);
}

TEST_F(AgentsTest, without_agents_the_configuration_is_named) {
  agent_hub_ = nullptr;
  start();
  world_.add(100);
  const auto id = added(100, "modest");
  EXPECT_NE(lever(id, LeverKind::serial)->detail.find("agent.enabled"), std::string::npos);
}

TEST_F(AgentsTest, a_program_started_without_it_is_told_how_to_get_one) {
  start();
  world_.add(100);
  added(100, "modest");
  EXPECT_NE(why(100, "agent").find("apuschedctl run"), std::string::npos);
}

TEST_F(AgentsTest, an_agent_that_should_be_there_and_is_not_is_explained_with_the_remedy) {
  start();
  world_.add(100);
  topology_.queues.insert(100);
  ASSERT_TRUE(service_->add({*processes_.open(pid_of(100)), "modest", std::nullopt, "test", true}));
  loop_.settle();
  EXPECT_NE(why(100, "agent").find("HSA_TOOLS_DISABLE_REGISTER=1"), std::string::npos);
}

TEST_F(AgentsTest, explain_says_what_is_left_alone_and_what_is_not_registered) {
  start();
  world_.add(100);
  world_.add(200);
  added(100, "modest");
  EXPECT_EQ(why(100, "nice"), "left alone: profile modest does not set it");
  EXPECT_EQ(why(200, "registered").substr(0, 2), "no");
}

TEST_F(AgentsTest, explain_names_the_setting_that_keeps_a_lever_off) {
  config_.control.cpu_latency.reset();
  config_.control.timer_slack.reset();
  start();
  world_.add(100);
  added(100, "modest");
  EXPECT_EQ(why(100, "cpu_latency"), "left alone: control.cpu_latency_us is null");
  EXPECT_EQ(why(100, "timer_slack"), "left alone: control.timer_slack_ns is null");
  EXPECT_EQ(why(100, "energy_preference"),
            "left alone: control.background_energy_preference is off");
  EXPECT_EQ(why(100, "freezer"), "left alone: control.freeze_background_percent is 0");
}

TEST_F(AgentsTest, a_launch_environment_is_of_a_profile_that_exists) {
  start();
  EXPECT_FALSE(service_->launch_environment("nonsense", {}));
  const auto found = service_->launch_environment("modest", {true, "agent.so", {}, {}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at("APUSCHED_QUEUE_LIMIT"), "2");
}

}  // namespace
}  // namespace apusched::app
