# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Part of smoke.sh, where the kernel has a cpu controller: two units in different slices on one
# CPU. The registered one lies directly in apu.slice, the rival below it in apu-rival.slice: the
# registered unit and the rival's slice are siblings, so the unit's weight counts between them.

used() { sed -n 's/^usage_usec //p' "/sys/fs/cgroup$(property "$1" ControlGroup)/cpu.stat"; }

# CPU time of the first unit in hundredths of the second one's, once both had two seconds more.
share() {
  local first=$1 second=$2 a b
  a=$(used "$first") b=$(used "$second")
  until [ $(($(used "$first") + $(used "$second") - a - b)) -gt 2000000 ]; do sleep 0.2; done
  a=$(($(used "$first") - a)) b=$(($(used "$second") - b))
  echo $((a * 100 / (b > 0 ? b : 1)))
}
share_between() {
  local seen
  seen=$(share critical rival)
  echo "$seen hundredths"
  [ "$seen" -ge "$1" ] && [ "$seen" -le "$2" ]
}
weight_file() { echo "/sys/fs/cgroup$(property critical ControlGroup)/cpu.weight"; }
weight_file_is() { is "$(cat "$(weight_file)")" "$1"; }
# With the last weight the cpu controller itself is taken from apu.slice's children again.
weight_file_is_gone() { test -d "$(dirname "$(weight_file)")" && test ! -e "$(weight_file)"; }

systemctl start apuschedd
start_unit critical apu.slice taskset -c 0 sh -c "'while :; do :; done'"
start_unit rival apu-rival.slice taskset -c 0 sh -c "'while :; do :; done'"
critical_pid=$(property critical MainPID)
check "untouched, it has no cpu.weight" weight_file_is_gone
check "untouched, both get about half of the CPU" share_between 60 160
check "register the critical one" apuschedctl register "$critical_pid" -p llm-interactive
check "its weight is applied" eventually outcome_is "$critical_pid" cpu_weight applied
check "cpu.weight of its unit is what the profile says" eventually weight_file_is 1000
check "the drop-in is systemd's" test -e /run/systemd/system.control/critical.service.d/50-CPUWeight.conf
# 10 : 1 in theory
check "its share follows the weight" share_between 500 2000
check "unregister it" apuschedctl unregister "$critical_pid"
check "cpu.weight is gone" eventually weight_file_is_gone
check "the drop-in is gone" eventually no_drop_in critical
check "both get about half of the CPU again" share_between 60 160
systemctl stop critical rival
