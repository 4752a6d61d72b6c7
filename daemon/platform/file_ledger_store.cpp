// SPDX-License-Identifier: MIT
#include "platform/file_ledger_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "platform/errno_error.hpp"
#include "platform/ledger_text.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

constexpr std::size_t kRewriteAbove = 256UL * 1024;
constexpr std::size_t kLoadLimit = 64UL * 1024 * 1024;

std::string boot_id() {
  const auto text = read_small_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? text->substr(0, text->find('\n')) : std::string("unknown");
}

core::Result<void> write_all(int fd, const std::string& text, const std::string& path) {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return tl::unexpected(errno_error(errno, "write", path));
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

void apply(core::Ledger& ledger, const LedgerLine& line) {
  if (const auto* put = std::get_if<LedgerPut>(&line))
    ledger.adopt(put->key, put->entry);
  else if (const auto* erase = std::get_if<LedgerErase>(&line))
    ledger.forget(erase->key);
}

}  // namespace

FileLedgerStore::FileLedgerStore(std::string path, UniqueFd lock, UniqueFd file)
    : path_(std::move(path)), lock_(std::move(lock)), file_(std::move(file)) {}

core::Result<std::unique_ptr<FileLedgerStore>> FileLedgerStore::open(
    const std::string& runtime_dir) {
  if (::mkdir(runtime_dir.c_str(), 0755) != 0 && errno != EEXIST)
    return tl::unexpected(errno_error(errno, "create", runtime_dir));
  struct stat info {};
  if (::stat(runtime_dir.c_str(), &info) != 0)
    return tl::unexpected(errno_error(errno, "look at", runtime_dir));
  // Whoever can write here can make us "restore" values of their choice.
  if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return core::fail(core::ErrorCode::denied, "use", runtime_dir,
                      "it must belong to the daemon's user and be writable by nobody else");
  UniqueFd lock(
      ::open((runtime_dir + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return tl::unexpected(errno_error(errno, "open", runtime_dir + "/lock"));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return core::fail(core::ErrorCode::contended, "lock", runtime_dir,
                      "another apuschedd uses it; stop that one first");
  auto path = runtime_dir + "/ledger";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return tl::unexpected(errno_error(errno, "open", path));
  return std::unique_ptr<FileLedgerStore>(
      new FileLedgerStore(std::move(path), std::move(lock), std::move(file)));
}

core::Result<core::Ledger> FileLedgerStore::load() {
  const auto text = read_small_file(path_, kLoadLimit);
  if (!text) return tl::unexpected(text.error());
  core::Ledger ledger;
  bool this_boot = true;
  std::string_view rest = *text;
  while (!rest.empty() && this_boot) {
    const auto end = rest.find('\n');
    if (const auto line = parse_line(rest.substr(0, end))) {
      if (const auto* header = std::get_if<LedgerHeader>(&*line))
        this_boot = header->boot_id == boot_id();
      apply(ledger, *line);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  // After a reboot every value is back at its default and the names mean other things.
  mirror_ = this_boot ? ledger : core::Ledger();
  if (const auto done = rewrite(); !done) return tl::unexpected(done.error());
  return mirror_;
}

core::Result<void> FileLedgerStore::put(const core::ResourceKey& key,
                                        const core::LedgerEntry& entry) {
  return put_all({{key, entry}});
}

core::Result<void> FileLedgerStore::put_all(
    const std::vector<std::pair<core::ResourceKey, core::LedgerEntry>>& records) {
  std::string lines;
  for (const auto& [key, entry] : records) {
    auto record = entry;
    record.holders.clear();
    if (const auto* there = mirror_.find(key); there != nullptr && *there == record) continue;
    const LedgerLine line = LedgerPut{key, std::move(record)};
    lines += format_line(line);
    apply(mirror_, line);
  }
  return lines.empty() ? core::Result<void>() : append(lines);
}

core::Result<void> FileLedgerStore::erase(const std::vector<core::ResourceKey>& keys) {
  for (const auto& key : keys) mirror_.forget(key);
  if (mirror_.size() == 0) return cut_to_header();
  std::string lines;
  for (const auto& key : keys) lines += format_line(LedgerErase{key});
  return append(lines);
}

core::Result<void> FileLedgerStore::append(const std::string& lines) {
  if (file_bytes_ + lines.size() > kRewriteAbove + mirror_.size() * 256) return rewrite();
  const auto done = write_all(file_.get(), lines, path_);
  file_bytes_ += lines.size();
  return done;
}

core::Result<void> FileLedgerStore::cut_to_header() {
  if (header_bytes_ == 0) return rewrite();
  if (::ftruncate(file_.get(), static_cast<off_t>(header_bytes_)) != 0)
    return tl::unexpected(errno_error(errno, "shorten", path_));
  file_bytes_ = header_bytes_;
  return {};
}

core::Result<void> FileLedgerStore::rewrite() {
  std::string text = format_line(LedgerHeader{boot_id()});
  const auto header_bytes = text.size();
  for (const auto& [key, entry] : mirror_.entries()) text += format_line(LedgerPut{key, entry});
  const auto temporary = path_ + ".new";
  UniqueFd next(::open(temporary.c_str(),
                       O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!next) return tl::unexpected(errno_error(errno, "open", temporary));
  if (auto done = write_all(next.get(), text, temporary); !done) return done;
  if (::rename(temporary.c_str(), path_.c_str()) != 0)
    return tl::unexpected(errno_error(errno, "replace", path_));
  file_ = std::move(next);
  file_bytes_ = text.size();
  header_bytes_ = header_bytes;
  return {};
}

}  // namespace apusched::platform
