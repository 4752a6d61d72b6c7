# SPDX-License-Identifier: MIT
apusched_test(settings_test SOURCES
  settings_parse_test.cpp settings_document_test.cpp settings_samples_test.cpp
  LINK apusched::settings)
target_compile_definitions(settings_test PRIVATE
  APUSCHED_CONFIG_DIR="${PROJECT_SOURCE_DIR}/config"
  APUSCHED_MAN_DIR="${PROJECT_SOURCE_DIR}/packaging/man")
apusched_test(ctl_test SOURCES ctl_render_test.cpp ctl_json_test.cpp ctl_command_test.cpp
  LINK apusched::ctl)
