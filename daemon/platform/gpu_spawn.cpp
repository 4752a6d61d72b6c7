// SPDX-License-Identifier: MIT
#include "platform/gpu_spawn.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "platform/errno_error.hpp"

namespace apusched::platform {
namespace {

constexpr int kSocketFd = 3;
constexpr int kNotesFd = 4;
constexpr int kFirstOtherFd = 5;
/// Exit code of a child that did not reach exec.
constexpr int kNotStarted = 126;
constexpr std::size_t kMaxNotes = 16;

enum class Step : std::uint32_t { descriptors, shm, network, ipc, groups, user, privileges, exec };

const char* sentence_of(Step step) {
  switch (step) {
    case Step::descriptors:
      return "cannot set up the helper's descriptors";
    case Step::shm:
      return "cannot give the helper its own /dev/shm, rocm-smi-lib is off";
    case Step::network:
      return "cannot take the network from the helper";
    case Step::ipc:
      return "cannot give the helper its own IPC namespace";
    case Step::groups:
      return "cannot set the helper's groups";
    case Step::user:
      return "cannot drop to the helper's user";
    case Step::privileges:
      return "cannot forbid the helper new privileges";
    case Step::exec:
      return "cannot execute the helper";
  }
  return nullptr;
}

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::vector<std::string> reasons;
};

bool look_up_user(const std::string& name, Identity& out) {
  const passwd* entry = getpwnam(name.c_str());
  // A user database that maps the helper's user to root is no way to run it as root.
  if (entry == nullptr || entry->pw_uid == 0) return false;
  out.uid = entry->pw_uid;
  out.gid = entry->pw_gid;
  return true;
}

/// Before fork: getpwnam and getgrnam allocate, lock and may ask a name service.
core::Result<Identity> resolve_identity(const std::string& user) {
  Identity out;
  if (!look_up_user(user, out)) {
    out.reasons.push_back("user \"" + user + "\" does not exist: the helper runs as nobody");
    if (!look_up_user("nobody", out))
      return core::fail(core::ErrorCode::failed, "start helper", user,
                        "neither this user nor nobody exists");
  }
  for (const char* name : {"render", "video"})
    if (const group* entry = getgrnam(name)) out.groups.push_back(entry->gr_gid);
  return out;
}

/// All that the child needs, made before fork: between fork and exec only async-signal-safe
/// calls are allowed, because another thread may have held any lock.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* arguments_without_rsmi;
  char* const* environment;
  const Identity* identity;  ///< null: we are not root and stay who we are
  int socket;
  int notes;
};

void note(Step step, int error) {
  const SpawnNote record{static_cast<std::uint32_t>(step), error};
  const auto ignored = write(kNotesFd, &record, sizeof(record));
  static_cast<void>(ignored);
}

[[noreturn]] void give_up(Step step) {
  note(step, errno);
  _exit(kNotStarted);
}

void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Socket to 3, notes to 4, stdin from and stdout to nowhere, stderr stays (ROCr complains there).
void arrange_descriptors(const ChildPlan& plan) {
  // Out of the way first: either may already sit on the other's place.
  const int socket = fcntl(plan.socket, F_DUPFD, kFirstOtherFd);
  const int notes = fcntl(plan.notes, F_DUPFD, kFirstOtherFd);
  if (notes < 0 || dup3(notes, kNotesFd, O_CLOEXEC) < 0) _exit(kNotStarted);
  if (socket < 0 || dup2(socket, kSocketFd) < 0) give_up(Step::descriptors);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0) give_up(Step::descriptors);
  if (close_range(kFirstOtherFd, ~0U, 0) != 0) give_up(Step::descriptors);
}

bool private_shm() {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
               "mode=1777,size=16m") == 0;
}

void drop_to(const Identity& identity) {
  if (setgroups(identity.groups.size(), identity.groups.data()) != 0) give_up(Step::groups);
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0) give_up(Step::user);
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0) give_up(Step::user);
  if (setuid(0) == 0) give_up(Step::user);
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  reset_signals();
  arrange_descriptors(plan);
  setsid();
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  bool shm = true;
  if (plan.identity != nullptr) {
    shm = private_shm();
    if (!shm) note(Step::shm, errno);
    if (unshare(CLONE_NEWNET) != 0) note(Step::network, errno);
    if (unshare(CLONE_NEWIPC) != 0) note(Step::ipc, errno);
    drop_to(*plan.identity);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up(Step::privileges);
  execve(plan.program, shm ? plan.arguments : plan.arguments_without_rsmi, plan.environment);
  give_up(Step::exec);
}

std::vector<char*> pointers(std::vector<std::string>& words, std::size_t count) {
  std::vector<char*> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(words[i].data());
  out.push_back(nullptr);
  return out;
}

struct Channels {
  UniqueFd socket;
  UniqueFd child_socket;
  UniqueFd notes;
  UniqueFd child_notes;
};

core::Result<Channels> open_channels() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return tl::unexpected(errno_error(errno, "create", "helper socket"));
  Channels out{UniqueFd(ends[0]), UniqueFd(ends[1]), {}, {}};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return tl::unexpected(errno_error(errno, "create", "helper pipe"));
  out.notes = UniqueFd(ends[0]);
  out.child_notes = UniqueFd(ends[1]);
  fcntl(out.notes.get(), F_SETFL, O_NONBLOCK);
  return out;
}

}  // namespace

core::Result<SpawnedHelper> spawn_helper(const HelperSpawn& spawn) {
  std::optional<Identity> identity;
  if (geteuid() == 0) {
    auto resolved = resolve_identity(spawn.user);
    if (!resolved) return tl::unexpected(resolved.error());
    identity = std::move(*resolved);
  }
  auto channels = open_channels();
  if (!channels) return tl::unexpected(channels.error());
  std::vector<std::string> words{
      spawn.program,  "--gpu",          spawn.gpu.text(), "--fd", std::to_string(kSocketFd),
      "--sysfs-root", spawn.sysfs_root, "--no-rsmi"};
  auto arguments = pointers(words, words.size() - 1);
  auto arguments_without_rsmi = pointers(words, words.size());
  std::vector<std::string> settings{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  auto environment = pointers(settings, settings.size());
  const ChildPlan plan{spawn.program.c_str(),           arguments.data(),
                       arguments_without_rsmi.data(),   environment.data(),
                       identity ? &*identity : nullptr, channels->child_socket.get(),
                       channels->child_notes.get()};
  const pid_t pid = fork();
  if (pid < 0) return tl::unexpected(errno_error(errno, "fork", "GPU helper"));
  if (pid == 0) run_child(plan);
  return SpawnedHelper{pid, std::move(channels->socket), std::move(channels->notes),
                       identity ? std::move(identity->reasons) : std::vector<std::string>()};
}

std::vector<std::string> describe_spawn_notes(std::span<const std::byte> bytes) {
  std::vector<std::string> out;
  while (bytes.size() >= sizeof(SpawnNote) && out.size() < kMaxNotes) {
    SpawnNote record;
    std::memcpy(&record, bytes.data(), sizeof(record));
    bytes = bytes.subspan(sizeof(record));
    const char* text = sentence_of(static_cast<Step>(record.step));
    if (text == nullptr) continue;
    out.push_back(std::string(text) + ": " + std::generic_category().message(record.error));
  }
  return out;
}

}  // namespace apusched::platform
