# SPDX-License-Identifier: MIT
# The agent against a runtime that is a double, so that sanitizers see both sides.
add_library(fake_hsa STATIC ../doubles/fake_hsa.cpp)
target_include_directories(fake_hsa PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(fake_hsa PUBLIC apusched::agent)

apusched_test(agent_test SOURCES
  agent/masks_test.cpp agent/gate_test.cpp agent/values_test.cpp agent/levers_test.cpp
  agent/queue_registry_test.cpp agent/attach_test.cpp agent/hooks_test.cpp
  agent/hostile_daemon_test.cpp ${PROJECT_SOURCE_DIR}/client/agent/on_load.cpp
  LINK apusched::agent fake_hsa)
