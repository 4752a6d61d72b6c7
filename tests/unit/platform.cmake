# SPDX-License-Identifier: MIT
apusched_test(platform_test SOURCES
  platform/proc_parse_test.cpp platform/ledger_store_test.cpp platform/system_test.cpp platform/sysfs_power_test.cpp
  platform/pm_qos_latency_test.cpp platform/cpufreq_energy_test.cpp
  platform/agent_page_test.cpp platform/agent_socket_test.cpp
  LINK apusched::platform)
apusched_test(bus_test SOURCES bus/bus_test.cpp LINK apusched::bus)
apusched_test(report_test SOURCES report_test.cpp LINK apusched::report)
