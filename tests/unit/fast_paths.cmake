# SPDX-License-Identifier: MIT
apusched_test(fast_paths_test SOURCES fast_paths_test.cpp LINK apusched::platform)
