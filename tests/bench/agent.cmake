# SPDX-License-Identifier: MIT
# Below the software APU's preload, which sanitizers do not allow.
if(NOT APUSCHED_SANITIZE)
  add_executable(agent_dispatches agent_dispatches.cpp)
  target_link_libraries(agent_dispatches PRIVATE apusched::options softapu_hsa_program
    nlohmann_json::nlohmann_json CLI11::CLI11)
  add_dependencies(agent_dispatches softapu_kernels)

  add_library(intercept_tool MODULE ../doubles/intercept_tool.cpp)
  target_include_directories(intercept_tool PRIVATE ${PROJECT_SOURCE_DIR}/client)
  target_link_libraries(intercept_tool PRIVATE apusched::options)

  add_test(NAME bench.agent COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/bench_agent.py
    --repetitions 1 --batches 20 --rounds 200)
  set_tests_properties(bench.agent PROPERTIES LABELS bench TIMEOUT 120 RUN_SERIAL ON
    ENVIRONMENT "APUSCHED_BUILD_DIR=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endif()
