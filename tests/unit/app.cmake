# SPDX-License-Identifier: MIT
apusched_test(app_test SOURCES
  app/nice_test.cpp app/shared_lever_test.cpp app/service_test.cpp app/scan_test.cpp
  app/background_test.cpp app/agents_test.cpp app/control_loop_test.cpp app/control_rungs_test.cpp
  app/gpu_control_test.cpp app/level_control_test.cpp
  app/cpu_latency_test.cpp app/dispatch_levers_test.cpp app/hold_back_test.cpp app/background_energy_test.cpp
  LINK apusched::app)
