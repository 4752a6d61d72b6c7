# SPDX-License-Identifier: MIT
# The daemon's side of the GPU: it links neither HSA nor rocm-smi-lib, only the wire protocol.
apusched_layer(platform_gpu SOURCES
  gpu_topology.cpp gpu_spawn.cpp gpu_helper_process.cpp gpu_level_writer.cpp
  LINK apusched::platform apusched::helper_protocol)
