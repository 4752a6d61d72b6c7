# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the scripts in a machine of packaging/vmtest share: the installed tree is made known, services
# are made as packages bring them, and asked about.

make_known() {
  systemd-sysusers
  systemctl daemon-reload
  systemctl reload dbus
}
property() { systemctl show --property "$2" --value "$1"; }
cpu_used() { sed -n 's/^usage_usec //p' "/sys/fs/cgroup$(property "$1" ControlGroup)/cpu.stat"; }  # UNIT
start_service() {  # NAME SLICE LINE…
  printf '%s\n' '[Service]' "Slice=$2" "${@:3}" > "/etc/systemd/system/$1.service"
  systemctl daemon-reload
  systemctl start "$1"
}
start_unit() { start_service "$1" "$2" "ExecStart=${*:3}"; }  # NAME SLICE COMMAND…
