# SPDX-License-Identifier: MIT
# Benchmarks of the closed loop.
add_executable(bench_dispatch_loop dispatch_loop.cpp)
target_link_libraries(bench_dispatch_loop PRIVATE
  apusched::options nlohmann_json::nlohmann_json Threads::Threads)
add_executable(bench_tick_floor tick_floor.cpp)
target_link_libraries(bench_tick_floor PRIVATE apusched::options Threads::Threads)

# Short runs, as in bus.cmake.
set(bench_cpu_contention_arguments --repetitions 1 --seconds 1 --trees 1 --foreign 100)
set(bench_step_response_arguments --repetitions 1 --seconds 2 --trees 1 --energy 1)
set(bench_tick_arguments --repetitions 1 --seconds 1 --most 1)
foreach(name cpu_contention step_response tick)
  add_test(NAME bench.${name}
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/bench_${name}.py ${bench_${name}_arguments})
  set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 120 RUN_SERIAL ON
    ENVIRONMENT "APUSCHED_BUILD_DIR=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endforeach()
