# SPDX-License-Identifier: MIT
# Benchmarks of the daemon on a private bus; the bench_*.py drivers start everything.
add_executable(bench_echo_service echo_service.cpp)
target_link_libraries(bench_echo_service PRIVATE apusched::options apusched::sdbus)
add_executable(bench_idle_process idle_process.cpp)
target_link_libraries(bench_idle_process PRIVATE apusched::options Threads::Threads)
add_library(bench_bus_client STATIC bus_client.cpp)
target_link_libraries(bench_bus_client PUBLIC
  apusched::options PkgConfig::SYSTEMD nlohmann_json::nlohmann_json CLI11::CLI11)
foreach(name dbus_calls exit_restore)
  add_executable(bench_${name} ${name}.cpp)
  target_link_libraries(bench_${name} PRIVATE bench_bus_client)
endforeach()

# Short runs: they fail where a benchmark is broken, never for a figure.
set(bench_dbus_arguments --count 20 --repetitions 1)
set(bench_exit_arguments --exits 10 --repetitions 1 --others 10)
set(bench_idle_arguments --seconds 1)
foreach(name dbus exit idle)
  add_test(NAME bench.${name}
    COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/bench_${name}.py ${bench_${name}_arguments})
  set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 120 RUN_SERIAL ON
    ENVIRONMENT "APUSCHED_BUILD_DIR=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
endforeach()
