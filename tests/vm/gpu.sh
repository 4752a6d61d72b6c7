# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Part of smoke.sh: the hardened unit with a GPU. The helper's sandbox is made by the unit and the
# daemon together: only here it is seen whether the one leaves the other what it needs. The GPU is
# the software APU, which lies in ./softapu: softapu-run, libsoftapu-kfd.so, models and programs.

readonly apu=/run/softapu
use_software_apu() {
  mkdir -p /opt /etc/systemd/system/apuschedd.service.d
  cp -a softapu /opt/
  printf '#!/bin/sh\nexec /opt/softapu/softapu-run --join %s -- %s "$@"\n' $apu \
    /usr/libexec/apusched/apusched-gpu-helper > /opt/gpu-helper
  chmod 755 /opt/gpu-helper
  cat > /etc/systemd/system/apuschedd.service.d/softapu.conf <<UNIT
[Service]
ExecStart=
ExecStart=/usr/sbin/apuschedd --config /etc/apusched/apuschedd.yaml --sysfs-root $apu/sys --gpu-helper /opt/gpu-helper
ExecStopPost=
ExecStopPost=/usr/sbin/apuschedd --restore --sysfs-root $apu/sys
ReadWritePaths=$apu
UNIT
  start_unit softapu system.slice /opt/softapu/softapu-run --session $apu --serve
  check "the software APU is there" eventually test -e $apu/ready
  start_unit decode system.slice /opt/softapu/softapu-run --join $apu -- /opt/softapu/programs/decode_loop
}

level_is() { is "$(cat $apu/sys/class/drm/card*/device/power_dpm_force_performance_level)" "$1"; }
samples_of() {  # SOURCE
  [ "$(apuschedctl status --json | jq ".gpus[0].dispatch_latency.$1.count")" -gt 4 ]
}
helper_pid() { pgrep --full ^/usr/libexec/apusched/apusched-gpu-helper; }
helper_is_gone() { ! helper_pid; }
helper_says() { says "$1" cat "/proc/$(helper_pid)/$2"; }
# What the loop says of levers that this machine has not is no complaint.
complaints() {
  journalctl --no-pager --unit apuschedd --since "$since" | grep --ignore-case cannot | grep --invert-match saturated
}

gpu() {
  local pid since
  since=$(date '+%F %T')
  use_software_apu
  systemctl start apuschedd
  pid=$(property decode MainPID)
  check "the workload uses the GPU" eventually test -d "$apu/sys/class/kfd/kfd/proc/$pid/queues/0"
  check "register it" apuschedctl register "$pid" --profile llm-interactive
  check "the performance level is in force" eventually level_is high
  check "barrier packets are timed" eventually samples_of queue
  check "kernels are timed" eventually samples_of kernel
  check "the helper runs as its own user" is "$(stat --format %U "/proc/$(helper_pid)")" apusched-gpu
  check "without capabilities" helper_says $'CapEff:\t0000000000000000' status
  check "with system calls filtered" helper_says $'Seccomp:\t2' status
  check "and a /dev/shm of its own" helper_says "/dev/shm tmpfs rw,nosuid,nodev,noexec" mounts
  check "nothing of that failed" is "$(complaints)" ""
  check "unregister it" apuschedctl unregister "$pid"
  check "the performance level is back" eventually level_is auto
  check "the helper is gone" eventually helper_is_gone
  check "register it again" apuschedctl register "$pid" --profile llm-interactive
  check "the performance level is in force again" eventually level_is high
  kill -KILL "$(property apuschedd MainPID)"
  check "after SIGKILL the performance level is back" eventually level_is auto
  check "and no helper is left" eventually helper_is_gone
  systemctl stop apuschedd decode softapu
  rm /etc/systemd/system/apuschedd.service.d/softapu.conf
  systemctl daemon-reload
}

# Where sysfs is the machine's own: what the unit leaves writable of it.
in_its_mounts() { nsenter --mount --target "$(property apuschedd MainPID)" "$@"; }
sysfs() {
  local device=/sys/devices/system/cpu/cpu1/power/control
  systemctl start apuschedd
  check "a GPU's performance level could be written" in_its_mounts tee $device < $device
  check "tunables of the kernel could not" says "Read-only" in_its_mounts tee /proc/sys/kernel/panic < /dev/null
  check "neither could cgroups" says "Read-only" in_its_mounts mkdir /sys/fs/cgroup/mine
}
