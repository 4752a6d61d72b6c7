# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Part of smoke.sh, where the kernel is the machine's own: the hardened unit may open the device that
# limits how deep idle CPUs sleep, the limit is in force while the daemon holds it, and goes with it.
# What asks for it is ./agent_program, whose packets wait as long as it is told; a machine that is
# emulated has neither the GPU nor the idle states, which are files here.

readonly latency_device=/dev/cpu_dma_latency no_limit=2000000000 latency_sys=/run/latency-sys
readonly latency_dropin=/etc/systemd/system/apuschedd.service.d/latency.conf

sysfs_file() {  # NAME TEXT
  mkdir -p "$(dirname "$latency_sys/$1")"
  printf '%s\n' "$2" > "$latency_sys/$1"
}
limit_is() {
  is "$(od --address-radix=n --format=d4 --read-bytes=4 $latency_device | tr -d ' ')" "$1"
}
daemon_holds_device() {
  is "$(find "/proc/$(property apuschedd MainPID)/fd" -lname $latency_device -printf '%l')" "$1"
}
slack_is() { is "$(cat "/proc/$engine_PID/timerslack_ns")" "$1"; }
engine_is() {
  is "$(apuschedctl list --json | jq --raw-output '.processes[].gpu_control.state')" "$1"
}
engine_outcome_is() { outcome_is "$engine_PID" "$1" "$2"; }

# While nothing, the limit, the timer slack, or both are held: in µs.
packets_wait() { echo "$1" >&"${engine[1]}"; }
engine_misses_its_target() {
  packets_wait "100 100 100 100"
  check "register the engine" apuschedctl register "$engine_PID" --profile engine
  check "it meets its target" eventually engine_is meeting
  packets_wait "4000 2000 2000 100"
}

latency_unit() {  # LINE… of the drop-in
  mkdir -p "$(dirname $latency_dropin)"
  cat > $latency_dropin << UNIT
[Service]
ExecStart=
ExecStart=/usr/sbin/apuschedd --config /etc/apusched/apuschedd.yaml --sysfs-root $latency_sys
UNIT
  [ $# = 0 ] || printf '%s\n' "$@" >> $latency_dropin
  systemctl daemon-reload
  systemctl reset-failed apuschedd
  systemctl restart apuschedd
}

limit_cpu_latency() {
  echo "# the limit on CPU latency"
  local node=class/kfd/kfd/topology/nodes/1 idle=devices/system/cpu/cpu0/cpuidle/state0
  sysfs_file $node/properties $'simd_count 24\nsimd_per_cu 2\ngfx_target_version 100305\nlocation_id 1024'
  sysfs_file $node/gpu_id 36834
  sysfs_file $idle/latency 350
  sysfs_file $idle/name C3
  sysfs_file $idle/disable 0
  cat > /etc/apusched/apuschedd.yaml << YAML
probe: {enabled: false}
profiles:
  engine: {class: critical, target_dispatch_percent: 150}
YAML
  latency_unit
  coproc engine { exec ./agent_program /run/apusched/agent.sock $latency_device > /dev/null; }
  sysfs_file "class/kfd/kfd/proc/$engine_PID/queues/0/type" 0
  sysfs_file "class/kfd/kfd/proc/$engine_PID/queues/0/gpuid" 36834
  check "the kernel has the device" test -c $latency_device
  latency_comes_and_goes
  latency_is_denied
  kill "$engine_PID"
  : > /etc/apusched/apuschedd.yaml
  rm $latency_dropin
  systemctl daemon-reload
  systemctl restart apuschedd
}

latency_comes_and_goes() {
  check "nobody limits it" limit_is $no_limit
  engine_misses_its_target
  check "while the target is missed the limit is in force" eventually limit_is 20
  check "it is the daemon of the unit that holds it" daemon_holds_device $latency_device
  check "status says so" eventually engine_outcome_is cpu_latency applied
  check "timers fire on time, too" eventually slack_is 1000
  check "unregister the engine" apuschedctl unregister "$engine_PID"
  check "the limit is gone" eventually limit_is $no_limit
  check "the device is closed" daemon_holds_device ""
  check "and the slack is back" eventually slack_is 50000

  engine_misses_its_target
  check "the limit is in force again" eventually limit_is 20
  check "and the slack is held" eventually slack_is 1000
  kill -KILL "$(property apuschedd MainPID)"
  check "with the daemon's death the limit is gone" eventually limit_is $no_limit
  check "the next one starts" eventually property_is apuschedd ActiveState active
  check "it holds nothing" daemon_holds_device ""
  check "and has put the slack back" slack_is 50000
}

latency_is_denied() {
  latency_unit "DeviceAllow=" "DeviceAllow=/dev/kfd rw" "DeviceAllow=char-drm rw"
  engine_misses_its_target
  check "a unit that does not name the device is refused" eventually engine_outcome_is cpu_latency denied
  check "and limits nothing" limit_is $no_limit
  check "timers fire on time all the same" eventually slack_is 1000
}

limit_cpu_latency
