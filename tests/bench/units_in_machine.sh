#!/bin/bash
# SPDX-License-Identifier: MIT
# Part of bench_units.py, in a machine of packaging/vmtest with cgroup v2 and systemd: a dispatch loop
# beside CPU hogs, each a service, in one slice or in two.
#
#   units_in_machine.sh SECONDS REPETITIONS TREES
#
# A line of JSON per run in $VM_OUT/units.jsonl. What counts begins SETTLE seconds after the hogs.
set -euo pipefail
seconds=$1 repetitions=$2 trees=$3
settle=4 period_us=10000 work_us=500 hogs=4 limit=60
out=$VM_OUT/units.jsonl

# shellcheck source=tests/vm/units.sh
. "$PWD/units.sh"
fail() { echo "units_in_machine: $*" >&2; exit 1; }
until_so() {  # WHAT COMMAND…
  local what=$1 end=$((SECONDS + limit))
  shift
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "waited in vain for $what"
    sleep 0.2
  done
}
has_lines() { [ "$(wc -l < /run/loop.out)" -ge "$1" ]; }
start_loop() {  # SLICE
  rm -f /run/loop.in /run/loop.out
  mkfifo /run/loop.in
  exec 7<> /run/loop.in
  start_service loop "$1" StandardInput=file:/run/loop.in StandardOutput=truncate:/run/loop.out \
    "ExecStart=$PWD/bench_dispatch_loop $period_us $work_us"
  until_so "the loop" has_lines 1
  pid=$(property loop MainPID)
}
threads() { ls "/proc/$pid/task"; }
# What its threads waited for a CPU, in ns, and how often they got one.
waits() { cat "/proc/$pid"/task/*/schedstat | awk '{ wait += $2; times += $3 } END { print wait, times }'; }
hogs_used() {
  systemctl -q is-active hogs || { echo 0; return; }
  cpu_used hogs
}
renice_all() { threads | xargs renice -n "$1" -p > /dev/null; }
told() {  # how often the loop of the daemon changed a lever of it
  apuschedctl history -n 512 --json | jq --argjson pid "$pid" \
    '[.lines[] | select(.pid == $pid and (.what == "tried" or .what == "undone" or .what == "released"))] | length'
}
treat() {  # WAY DECIDES
  case $1 in
    'renice all') renice_all -10 ;;
    'by hand')
      renice_all -20
      systemctl set-property --runtime "$2" CPUWeight=10000 ;;
    managed) apuschedctl register "$pid" -p llm-interactive > /dev/null ;;
  esac
}
untreat() {
  case $1 in
    'by hand') systemctl revert "$2" ;;
    managed)
      apuschedctl unregister "$pid" > /dev/null
      # the next run must find nothing of this one
      until_so "the weights restored" sh -c "[ -z \"\$(ls /run/systemd/system.control 2> /dev/null)\" ]" ;;
  esac
}
measure() {  # TREE WAY LOOP-SLICE HOGS-SLICE DECIDES
  local before after used changes=0 held='[]'
  start_loop "$3"
  treat "$2" "$5"
  sleep 1
  if [ "$2" != alone ]; then
    start_unit hogs "$4" /bin/sh -c "'for i in $(seq -s ' ' $hogs); do sh -c \"while :; do :; done\" & done; wait'"
  fi
  sleep $settle
  [ "$2" != managed ] || changes=$(told)
  before=$(waits) used=$(hogs_used)
  echo begin >&7
  sleep "$seconds"
  echo end >&7
  until_so "the loop's figures" has_lines 2
  after=$(waits) used=$(($(hogs_used) - used))
  if [ "$2" = managed ]; then
    changes=$(($(told) - changes))
    held=$(apuschedctl list --json | jq --compact-output --argjson pid "$pid" \
      '.processes[] | select(.pid == $pid) | .control.engaged // []')
  fi
  tail -n 1 /run/loop.out | jq --compact-output --arg tree "$1" --arg way "$2" --argjson used "$used" \
    --argjson writes "$changes" --argjson held "$held" --arg before "$before" --arg after "$after" \
    '($before / " " | map(tonumber)) as $b | ($after / " " | map(tonumber)) as $a
     | . + {tree: $tree, way: $way, hogs_us: $used, writes: $writes, held: $held,
            wait_us: (($a[0] - $b[0]) / ([$a[1] - $b[1], 1] | max) / 1000)}' >> "$out"
  untreat "$2" "$5"
  systemctl stop hogs 2> /dev/null || true
  exec 7>&-
  systemctl stop loop
  tail -n 1 "$out"
}

make_known
systemctl start apuschedd
for _ in $(seq "$repetitions"); do
  for way in alone unmanaged 'renice all' 'by hand' managed; do
    measure 'two units' "$way" apu.slice apu.slice loop.service
    [ "$trees" -lt 2 ] || measure 'units in different slices' "$way" apu-left.slice apu-right.slice apu-left.slice
  done
done
