// SPDX-License-Identifier: MIT
#include "core/hold_back.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/admission.hpp"

namespace apusched::core {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kOne = Pid::of<11>();
constexpr auto kTwo = Pid::of<12>();
constexpr std::string_view kIndexer = "/system.slice/indexer.service";

TEST(UnitPath, is_that_of_the_innermost_service_or_scope) {
  EXPECT_EQ(unit_path_of("/system.slice/indexer.service"), "/system.slice/indexer.service");
  EXPECT_EQ(unit_path_of("/system.slice/indexer.service/worker/1"),
            "/system.slice/indexer.service");
  EXPECT_EQ(unit_path_of("/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope"),
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope");
  for (const auto* path : {"", "/", "/system.slice", "indexer.service"})
    EXPECT_EQ(unit_path_of(path), "") << path;
}

TEST(HoldBackPolicy, stops_a_unit_that_is_wholly_background) {
  EXPECT_EQ(why_not_frozen(kIndexer, {{kOne, "indexer"}, {kTwo, "indexer"}}, {kOne, kTwo}), "");
}

TEST(HoldBackPolicy, leaves_alone_a_unit_with_a_stranger_in_it) {
  EXPECT_THAT(why_not_frozen(kIndexer, {{kOne, "indexer"}, {kTwo, "helper"}}, {kOne}),
              HasSubstr("process 12 in it is not registered"));
}

TEST(HoldBackPolicy, leaves_alone_an_empty_unit_and_a_process_without_one) {
  EXPECT_THAT(why_not_frozen(kIndexer, {}, {kOne}), HasSubstr("no processes"));
  EXPECT_THAT(why_not_frozen("", {{kOne, "indexer"}}, {kOne}), HasSubstr("no service or scope"));
}

TEST(HoldBackPolicy, never_stops_what_others_wait_for_whatever_it_is_registered_as) {
  for (const auto* unit :
       {"/init.scope", "/user.slice/session-3.scope", "/user.slice/user@1000.service",
        "/system.slice/dbus.service", "/system.slice/dbus-broker.service",
        "/system.slice/systemd-logind.service", "/system.slice/apuschedd.service",
        "/system.slice/gdm.service", "/system.slice/ssh.service"})
    EXPECT_THAT(why_not_frozen(unit, {{kOne, "x"}}, {kOne}), HasSubstr("never stopped")) << unit;
  for (const auto* name :
       {"systemd", "dbus-daemon", "dbus-broker-lau", "gnome-shell", "kwin_wayland", "Xorg",
        "pipewire", "sshd", "apuschedd", "apusched-freeze", "sudo"})
    EXPECT_THAT(why_not_frozen(kIndexer, {{kTwo, name}, {kOne, "x"}}, {kOne, kTwo}),
                HasSubstr("never stopped"))
        << name;
}

TEST(HoldBackPolicy, does_not_take_a_similar_name_for_one_of_those) {
  EXPECT_EQ(why_not_frozen("/system.slice/my-dbus.service", {{kOne, "Xorg-logs"}}, {kOne}), "");
}

TEST(Admission, is_closed_while_somebody_is_out_of_help) {
  Admission admission(2s);
  const auto id = RegistrationId::of<1>();
  EXPECT_TRUE(admission.open(0ms));
  admission.note(id, true, 10ms);
  EXPECT_FALSE(admission.open(20ms));
  EXPECT_EQ(admission.closed_for(), id);
}

TEST(Admission, opens_only_after_a_quiet_time) {
  Admission admission(2s);
  const auto id = RegistrationId::of<1>();
  admission.note(id, true, 10ms);
  admission.note(id, false, 1000ms);
  EXPECT_FALSE(admission.open(2999ms));
  EXPECT_EQ(admission.closed_for(), std::nullopt);
  EXPECT_TRUE(admission.open(3000ms));
}

TEST(Admission, waits_for_the_last_one) {
  Admission admission(2s);
  admission.note(RegistrationId::of<1>(), true, 0ms);
  admission.note(RegistrationId::of<2>(), true, 0ms);
  admission.note(RegistrationId::of<1>(), false, 1s);
  EXPECT_FALSE(admission.open(10s));
  admission.note(RegistrationId::of<2>(), false, 10s);
  EXPECT_TRUE(admission.open(12s));
}

TEST(Admission, one_that_never_was_out_of_help_closes_nothing) {
  Admission admission(2s);
  admission.note(RegistrationId::of<1>(), false, 5s);
  EXPECT_TRUE(admission.open(5s));
}

}  // namespace
}  // namespace apusched::core
