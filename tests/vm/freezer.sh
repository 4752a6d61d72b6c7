# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Part of smoke.sh, where the whole cgroup tree is version 2: a unit that is wholly background is
# stopped for a part of the time, and runs again whatever becomes of the daemon and of its guard.

freeze_file() { echo "/sys/fs/cgroup$(property rival ControlGroup)/cgroup.freeze"; }
rival_is_stopped() { is "$(cat "$(freeze_file)")" 1; }
rival_runs() { is "$(cat "$(freeze_file)")" 0; }
guard_pid() { pgrep -x apusched-freeze; }  # the kernel cuts names to 15 bytes
# More than a period of 80 ms in which it is never stopped.
rival_runs_on() {
  local look
  for ((look = 0; look < 20; look++)); do
    rival_runs || return 1
    sleep 0.02
  done
}
stopped_by_turns() {
  check "$1: its unit is stopped" eventually rival_is_stopped
  check "$1: and runs again by turns" eventually rival_runs
  check "$1: and is stopped again" eventually rival_is_stopped
}
status_of_rival() { outcome_is "$(property rival MainPID)" freezer "$1"; }
registrations_are() { is "$(apuschedctl list --json | jq '.processes | length')" "$1"; }

freeze_the_rival() {
  echo "# the freezer"
  cat > /etc/apusched/apuschedd.yaml << YAML
control:
  freeze_background_percent: 90
profiles:
  engine:
    class: critical
    target_wait_us: 20
  crawler:
    class: background
YAML
  systemctl restart apuschedd
  register_both
  check "without leave it says what is missing" eventually says "ProtectControlGroups=no" journalctl --unit apuschedd
  check "and stops nothing" rival_runs_on
  mkdir -p /etc/systemd/system/apuschedd.service.d
  printf '[Service]\nProtectControlGroups=no\n' > /etc/systemd/system/apuschedd.service.d/freezer.conf
  systemctl daemon-reload
  systemctl stop critical rival
  systemctl restart apuschedd
  register_both
  freezer_acts
  systemctl stop critical rival
  : > /etc/apusched/apuschedd.yaml
  rm /etc/systemd/system/apuschedd.service.d/freezer.conf
  systemctl daemon-reload
  systemctl restart apuschedd
}

register_both() {
  start_unit critical apu.slice taskset --cpu-list 0 sh -c "'while :; do :; done'"
  start_unit rival apu.slice taskset --cpu-list 0 sh -c "'while :; do :; done'"
  check "register the critical one" apuschedctl register "$(property critical MainPID)" -p engine
  check "register the background one" apuschedctl register "$(property rival MainPID)" -p crawler
}

freezer_acts() {
  stopped_by_turns "while the target is missed"
  check "status says so" eventually status_of_rival applied
  check "it helps and is kept" eventually says "kept" apuschedctl history
  check "systemd's own state is untouched" property_is rival FreezerState running

  check "kill the guard" pkill -KILL -x apusched-freeze
  stopped_by_turns "another guard takes over"
  check "stop the daemon's clock" pkill -STOP -x apuschedd
  check "a silent daemon holds nothing" eventually rival_runs_on
  check "it goes on" pkill -CONT -x apuschedd

  check "unregister the critical one" apuschedctl unregister "$(property critical MainPID)"
  check "the rival runs on" eventually rival_runs_on
  check "there is no guard any more" eventually exits_with 1 guard_pid
  check "register it again" apuschedctl register "$(property critical MainPID)" -p engine
  stopped_by_turns "again"
  check "kill daemon and guard at once" systemctl kill --signal KILL apuschedd
  check "what is left is let run before the daemon is back" eventually rival_runs_on
  check "the daemon is back" eventually property_is apuschedd ActiveState active
  check "nothing is registered" registrations_are 0
}

freeze_the_rival
