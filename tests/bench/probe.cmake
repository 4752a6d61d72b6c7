# SPDX-License-Identifier: MIT
# Runs below the software APU's preload, which sanitizers do not allow.
if(NOT APUSCHED_SANITIZE)
  add_executable(bench_probe bench_probe.cpp)
  target_link_libraries(bench_probe PRIVATE apusched::options apusched::helper_probe
    softapu_hsa_program nlohmann_json::nlohmann_json CLI11::CLI11)
  add_test(NAME bench.probe COMMAND $<TARGET_FILE:softapu-run> --model rembrandt --
    $<TARGET_FILE:bench_probe> --count 50 --repetitions 1)
  set_tests_properties(bench.probe PROPERTIES LABELS bench TIMEOUT 120 RUN_SERIAL ON)
endif()
