// SPDX-License-Identifier: MIT
#include "sysfs/model_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace apusched::softapu {
namespace {

const std::string kModels = SOFTAPU_MODELS;

// A copy of rembrandt's file with one change; removed at the end.
class ChangedModel {
 public:
  explicit ChangedModel(const std::string& json_patch) {
    nlohmann::json model = nlohmann::json::parse(std::ifstream(kModels + "/rembrandt.json"));
    model.merge_patch(nlohmann::json::parse(json_patch));
    std::ofstream(path_) << model;
  }
  ~ChangedModel() { std::remove(path_.c_str()); }
  ChangedModel(const ChangedModel&) = delete;
  ChangedModel& operator=(const ChangedModel&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "softapu-model-" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

std::string error_of(const std::string& path) {
  try {
    (void)read_model(path);
  } catch (const ModelError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ModelFile, of_rembrandt_is_an_rdna2_apu_with_12_compute_units) {
  const MachineModel m = read_model(kModels + "/rembrandt.json");
  EXPECT_STREQ(m.device.gfx_name.data(), "gfx1035");
  EXPECT_EQ(m.device.compute_units, 12U);
  EXPECT_EQ(m.device.simds_per_cu, 2U);
  EXPECT_EQ(m.wave_size, 32U);
  EXPECT_EQ(m.pci_location(), 0x400U);
  EXPECT_EQ(m.pci_domain(), 0U);
}

TEST(ModelFile, of_renoir_has_28_simds) {
  const MachineModel m = read_model(kModels + "/renoir.json");
  EXPECT_STREQ(m.device.gfx_name.data(), "gfx90c");
  EXPECT_EQ(m.device.compute_units * m.device.simds_per_cu, 28U);
  EXPECT_EQ(m.wave_size, 64U);
}

TEST(ModelFile, that_is_missing_is_named) {
  EXPECT_NE(error_of("/nonexistent.json").find("/nonexistent.json"), std::string::npos);
}

TEST(ModelFile, without_a_key_names_the_key) {
  const ChangedModel model(R"({"clocks": {"sclk_mhz": null}, "gpu_id": null})");
  EXPECT_NE(error_of(model.path()), "no error");
  const ChangedModel other(R"({"pci": {"address": "nonsense"}})");
  EXPECT_NE(error_of(other.path()).find("nonsense"), std::string::npos);
}

TEST(ModelFile, with_an_unknown_level_is_refused) {
  const ChangedModel model(R"({"quirks": {"levels": ["auto", "ludicrous"]}})");
  EXPECT_NE(error_of(model.path()).find("ludicrous"), std::string::npos);
}

TEST(ModelFile, with_a_quirk_refuses_that_level) {
  const ChangedModel model(R"({"quirks": {"levels": ["auto", "manual"]}})");
  EXPECT_EQ(
      read_model(model.path()).device.allowed_levels,
      1U << static_cast<unsigned>(Level::automatic) | 1U << static_cast<unsigned>(Level::manual));
}

}  // namespace
}  // namespace apusched::softapu
