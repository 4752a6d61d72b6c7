# SPDX-License-Identifier: MIT
apusched_fuzzer(fuzz_agent_control SOURCES fuzz_agent_control.cpp LINK apusched::agent)
