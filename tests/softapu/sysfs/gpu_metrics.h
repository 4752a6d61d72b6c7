// SPDX-License-Identifier: MIT
// The binary gpu_metrics file. Layouts: kgd_pp_interface.h of Linux 6.12; units per generation as
// its swsmu files fill them in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sysfs/readings.h"

namespace apusched::softapu {

enum class MetricsFormat : std::uint8_t { none, v1_5, v2_1, v2_2, v3_0 };
inline constexpr std::array<std::pair<MetricsFormat, std::string_view>, 5> kMetricsFormats = {{
    {MetricsFormat::none, "none"},
    {MetricsFormat::v1_5, "1.5"},
    {MetricsFormat::v2_1, "2.1"},
    {MetricsFormat::v2_2, "2.2"},
    {MetricsFormat::v3_0, "3.0"},
}};

// Empty for `none`. Fields that the model does not know are 0xFF, as firmware that has none leaves
// them; with `all_unknown` every field is.
[[nodiscard]] std::string gpu_metrics(MetricsFormat format, const Readings& readings,
                                      std::uint32_t mclk_mhz, bool all_unknown = false);

}  // namespace apusched::softapu
