// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "platform/gpu_topology.hpp"
#include "unit/temporary_tree.hpp"

namespace apusched::platform {
namespace {

constexpr const char* kRembrandt =
    "cpu_cores_count 0\nsimd_count 24\nsimd_per_cu 2\ngfx_target_version 100305\n"
    "vendor_id 4098\ndevice_id 5761\nlocation_id 1024\ndomain 0\nnum_cp_queues 8\n";
constexpr const char* kCpu = "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n";

KfdProperties with(std::uint64_t version, std::uint64_t device = 0) {
  return {{"simd_count", 4}, {"gfx_target_version", version}, {"device_id", device}};
}

TEST(KfdIsa, writes_the_stepping_as_a_hex_letter) {
  EXPECT_EQ(isa_name(100305), "gfx1035");
  EXPECT_EQ(isa_name(90012), "gfx90c");
  EXPECT_EQ(isa_name(90002), "gfx902");
  EXPECT_EQ(isa_name(90402), "gfx942");
  EXPECT_EQ(isa_name(110003), "gfx1103");
  EXPECT_EQ(isa_name(110501), "gfx1151");
}

TEST(KfdIsa, has_no_name_for_a_cpu_or_nonsense) {
  EXPECT_FALSE(isa_name(0));
  EXPECT_FALSE(isa_name(90099));
  EXPECT_FALSE(isa_name(99));
  EXPECT_FALSE(isa_name(1'000'000));
  EXPECT_FALSE(isa_name(~0ULL));
}

TEST(KfdNode, gives_the_facts_of_an_apu) {
  const auto facts = parse_gpu_node(kRembrandt, "36834\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->pci.text(), "0000:04:00.0");
  EXPECT_EQ(facts->isa, "gfx1035");
  EXPECT_EQ(facts->compute_units, 12U);
  EXPECT_EQ(facts->kfd_gpu_id, 36834U);
  EXPECT_EQ(facts->queue_limit, 8U);
  EXPECT_TRUE(facts->apu);
}

TEST(KfdNode, is_nothing_for_a_cpu_or_without_an_id) {
  EXPECT_FALSE(parse_gpu_node(kCpu, "0\n"));
  EXPECT_FALSE(parse_gpu_node(kRembrandt, "0\n"));
  EXPECT_FALSE(parse_gpu_node(kRembrandt, ""));
  EXPECT_FALSE(parse_gpu_node(kRembrandt, "99999999999\n"));
}

TEST(KfdNode, survives_malformed_text) {
  EXPECT_FALSE(parse_gpu_node("", "1"));
  EXPECT_FALSE(parse_gpu_node("simd_count\n simd_count 3\nsimd_count x\n", "1"));
  EXPECT_FALSE(parse_gpu_node(std::string(5000, '\0'), "1"));
  EXPECT_EQ(parse_kfd_properties("a 1\nb -1\nc 2 3\nd 18446744073709551616\ne 5").size(), 2U);
  // A division by the missing simd_per_cu must not happen.
  const auto odd = parse_gpu_node("simd_count 24\ngfx_target_version 100305\n", "1");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->compute_units, 0U);
}

TEST(KfdNode, has_no_address_when_its_location_is_out_of_range) {
  EXPECT_FALSE(kfd_pci_address({{"domain", 0x10000}, {"location_id", 0}}));
  EXPECT_FALSE(kfd_pci_address({{"domain", 0}, {"location_id", 0x10000}}));
  EXPECT_EQ(kfd_pci_address({{"domain", 1}, {"location_id", 0xc1a5}})->text(), "0001:c1:14.5");
}

TEST(KfdNode, bounds_the_number_of_keys) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "key" + std::to_string(i) + " 1\n";
  EXPECT_EQ(parse_kfd_properties(text).size(), 256U);
}

TEST(KfdNode, tells_apus_from_discrete_gpus_by_isa_and_device) {
  EXPECT_TRUE(is_apu(with(100305)));
  EXPECT_TRUE(is_apu(with(110501)));
  EXPECT_FALSE(is_apu(with(110000))) << "Navi 31";
  EXPECT_TRUE(is_apu(with(90402, 0x74a0))) << "MI300A";
  EXPECT_FALSE(is_apu(with(90402, 0x74a1))) << "MI300X";
  auto merged = with(90002);
  merged["cpu_cores_count"] = 8;
  EXPECT_TRUE(is_apu(merged)) << "one node, as kernels with IOMMUv2 show it";
}

class KfdTree : public testing::Test {
 protected:
  void node(int number, const std::string& properties, const std::string& gpu_id) {
    const auto base = "class/kfd/kfd/topology/nodes/" + std::to_string(number);
    tree_.write(base + "/properties", properties);
    tree_.write(base + "/gpu_id", gpu_id);
  }
  void queue(int pid, int id, const std::string& type, const std::string& gpu) {
    const auto base = "class/kfd/kfd/proc/" + std::to_string(pid) + "/queues/" + std::to_string(id);
    tree_.write(base + "/type", type);
    tree_.write(base + "/gpuid", gpu);
    tree_.write(base + "/size", "4096");
  }
  tests::TemporaryTree tree_;
  KfdTopology topology_{tree_.root()};
  std::string why_;
};

TEST_F(KfdTree, finds_the_gpu_beside_the_cpu) {
  node(0, kCpu, "0\n");
  node(1, kRembrandt, "36834\n");
  const auto gpus = topology_.discover(why_);
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].isa, "gfx1035");
  EXPECT_TRUE(why_.empty());
}

TEST_F(KfdTree, knows_whether_a_gpu_is_there_still) {
  node(0, kCpu, "0\n");
  node(1, kRembrandt, "36834\n");
  EXPECT_TRUE(topology_.present(36834));
  EXPECT_FALSE(topology_.present(7));
  node(1, kRembrandt, "no number\n");
  EXPECT_FALSE(topology_.present(36834));
}

TEST_F(KfdTree, says_why_there_is_no_gpu) {
  EXPECT_TRUE(topology_.discover(why_).empty());
  EXPECT_NE(why_.find("amdkfd"), std::string::npos);
  node(0, kCpu, "0\n");
  EXPECT_TRUE(topology_.discover(why_).empty());
  EXPECT_NE(why_.find("no GPU"), std::string::npos);
}

TEST_F(KfdTree, bounds_the_number_of_nodes) {
  for (int i = 0; i < 70; ++i) node(i, kRembrandt, std::to_string(i + 1));
  EXPECT_EQ(topology_.discover(why_).size(), 64U);
}

TEST_F(KfdTree, counts_compute_queues_only) {
  queue(100, 0, "0", "36834");
  queue(100, 1, "1", "36834");
  queue(100, 2, "0", "7");
  queue(200, 5, "0", "36834");
  EXPECT_EQ(topology_.queue_gpu_ids(*core::Pid::make(100)), (std::vector<std::uint32_t>{36834, 7}));
  EXPECT_EQ(topology_.queue_count(36834), 2U);
  EXPECT_TRUE(topology_.queue_gpu_ids(*core::Pid::make(300)).empty());
}

TEST_F(KfdTree, skips_queues_and_processes_that_make_no_sense) {
  queue(100, 0, "", "36834");
  queue(100, 1, "0", "gpu");
  queue(100, 2, "0", "99999999999");
  tree_.write("class/kfd/kfd/proc/self/queues/0/type", "0");
  tree_.write("class/kfd/kfd/proc/101", "a file");
  EXPECT_TRUE(topology_.queue_gpu_ids(*core::Pid::make(100)).empty());
  EXPECT_EQ(topology_.queue_count(36834), 0U);
}

}  // namespace
}  // namespace apusched::platform
