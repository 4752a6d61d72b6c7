// SPDX-License-Identifier: MIT
#include "bus/server.hpp"

#include <grp.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "bus/errors.hpp"

namespace apusched::bus {
namespace {

using namespace std::chrono_literals;
/// Changes are gathered this long before they are announced.
constexpr auto kAnnounceAfter = 100ms;

std::optional<std::uint32_t> group_id(const std::string& name) {
  std::array<char, 16384> buffer{};
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  return entry.gr_gid;
}

struct RegisterOptions {
  std::optional<bool> include_children;
  std::optional<bool> expect_agent;
};

core::Result<RegisterOptions> register_options(const Properties& options) {
  RegisterOptions result;
  const std::map<std::string, std::optional<bool>*> known{
      {"include-children", &result.include_children}, {"expect-agent", &result.expect_agent}};
  for (const auto& [name, value] : options) {
    const auto option = known.find(name);
    if (option == known.end())
      return core::fail(core::ErrorCode::invalid_input, "read option", "\"" + name + "\"",
                        "unknown; the options are \"include-children\" and \"expect-agent\"");
    if (!value.containsValueOfType<bool>())
      return core::fail(core::ErrorCode::invalid_input, "read option", "\"" + name + "\"",
                        "expected a boolean");
    *option->second = value.get<bool>();
  }
  return result;
}

/// Replies can fail only when the bus is gone, and then nobody waits for them.
template <typename Send>
void send(Send send_reply) {
  try {
    send_reply();
  } catch (const sdbus::Error&) {  // NOLINT(bugprone-empty-catch): see above
  }
}

}  // namespace

Server::Server(sdbus::IConnection& connection, ports::EventLoop& loop,
               ports::ProcessSource& processes, app::Service& service, const std::string& version,
               core::LaunchOptions launch)
    : connection_(connection),
      loop_(loop),
      processes_(processes),
      service_(service),
      callers_(connection),
      group_(group_id(service.config().access.group)),
      manager_(
          std::make_unique<ManagerObject>(connection, *this, service, version, std::move(launch))) {
  std::size_t index = 0;
  for (const auto& gpu : service_.gpus()) {
    gpu_objects_.push_back(
        std::make_unique<GpuObject>(connection, *this, service, index, gpu.facts.pci));
    ++index;
  }
  service_.set_observer(this);
}

Server::~Server() {
  service_.set_observer(nullptr);
}

template <typename ReplyType, typename Allowed>
void Server::authorised(const std::string& sender, ReplyType reply, Allowed allowed) {
  auto shared = std::make_shared<ReplyType>(std::move(reply));
  callers_.identify(sender, [this, shared, allowed](const std::optional<Caller>& caller) {
    if (caller && may_write(*caller, ::geteuid(), group_)) return allowed(*caller, shared);
    send([&] {
      shared->returnError(access_denied("only root and members of the group \"" +
                                        service_.config().access.group +
                                        "\" may do this; add the user with: usermod -aG " +
                                        service_.config().access.group + " USER"));
    });
  });
}

void Server::register_pidfd(const std::string& sender, sdbus::UnixFd pidfd,
                            const std::string& profile, const Properties& options,
                            PathReply reply) {
  authorised(sender, std::move(reply),
             [this, pidfd, profile, options](const Caller& caller,
                                             const std::shared_ptr<PathReply>& answer) {
               add(caller, processes_.adopt(pidfd.get()), profile, options, *answer);
             });
}

void Server::register_pid(const std::string& sender, std::uint32_t number,
                          const std::string& profile, const Properties& options, PathReply reply) {
  authorised(
      sender, std::move(reply),
      [this, number, profile, options](const Caller& caller,
                                       const std::shared_ptr<PathReply>& answer) {
        const auto pid = core::Pid::make(number);
        if (!pid)
          return send([&] {
            answer->returnError(invalid_argument("register process " + std::to_string(number) +
                                                 ": a PID is between 1 and 2147483647"));
          });
        add(caller, processes_.open(*pid), profile, options, *answer);
      });
}

void Server::add(const Caller& caller, Opened process, const std::string& profile,
                 const Properties& options, const PathReply& reply) {
  const auto refuse = [&](const core::Error& error) {
    send([&] { reply.returnError(to_dbus(error)); });
  };
  if (!process) return refuse(process.error());
  const auto chosen = register_options(options);
  if (!chosen) return refuse(chosen.error());
  const auto id =
      service_.add({std::move(*process), profile, chosen->include_children,
                    "dbus:" + std::to_string(caller.uid), chosen->expect_agent.value_or(false)});
  if (!id) return refuse(id.error());
  send([&] { reply.returnResults(sdbus::ObjectPath(process_path(*id))); });
}

void Server::unregister(const std::string& sender, const std::string& path, Reply reply) {
  authorised(
      sender, std::move(reply), [this, path](const Caller&, const std::shared_ptr<Reply>& shared) {
        const auto id = process_id(path);
        // The object whose method this is goes away with the registration: not under its own feet.
        loop_.defer([this, id, path, shared] {
          core::Result<void> done =
              id ? service_.remove(*id, "on request")
                 : core::fail(core::ErrorCode::not_found, "unregister", path, "no such object");
          if (!done) done.error().target = path;
          send([&] {
            if (done)
              shared->returnResults();
            else
              shared->returnError(to_dbus(done.error()));
          });
        });
      });
}

void Server::refresh(const core::PciAddress& gpu, Reply reply) {
  auto shared = std::make_shared<Reply>(std::move(reply));
  service_.refresh_gpu(gpu, [shared](const core::Result<void>& done) {
    send([&] {
      if (done)
        shared->returnResults();
      else
        shared->returnError(to_dbus(done.error()));
    });
  });
}

void Server::on_added(core::RegistrationId id) {
  // After the caller's answer, before the next message is dealt with.
  loop_.soon([this, id] {
    if (!service_.view(id)) return;
    send([&] {
      auto object = std::make_unique<ProcessObject>(connection_, *this, service_, id);
      object->emitInterfacesAddedSignal();
      process_objects_.insert_or_assign(id, std::move(object));
    });
    on_state_changed();
  });
}

void Server::on_removed(core::RegistrationId id) {
  changed_.erase(id);
  loop_.soon([this, id] {
    if (const auto found = process_objects_.find(id); found != process_objects_.end()) {
      send([&] { found->second->emitInterfacesRemovedSignal(); });
      process_objects_.erase(found);
    }
    manager_->forget(id);
    on_state_changed();
  });
}

void Server::on_changed(core::RegistrationId id) {
  changed_.insert(id);
  announce_soon();
}

void Server::on_gpu_changed(const core::PciAddress& gpu) {
  changed_gpus_.insert(gpu);
  announce_soon();
}

void Server::on_state_changed() {
  state_changed_ = true;
  announce_soon();
}

void Server::announce_soon() {
  if (announcement_ != nullptr) return;
  announcement_ = loop_.after(kAnnounceAfter, [this] {
    const auto done = std::move(announcement_);
    announce();
  });
}

void Server::announce() {
  send([&] {
    for (const auto id : std::exchange(changed_, {}))
      if (const auto found = process_objects_.find(id); found != process_objects_.end())
        found->second->emit_changed();
    for (const auto& gpu : gpu_objects_)
      if (changed_gpus_.contains(gpu->address())) gpu->emit_changed();
    changed_gpus_.clear();
    if (std::exchange(state_changed_, false))
      manager_->emit_changed({"State", "Degraded", "ProcessCount"});
  });
}

}  // namespace apusched::bus
