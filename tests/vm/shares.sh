# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Part of smoke.sh, where the kernel has a cpu controller: what a unit's weight does to its share
# of a CPU. The kernel compares siblings only, level by level from the root. So the weight of the
# unit decides against what lies in the same slice, another slice included; between two slices the
# slices' weights decide, whatever their units have.

# CPU time of the first unit in hundredths of the second one's, once both had two seconds more.
share() {
  local first=$1 second=$2 a b
  a=$(cpu_used "$first") b=$(cpu_used "$second")
  until [ $(($(cpu_used "$first") + $(cpu_used "$second") - a - b)) -gt 2000000 ]; do sleep 0.2; done
  a=$(($(cpu_used "$first") - a)) b=$(($(cpu_used "$second") - b))
  echo $((a * 100 / (b > 0 ? b : 1)))
}
share_between() {
  local seen
  seen=$(share critical rival)
  printf '    critical : rival = %d.%02d : 1\n' $((seen / 100)) $((seen % 100)) >&3
  [ "$seen" -ge "$1" ] && [ "$seen" -le "$2" ]
}
even_shares() { share_between 60 160; }
ten_to_one() { share_between 500 2000; }

weight_file() { echo "/sys/fs/cgroup$(property critical ControlGroup)/cpu.weight"; }
weight_file_is() { is "$(cat "$(weight_file)")" "$1"; }
# The cpu controller is on for a slice's children only while one of them has a weight.
weight_file_is_gone() { test -d "$(dirname "$(weight_file)")" && test ! -e "$(weight_file)"; }

loop_in() {  # UNIT SLICE
  start_unit "$1" "$2" taskset --cpu-list 0 sh -c "'while :; do :; done'"
}
register_critical() {
  local pid
  pid=$(property critical MainPID)
  check "register the critical one" apuschedctl register "$pid" -p llm-interactive
  check "its weight is applied" eventually outcome_is "$pid" cpu_weight applied
  check "cpu.weight of its unit is what the profile says" eventually weight_file_is 1000
}
unregister_critical() {
  check "unregister it" apuschedctl unregister "$(property critical MainPID)"
  check "the drop-in is gone" eventually no_drop_in critical
}

# Against a rival in this slice, the critical unit in apu.slice gets what its weight says.
weight_decides_against() {  # SLICE OF THE RIVAL
  echo "# critical in apu.slice, rival in $1"
  loop_in critical apu.slice
  loop_in rival "$1"
  check "untouched, it has no cpu.weight" weight_file_is_gone
  check "untouched, both get about half of the CPU" even_shares
  register_critical
  check "the drop-in is systemd's" test -e /run/systemd/system.control/critical.service.d/50-CPUWeight.conf
  check "its share follows the weight" ten_to_one
  unregister_critical
  check "cpu.weight is gone" eventually weight_file_is_gone
  check "both get about half of the CPU again" even_shares
  systemctl stop critical rival
}

slices_decide() {
  echo "# critical in apu-left.slice, rival in apu-right.slice"
  loop_in critical apu-left.slice
  loop_in rival apu-right.slice
  register_critical
  check "status says against whom it acts" says "acts against sibling units" apuschedctl status
  check "that is not the rival: both get about half of the CPU" even_shares
  systemctl set-property --runtime apu-left.slice CPUWeight=1000
  check "the share follows the slices' weights" ten_to_one
  unregister_critical
  check "the weight of the slice is not the daemon's and stays" property_is apu-left.slice CPUWeight 1000
  check "and so does the share" ten_to_one
  systemctl stop critical rival
  systemctl revert apu-left.slice
}

# The closed loop finds that by itself: what the unit's weight does not reach, its slice's does.
the_loop_raises_the_slice() {
  echo "# the same, with the closed loop"
  loop_in critical apu-left.slice
  loop_in rival apu-right.slice
  local pid
  pid=$(property critical MainPID)
  check "untouched, both get about half of the CPU" even_shares
  check "register the critical one" apuschedctl register "$pid" -p llm-interactive
  check "its slice is raised" eventually property_is apu-left.slice CPUWeight 10000
  check "status says so" eventually says "acts against what is beside apu-left.slice" apuschedctl status
  check "the slice that both are in is left alone" property_is apu.slice CPUWeight "[not set]"
  check "its share follows" share_between 2000 1000000
  check "the loop holds it, however little the rival gets" property_is apu-left.slice CPUWeight 10000
  start_unit neighbour apu-left.slice sleep infinity
  check "for another unit's sake it goes back" eventually property_is apu-left.slice CPUWeight "[not set]"
  systemctl stop neighbour
  check "and is raised again without it" eventually property_is apu-left.slice CPUWeight 10000
  check "unregister it" apuschedctl unregister "$pid"
  check "the slice's weight is back" eventually property_is apu-left.slice CPUWeight "[not set]"
  check "no drop-in of it is left" eventually test ! -e /run/systemd/system.control/apu-left.slice.d/50-CPUWeight.conf
  check "both get about half of the CPU again" even_shares
  systemctl stop critical rival
}

exec 3>&1  # the measured shares are told also where they are as they should be
# The loop would raise the weight above the profile's as soon as the rival is in the way.
printf 'control:\n  enabled: false\n' > /etc/apusched/apuschedd.yaml
systemctl restart apuschedd
weight_decides_against apu.slice
weight_decides_against apu-rival.slice
slices_decide
: > /etc/apusched/apuschedd.yaml
systemctl restart apuschedd
the_loop_raises_the_slice
