# SPDX-License-Identifier: MIT
apusched_test(freezer_test SOURCES
  freezer/duty_cycles_test.cpp freezer/order_test.cpp freezer/freezer_process_test.cpp
  LINK apusched::platform)
target_compile_definitions(freezer_test PRIVATE APUSCHED_FREEZER="$<TARGET_FILE:apusched-freezer>")
add_dependencies(freezer_test apusched-freezer)
