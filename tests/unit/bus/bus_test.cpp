// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sdbus-c++/sdbus-c++.h>

#include "bus/callers.hpp"
#include "bus/errors.hpp"
#include "bus/marshal.hpp"
#include "bus/objects.hpp"

namespace apusched::bus {
namespace {

TEST(Access, root_the_daemons_user_and_the_group_may_write_and_nobody_else) {
  EXPECT_TRUE(may_write({0, {}}, 0, std::nullopt));
  EXPECT_TRUE(may_write({1000, {}}, 1000, std::nullopt));
  EXPECT_TRUE(may_write({1000, {5, 60}}, 0, 60));
  EXPECT_FALSE(may_write({1000, {5, 61}}, 0, 60));
  EXPECT_FALSE(may_write({1000, {0}}, 0, std::nullopt));
  EXPECT_FALSE(may_write({65534, {}}, 0, 60));
}

TEST(Errors, have_names_of_their_own_and_a_whole_sentence) {
  const auto error = to_dbus({core::ErrorCode::gone, "register process", "42", "it has exited"});
  EXPECT_EQ(error.getName(), "org.apusched1.Error.NoSuchProcess");
  EXPECT_EQ(error.getMessage(), "register process 42: it has exited");
  EXPECT_EQ(to_dbus({core::ErrorCode::not_found, "use profile", "x", ""}).getName(),
            "org.apusched1.Error.UnknownProfile");
  EXPECT_EQ(to_dbus({core::ErrorCode::not_found, "unregister", "x", ""}).getName(),
            "org.apusched1.Error.NotRegistered");
  EXPECT_EQ(to_dbus({core::ErrorCode::limit_reached, "", "", ""}).getName(),
            "org.apusched1.Error.LimitReached");
}

TEST(Paths, name_a_registration_and_nothing_else) {
  EXPECT_EQ(process_id(process_path(core::RegistrationId::of<7>())), core::RegistrationId::of<7>());
  for (const auto* path :
       {"/org/apusched1/process/", "/org/apusched1/process/0", "/org/apusched1/process/7x",
        "/org/apusched1/process/-1", "/org/apusched1/gpu/1", "/", ""})
    EXPECT_FALSE(process_id(path)) << path;
}

TEST(Telemetry, leaves_out_what_the_hardware_does_not_give) {
  app::GpuView view{{*core::PciAddress::parse("0000:04:00.0"), "", "", 0, 0, 8, true},
                    {},
                    {},
                    {},
                    {},
                    0,
                    {},
                    {},
                    {}};
  EXPECT_TRUE(telemetry_of(view).empty());
  view.telemetry.emplace();
  view.telemetry->power_watts = 6.5;
  const auto values = telemetry_of(view);
  EXPECT_EQ(values.size(), 2U) << "the power and its age";
  EXPECT_DOUBLE_EQ(values.at("power_watts").get<double>(), 6.5);
}

TEST(Oversubscription, begins_above_the_number_of_hardware_queues) {
  app::GpuView view{{*core::PciAddress::parse("0000:04:00.0"), "", "", 0, 0, 8, true},
                    {},
                    {},
                    {},
                    {},
                    8,
                    {},
                    {},
                    {}};
  EXPECT_FALSE(oversubscribed(view));
  view.queue_count = 9;
  EXPECT_TRUE(oversubscribed(view));
  view.facts.queue_limit = 0;  // unknown
  EXPECT_FALSE(oversubscribed(view));
}

}  // namespace
}  // namespace apusched::bus
