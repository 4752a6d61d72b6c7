# SPDX-License-Identifier: MIT
# The agent in programs on the real runtime. Those are built without a sanitizer; of these only
# AddressSanitizer can be added to them from outside.
if(APUSCHED_SANITIZE MATCHES address)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
    OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(with_sanitizer "APUSCHED_SANITIZER_LIBRARY=${library}"
    "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0")
endif()
if(NOT APUSCHED_SANITIZE OR with_sanitizer)
  apusched_integration_test(agent agent ${with_sanitizer})
  apusched_integration_test(agent_chaos agent_chaos ${with_sanitizer})
endif()
if(NOT APUSCHED_SANITIZE AND TARGET softapu_hip_user)
  apusched_integration_test(agent_hip agent_hip)
endif()
