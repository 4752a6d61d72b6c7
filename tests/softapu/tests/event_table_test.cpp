// SPDX-License-Identifier: MIT
#include "events/event_table.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <vector>

namespace apusched::softapu {
namespace {

using std::chrono::milliseconds;
using Ids = std::array<std::uint32_t, 1>;

TEST(EventTable, keeps_a_set_event_until_somebody_waits) {
  EventTable table;
  const Ids id{table.create(true)};
  EXPECT_TRUE(table.set(id[0]));
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::signalled);
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::timeout);
}

TEST(EventTable, one_thread_does_not_take_an_event_from_another) {
  EventTable table;
  const Ids id{table.create(true)};
  table.set(id[0]);
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::signalled);
  const auto other = [&] { return table.wait(id, false, milliseconds{0}); };
  EXPECT_EQ(std::async(std::launch::async, other).get(), WaitResult::signalled);
  table.reset(id[0]);
  EXPECT_EQ(std::async(std::launch::async, other).get(), WaitResult::timeout);
}

TEST(EventTable, raises_all_events_of_a_type_and_no_other) {
  EventTable table;
  const Ids signal{table.create(true)};
  const Ids one{table.create(true, EventTable::kHwException)};
  const Ids two{table.create(false, EventTable::kHwException)};
  table.raise(EventTable::kHwException);
  EXPECT_EQ(table.wait(signal, false, milliseconds{0}), WaitResult::timeout);
  EXPECT_EQ(table.wait(one, false, milliseconds{0}), WaitResult::signalled);
  EXPECT_EQ(table.wait(two, false, milliseconds{0}), WaitResult::signalled);
  EXPECT_TRUE(table.is_of_type(one[0], EventTable::kHwException));
  EXPECT_FALSE(table.is_of_type(signal[0], EventTable::kHwException));
  EXPECT_FALSE(table.is_of_type(99, 0));
}

TEST(EventTable, keeps_a_manual_event_set_until_reset) {
  EventTable table;
  const Ids id{table.create(false)};
  table.set(id[0]);
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::signalled);
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::signalled);
  table.reset(id[0]);
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::timeout);
}

TEST(EventTable, wakes_a_waiter_from_another_thread) {
  EventTable table;
  const Ids id{table.create(true)};
  auto waiting =
      std::async(std::launch::async, [&] { return table.wait(id, false, EventTable::kForever); });
  table.set(id[0]);
  EXPECT_EQ(waiting.get(), WaitResult::signalled);
}

TEST(EventTable, waits_for_all_when_asked) {
  EventTable table;
  const std::array<std::uint32_t, 2> ids{table.create(true), table.create(true)};
  table.set(ids[0]);
  EXPECT_EQ(table.wait(ids, true, milliseconds{1}), WaitResult::timeout);
  table.set(ids[0]);
  table.set(ids[1]);
  EXPECT_EQ(table.wait(ids, true, milliseconds{0}), WaitResult::signalled);
}

TEST(EventTable, tells_which_of_several_were_set) {
  EventTable table;
  const std::array<std::uint32_t, 3> ids{table.create(true), table.create(true),
                                         table.create(true)};
  table.set(ids[1]);
  std::vector<std::uint32_t> which;
  EXPECT_EQ(table.wait(ids, false, milliseconds{0}, &which), WaitResult::signalled);
  EXPECT_EQ(which, std::vector{ids[1]});
}

TEST(EventTable, refuses_unknown_events) {
  EventTable table;
  const Ids id{7};
  EXPECT_FALSE(table.set(7));
  EXPECT_FALSE(table.reset(7));
  EXPECT_FALSE(table.destroy(7));
  EXPECT_EQ(table.wait(id, false, milliseconds{0}), WaitResult::invalid);
}

TEST(EventTable, ends_waits_when_the_device_is_closed) {
  EventTable table;
  const Ids id{table.create(true)};
  auto waiting =
      std::async(std::launch::async, [&] { return table.wait(id, false, EventTable::kForever); });
  // Either the wait has begun and is ended, or it finds no such event.
  table.clear();
  EXPECT_NE(waiting.get(), WaitResult::timeout);
}

TEST(EventTable, has_as_many_as_the_kernel) {
  EventTable table;
  for (std::uint32_t i = 1; i < EventTable::kLimit; i++) ASSERT_EQ(table.create(true), i);
  EXPECT_EQ(table.create(true), 0U);
  EXPECT_TRUE(table.destroy(17));
  EXPECT_EQ(table.create(true), 17U);
}

}  // namespace
}  // namespace apusched::softapu
