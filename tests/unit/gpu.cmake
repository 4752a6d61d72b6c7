# SPDX-License-Identifier: MIT
apusched_test(gpu_test SOURCES
  gpu/protocol_test.cpp gpu/telemetry_test.cpp gpu/topology_test.cpp gpu/probe_schedule_test.cpp
  gpu/helper_process_test.cpp
  LINK apusched::helper_parts apusched::platform_gpu)
