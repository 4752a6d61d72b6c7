// SPDX-License-Identifier: MIT
#include "device/shared_device.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

class SharedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "shared-device-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    device_ = SharedDevice::create(folder_ + "/state", small_device());
    ASSERT_NE(device_, nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A process that does `what` with the lock held, and then waits to be killed.
  template <typename What>
  pid_t holder(What what) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    {
      SharedDevice::Access access(*device_);
      what();
    }
    for (;;) ::pause();
  }

  std::string folder_;
  std::unique_ptr<SharedDevice> device_;
};

int state_of(pid_t child, int options) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, options), child);
  return status;
}

TEST_F(SharedDeviceTest, a_stopped_holder_lets_go_and_is_stopped_again) {
  const pid_t child = holder([] { ::raise(SIGSTOP); });
  ASSERT_TRUE(WIFSTOPPED(state_of(child, WUNTRACED)));
  { SharedDevice::Access access(*device_); }
  EXPECT_TRUE(WIFSTOPPED(state_of(child, WUNTRACED)));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(state_of(child, 0)));
}

TEST_F(SharedDeviceTest, a_dead_holder_leaves_the_lock_to_others) {
  const pid_t child = holder([] { ::_exit(0); });
  ASSERT_TRUE(WIFEXITED(state_of(child, 0)));
  SharedDevice::Access access(*device_);
  EXPECT_GT(access.now().count(), 0);
}

}  // namespace
}  // namespace apusched::softapu
