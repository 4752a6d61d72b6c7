// SPDX-License-Identifier: MIT
#include <ostream>
#include <thread>

#include "ctl/command.hpp"

namespace apusched::ctl {

Outcome<void> repeat(Session& session, std::chrono::duration<double> interval,
                     const std::function<Outcome<std::string>()>& once) {
  const bool again = interval.count() > 0;
  do {
    const auto text = once();
    if (!text) return tl::unexpected(text.error());
    if (again && session.is_terminal && !session.json) session.out << "\x1b[H\x1b[2J";
    session.out << *text << std::flush;
    if (again && session.out) std::this_thread::sleep_for(interval);
  } while (again && session.out);
  return {};
}

}  // namespace apusched::ctl
