# SPDX-License-Identifier: MIT
# Seeds: config/apuschedd.yaml and config/samples (packaging/check passes them).
apusched_fuzzer(fuzz_settings SOURCES fuzz_settings.cpp LINK apusched::settings)
