// SPDX-License-Identifier: MIT
#include "app/lever_backends.hpp"

#include "app/checked_write.hpp"

namespace apusched::app {
namespace {

core::Error foreign_value(std::string what, std::string target, const std::string& found) {
  return {core::ErrorCode::contended, std::move(what), std::move(target),
          "somebody set it to " + found + "; left alone"};
}

core::Weight weight_of(const ports::UnitFacts& facts, core::LeverKind kind) {
  return kind == core::LeverKind::cpu_weight ? facts.cpu_weight : facts.io_weight;
}

}  // namespace

core::Result<core::Pid> AutogroupBackend::member_of(const std::string& group) {
  if (const auto hint = hints_.find(group); hint != hints_.end()) {
    const auto placement = processes_.placement(hint->second);
    if (placement && placement->autogroup == group) return hint->second;
    hints_.erase(hint);
  }
  auto member = processes_.member_of_autogroup(group);
  if (member) hint(group, *member);
  return member;
}

void AutogroupBackend::read(const std::string& id, ReadCallback done) {
  const auto member = member_of(id);
  if (!member) return done(tl::unexpected(member.error()));
  const auto nice = scheduler_.autogroup_nice(*member);
  if (!nice) return done(tl::unexpected(nice.error()));
  done(core::LeverValue(*nice));
}

void AutogroupBackend::write(const std::string& id, const core::LeverValue& value,
                             const core::LeverValue& expected, DoneCallback done) {
  const auto member = member_of(id);
  if (!member) return done(tl::unexpected(member.error()));
  done(write_through(*member, std::get<core::Nice>(value), std::get<core::Nice>(expected)));
}

core::Result<void> AutogroupBackend::write_through(core::Pid member, core::Nice value,
                                                   core::Nice expected) {
  return checked_write(
      "set autogroup nice through", core::to_string(member), value, expected,
      [&] { return scheduler_.autogroup_nice(member); },
      [&] { return scheduler_.set_autogroup_nice(member, value); });
}

void WeightBackend::read(const std::string& id, ReadCallback done) {
  units_.read(id,
              [kind = kind_, done = std::move(done)](const core::Result<ports::UnitFacts>& facts) {
                if (!facts) return done(tl::unexpected(facts.error()));
                done(core::LeverValue(weight_of(*facts, kind)));
              });
}

void WeightBackend::write(const std::string& id, const core::LeverValue& value,
                          const core::LeverValue& expected, DoneCallback done) {
  const auto wanted = std::get<core::Weight>(value);
  const auto verify = [this, id, wanted, done](const core::Result<void>& written) {
    if (!written) return done(written);
    read(id, [id, wanted, done](const core::Result<core::LeverValue>& back) {
      if (!back) return done(tl::unexpected(back.error()));
      if (std::get<core::Weight>(*back) != wanted)
        return done(core::fail(core::ErrorCode::failed, "set weight of", id,
                               "reads back " + core::to_string(*back)));
      done({});
    });
  };
  read(id, [this, id, wanted, expected, verify, done](const core::Result<core::LeverValue>& found) {
    if (!found) return done(tl::unexpected(found.error()));
    if (*found == core::LeverValue(wanted)) return done({});
    if (*found != expected)
      return done(tl::unexpected(foreign_value("set weight of", id, core::to_string(*found))));
    units_.set_weight(id, kind_, wanted, verify);
  });
}

void WeightBackend::clean_up(const std::string& id) {
  if (const auto done = units_.remove_drop_in(id, kind_); !done)
    report_.warning(core::to_sentence(done.error()) +
                    ", ignoring: the drop-in holds the original value");
}

void LevelBackend::read(const std::string& id, ReadCallback done) {
  const auto gpu = core::PciAddress::parse(id);
  if (!gpu)
    return done(
        core::fail(core::ErrorCode::invalid_input, "read level of", id, "not a PCI address"));
  writer_.read(*gpu, [done = std::move(done)](const core::Result<ports::LevelReading>& reading) {
    if (!reading) return done(tl::unexpected(reading.error()));
    done(core::LeverValue(reading->level));
  });
}

void LevelBackend::write(const std::string& id, const core::LeverValue& value,
                         const core::LeverValue& expected, DoneCallback done) {
  const auto gpu = core::PciAddress::parse(id);
  if (!gpu)
    return done(
        core::fail(core::ErrorCode::invalid_input, "set level of", id, "not a PCI address"));
  const auto wanted = std::get<core::PerformanceLevel>(value);
  writer_.write(
      *gpu, wanted, std::get<core::PerformanceLevel>(expected),
      [id, wanted, done = std::move(done)](const core::Result<ports::LevelReading>& reading) {
        if (!reading) return done(tl::unexpected(reading.error()));
        if (reading->level != wanted)
          return done(core::fail(core::ErrorCode::failed, "set level of", id,
                                 "reads back " + std::string(core::to_string(reading->level))));
        done({});
      });
}

/// A reset, a suspend, a driver that is being loaded again: they end.
bool LevelBackend::is_temporary(const core::Error& error) const {
  using enum core::ErrorCode;
  return error.code == denied || error.code == failed || error.code == timed_out ||
         error.code == gone;
}

std::string LevelBackend::refuse(const core::LeverValue& found) const {
  const auto level = std::get<core::PerformanceLevel>(found);
  if (!core::is_someones_choice(level)) return {};
  return "the level was already " + std::string(core::to_string(level)) +
         ", which a person or another tool chose; set it to auto to hand it over";
}

}  // namespace apusched::app
