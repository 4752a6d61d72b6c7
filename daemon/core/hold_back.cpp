// SPDX-License-Identifier: MIT
#include "core/hold_back.hpp"

#include <algorithm>
#include <array>

namespace apusched::core {
namespace {

using namespace std::string_view_literals;

/// Patterns: a name, or the beginning of one where it ends in '*'.
constexpr std::array kUnitsNeverFrozen{"init.scope"sv,
                                       "session-*"sv,
                                       "session.scope"sv,
                                       "user@*"sv,
                                       "systemd-*"sv,
                                       "dbus*"sv,
                                       "polkit*"sv,
                                       "apuschedd*"sv,
                                       "display-manager*"sv,
                                       "gdm*"sv,
                                       "sddm*"sv,
                                       "lightdm*"sv,
                                       "org.gnome.Shell*"sv,
                                       "plasma-*"sv,
                                       "pipewire*"sv,
                                       "wireplumber*"sv,
                                       "pulseaudio*"sv,
                                       "NetworkManager*"sv,
                                       "ssh*"sv,
                                       "getty@*"sv,
                                       "serial-getty@*"sv,
                                       "emergency*"sv,
                                       "rescue*"sv};
/// Cut to 15 bytes, as the kernel does.
constexpr std::array kProcessesNeverFrozen{
    "systemd*"sv,    "(sd-pam)"sv,    "init"sv,           "dbus-daemon"sv, "dbus-broker*"sv,
    "polkitd"sv,     "gnome-shell"sv, "gnome-session*"sv, "mutter*"sv,     "kwin_*"sv,
    "plasmashell"sv, "ksmserver"sv,   "Xorg"sv,           "Xwayland"sv,    "sway"sv,
    "weston"sv,      "Hyprland"sv,    "labwc"sv,          "wayfire"sv,     "gamescope*"sv,
    "cosmic-comp"sv, "xfwm4"sv,       "pipewire*"sv,      "wireplumber"sv, "pulseaudio"sv,
    "sshd*"sv,       "login"sv,       "agetty"sv,         "sudo"sv,        "su"sv,
    "apuschedd"sv,   "apusched-*"sv};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

template <typename Patterns>
bool is_listed(const Patterns& patterns, std::string_view name) {
  return std::ranges::any_of(patterns,
                             [&](std::string_view pattern) { return matches(pattern, name); });
}

bool is_unit(std::string_view component) {
  return component.ends_with(".service") || component.ends_with(".scope");
}

}  // namespace

std::string unit_path_of(std::string_view path) {
  std::size_t end = path.size();
  while (end > 0) {
    const auto slash = path.rfind('/', end - 1);
    if (slash == std::string_view::npos) return {};
    if (is_unit(path.substr(slash + 1, end - slash - 1))) return std::string(path.substr(0, end));
    end = slash;
  }
  return {};
}

std::string_view unit_name_of(std::string_view unit_path) {
  return unit_path.substr(unit_path.rfind('/') + 1);
}

std::string why_not_frozen(std::string_view unit_path, const std::vector<UnitProcess>& inside,
                           const std::set<Pid>& background) {
  const auto unit = std::string(unit_name_of(unit_path));
  if (unit.empty()) return "the process is in no service or scope of its own";
  if (is_listed(kUnitsNeverFrozen, unit)) return unit + " is never stopped: others wait for it";
  if (inside.empty()) return unit + " has no processes";
  for (const auto& process : inside) {
    if (is_listed(kProcessesNeverFrozen, process.name))
      return unit + " has " + process.name + " in it, which is never stopped";
    if (!background.contains(process.pid))
      return unit + " is not wholly background: process " + to_string(process.pid) +
             " in it is not registered as such";
  }
  return {};
}

}  // namespace apusched::core
