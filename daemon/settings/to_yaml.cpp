// SPDX-License-Identifier: MIT
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <array>

#include "settings/schema.hpp"
#include "settings/settings.hpp"

namespace apusched::settings {
namespace {

/// Writes settings as YAML (a Visitor of schema.hpp).
class Writer {
 public:
  explicit Writer(YAML::Emitter& out) : out_(out) {}

  void integer(const char* name, std::uint32_t value, std::int64_t /*min*/, std::int64_t /*max*/) {
    put(name, value);
  }
  void duration(const char* name, milliseconds value, milliseconds /*min*/, milliseconds /*max*/) {
    put(name, value.count());
  }
  void boolean(const char* name, bool value) { put(name, value); }
  void account(const char* name, const std::string& value) { put(name, value); }
  void nice(const char* name, core::Nice value) { put(name, value.value()); }
  void optional_nice(const char* name, std::optional<core::Nice> value) {
    value ? put(name, value->value()) : put(name, YAML::Null);
  }
  void optional_weight(const char* name, std::optional<core::Weight> value) {
    value && value->is_set() ? put(name, value->effective()) : put(name, YAML::Null);
  }
  template <typename Number>
  void optional_integer(const char* name, std::optional<Number> value) {
    value ? put(name, value->value()) : put(name, YAML::Null);
  }
  template <typename Word, std::size_t N>
  void word(const char* name, Word value, const std::array<Word, N>& /*allowed*/) {
    put(name, std::string(to_string(value)));
  }
  template <typename Word, std::size_t N>
  void optional_word(const char* name, std::optional<Word> value,
                     const std::array<Word, N>& allowed) {
    value ? word(name, *value, allowed) : put(name, YAML::Null);
  }
  template <typename Section>
  void section(const std::string& name, Section& section) {
    out_ << YAML::Key << name << YAML::Value << YAML::BeginMap;
    describe(*this, section);
    out_ << YAML::EndMap;
  }
  void profiles(const char* name, std::map<std::string, core::Profile>& profiles) {
    out_ << YAML::Key << name << YAML::Value << YAML::BeginMap;
    for (auto& [profile_name, profile] : profiles) section(profile_name, profile);
    out_ << YAML::EndMap;
  }

 private:
  template <typename T>
  void put(const char* name, const T& value) {
    out_ << YAML::Key << name << YAML::Value << value;
  }
  YAML::Emitter& out_;
};

}  // namespace

std::string to_yaml(const core::Config& config) {
  YAML::Emitter out;
  core::Config copy = config;  // the schema's walk is written for reading and writing alike
  Writer writer(out);
  out << YAML::BeginMap;
  describe(writer, copy);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace apusched::settings
