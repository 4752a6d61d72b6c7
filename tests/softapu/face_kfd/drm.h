// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace apusched::softapu {

// An ioctl on the render node. 0, or an errno; ENODEV while /dev/kfd is not open, because the
// model is known through it.
int drm_ioctl(unsigned long request, void* argument, std::size_t gpu);

}  // namespace apusched::softapu
