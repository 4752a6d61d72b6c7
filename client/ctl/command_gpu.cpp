// SPDX-License-Identifier: MIT
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {

void add_gpu(CLI::App& app, Action& chosen) {
  app.add_subcommand("gpu", "Take fresh readings and show each GPU")->callback([&chosen] {
    chosen = [](Session& session) -> Outcome<void> {
      const auto gpus = session.daemon.gpus(true);
      if (!gpus) return tl::unexpected(gpus.error());
      session.out << (session.json ? to_text(json_gpus(*gpus), false)
                                   : render_gpus(*gpus, session.style));
      return {};
    };
  });
}

}  // namespace apusched::ctl
