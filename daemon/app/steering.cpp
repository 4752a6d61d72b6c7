// SPDX-License-Identifier: MIT
#include "app/steering.hpp"

#include <algorithm>

namespace apusched::app {
namespace {

constexpr std::size_t kHistory = 512;

}  // namespace

std::vector<HistoryLine> ControlBook::history(std::size_t count) const {
  const auto first = history_.size() - std::min(count, history_.size());
  return {history_.begin() + static_cast<std::ptrdiff_t>(first), history_.end()};
}

void ControlBook::tell(core::Pid pid, core::Latency what, const core::ControlEvent& event) {
  history_.push_back({loop_.now(), pid, what, std::string(core::to_string(event.what)), event.rung,
                      event.text, event.before, event.after});
  if (history_.size() > kHistory) history_.pop_front();
  report_.control(pid, what, event);
}

Steering::Steering(ControlBook& book, core::Latency what, core::RegistrationId id, core::Pid pid,
                   const core::ControlSettings& settings)
    : book_(&book), what_(what), id_(id), pid_(pid), controller_(settings) {
  target_ = settings.target;
  if (book_->log_ != nullptr) book_->log_->began(id_, what_, settings);
}

bool Steering::step(const core::ControlInput& input) {
  if (input.observation) observation_ = *input.observation;
  target_ = input.target.value_or(controller_.settings().target);
  const auto output = controller_.step(input);
  if (book_->log_ != nullptr) book_->log_->stepped(id_, what_, input, output);
  const bool changed = output.engaged != engaged_;
  engaged_ = output.engaged;
  tell(output);
  return changed;
}

void Steering::tell(const core::ControlOutput& output) {
  for (const auto& event : output.events) {
    book_->tell(pid_, what_, event);
    if (event.what == core::ControlEvent::What::state) why_ = event.text;
  }
  if (output.state == state_) return;
  state_ = output.state;
  if (book_->state_changed_) book_->state_changed_(id_);
}

ControlView Steering::view() const {
  return {std::string(core::to_string(state_)), why_, target_, observation_, engaged_};
}

}  // namespace apusched::app
