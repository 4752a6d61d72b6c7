# SPDX-License-Identifier: MIT
apusched_fuzzer(fuzz_proc_parse SOURCES fuzz_proc_parse.cpp LINK apusched::platform)
apusched_fuzzer(fuzz_ledger_line SOURCES fuzz_ledger_line.cpp LINK apusched::platform)
apusched_fuzzer(fuzz_gpu_texts SOURCES fuzz_gpu_texts.cpp LINK apusched::helper_parts)
apusched_fuzzer(fuzz_agent_page SOURCES fuzz_agent_page.cpp LINK apusched::platform)
