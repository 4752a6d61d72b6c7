#!/bin/bash
# SPDX-License-Identifier: MIT
# In a machine of packaging/vmtest, as root, with the project installed: does the unit start, who
# may do what, are real values changed and do they come back. Under qemu also what weights do to
# shares of a CPU, the freezer, and the limit on CPU latency. A check that cannot run fails.
set -u
checks=0 failures=0
here=$PWD
# shellcheck source=tests/vm/units.sh
. "$here/units.sh"

# check "what should be true" COMMAND…
check() {
  local what=$1 seen code=0
  shift
  checks=$((checks + 1))
  seen=$("$@" 2>&1) || code=$?
  if [ $code = 0 ]; then printf 'ok %d - %s\n' $checks "$what"; return; fi
  failures=$((failures + 1))
  printf 'not ok %d - %s\n    %s: %s\n' $checks "$what" "$*" "$seen"
}
# Waits for a command to succeed; the limit is against hanging: an emulated second may be short.
eventually() {
  local end=$((SECONDS + 60))
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "waited in vain"; "$@"; return 1; }
    sleep 0.1
  done
}
exits_with() {
  local wanted=$1 code=0
  shift
  "$@" || code=$?
  [ $code = "$wanted" ] || { echo "exit code $code instead of $wanted"; return 1; }
}
says() {
  local wanted=$1 text
  shift
  text=$("$@" 2>&1)
  [[ $text == *"$wanted"* ]] || { echo "no '$wanted' in: $text"; return 1; }
}
is() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2'"; return 1; }; }
property_is() { is "$(property "$1" "$2")" "$3"; }
# ps(1) has no nice value for a process of SCHED_IDLE.
nice_of() { cut -d ' ' -f 19 "/proc/$1/stat"; }
class_is() { is "$(ps -o class= -p "$1" | tr -d ' ')" "$2"; }
nice_is() { is "$(nice_of "$1")" "$2"; }
outcome_is() {  # PID LEVER OUTCOME
  is "$(apuschedctl list --json | jq --raw-output --argjson pid "$1" --arg lever "$2" \
    '.processes[] | select(.pid == $pid).levers[$lever].outcome')" "$3"
}
as_nobody() { runuser -u nobody -- "$@"; }
no_drop_in() { is "$(ls "/run/systemd/system.control/$1.service.d" 2> /dev/null)" ""; }

set_up() {
  make_known
  check "systemd finds nothing wrong with the unit" unit_is_clean
  check "the helper's user may use the GPU" says render id -nG apusched-gpu
}
unit_is_clean() { is "$(systemd-analyze verify --man=no apuschedd.service 2>&1)" ""; }

unit_starts() {
  check "it starts and says that it is ready" systemctl start apuschedd
  check "it is active" property_is apuschedd ActiveState active
  check "the journal has it" eventually says "is ready" journalctl --no-pager --unit apuschedd
  local pid
  pid=$(property apuschedd MainPID)
  check "it may gain no privileges" says $'NoNewPrivs:\t1' cat "/proc/$pid/status"
  check "system calls are filtered" says $'Seccomp:\t2' cat "/proc/$pid/status"
  check "it cannot load modules" lacks_capability "$pid" 16
  check "the CPU weight of its own unit is high" property_is apuschedd CPUWeight 1000
  check "busctl shows the interface" says RegisterPid busctl introspect org.apusched1 /org/apusched1
  check "status works without a GPU" says "no GPU" apuschedctl status
}
lacks_capability() {
  local set
  set=$(sed -n 's/^CapBnd:\t//p' "/proc/$1/status")
  [ $((0x$set >> $2 & 1)) = 0 ]
}

access() {
  start_unit victim system.slice sleep infinity
  local pid
  pid=$(property victim MainPID)
  check "nobody may read" as_nobody apuschedctl status
  check "nobody may ask why" says "nothing of it" as_nobody apuschedctl explain "$pid"
  check "nobody may read the history" as_nobody apuschedctl history
  check "nobody may not register" exits_with 4 as_nobody apuschedctl register "$pid" -p background
  check "nobody may not run" exits_with 4 as_nobody apuschedctl run -- true
  check "it is the bus that stops nobody" says "Rejected send message" \
    nobody_calls org.apusched1 /org/apusched1 org.apusched1.Manager.RegisterPid "uint32:$pid" string:background
  let_everyone_send
  check "and the daemon, where the bus does not" exits_with 4 as_nobody apuschedctl register "$pid" -p background
  check "which has the call then" says InvalidArgs \
    nobody_calls org.apusched1 /org/apusched1 org.apusched1.Manager.RegisterPid "uint32:$pid"
  rm /etc/dbus-1/system.d/everyone.conf
  systemctl reload dbus
  check "nobody may not take the daemon's name" says "not allowed to own" nobody_calls \
    org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.RequestName string:org.apusched1 uint32:0
  check "nothing was changed" nice_is "$pid" 0
  useradd --system --groups apusched member
  check "a member of the group may register" runuser -u member -- apuschedctl register "$pid" -p background
  check "its nice value is changed" nice_is "$pid" 10
  check "and its scheduling policy" class_is "$pid" IDL
  check "nobody may not release it" exits_with 4 as_nobody apuschedctl unregister "$pid"
  check "a member may" runuser -u member -- apuschedctl unregister "$pid"
  check "its nice value is back" nice_is "$pid" 0
  systemctl stop victim
}

# Unlike busctl it prints what the bus says.
nobody_calls() { as_nobody dbus-send --system --print-reply --dest="$1" "${@:2}"; }
let_everyone_send() {
  echo '<busconfig><policy context="mandatory"><allow send_destination="org.apusched1"/></policy></busconfig>' \
    > /etc/dbus-1/system.d/everyone.conf
  systemctl reload dbus
}

values_change_and_come_back() {
  start_unit llama system.slice sleep infinity
  local pid
  pid=$(property llama MainPID)
  check "register" apuschedctl register "$pid" --profile llm-interactive
  check "nice is in force" nice_is "$pid" -10
  check "systemd took the CPU weight" eventually property_is llama CPUWeight 1000
  check "systemd took the I/O weight" eventually property_is llama IOWeight 500
  check "the weight is shown as applied" eventually outcome_is "$pid" cpu_weight applied
  check "unregister" apuschedctl unregister "$pid"
  check "nice is back" nice_is "$pid" 0
  check "the CPU weight is not set again" eventually property_is llama CPUWeight "[not set]"
  check "no drop-in is left" eventually no_drop_in llama
  check "unregistering it twice is told" exits_with 5 apuschedctl unregister "$pid"
}

programs_are_run() {
  check "run becomes the program" exits_with 7 apuschedctl run -p background -- sh -c 'exit 7'
  check "which has the settings" says 10 apuschedctl run -p background -- nice
  check "and the agent" says libapusched-agent.so apuschedctl run -p background -- printenv HSA_TOOLS_LIB
  check "which is installed" test -r "$(apuschedctl run -p background -- printenv HSA_TOOLS_LIB)"
  check "agents of every user may connect" says "rw-rw-rw-" ls -l /run/apusched/agent.sock
  check "a program that is not there is told" exits_with 127 apuschedctl run -- /nonexistent
}

# systemd keeps the drop-ins of a transient unit beside its file, and removes both with it.
transient_unit() {
  systemd-run --quiet --unit=adhoc sleep infinity
  local pid
  pid=$(property adhoc MainPID)
  check "register a transient service" apuschedctl register "$pid" --profile llm-interactive
  check "its nice is in force" nice_is "$pid" -10
  check "its weight is, too" eventually property_is adhoc CPUWeight 1000
  check "unregister it" apuschedctl unregister "$pid"
  check "its nice is back" nice_is "$pid" 0
  check "its weight is back" eventually property_is adhoc CPUWeight "[not set]"
  check "register it again" apuschedctl register "$pid" --profile llm-interactive
  systemctl stop adhoc
  check "when it ends it is forgotten" eventually nothing_registered
  check "systemd has nothing left of it" eventually nothing_left_of adhoc
}
nothing_registered() { says '"processes": []' apuschedctl list --json; }
nothing_left_of() { is "$(find /run/systemd -name "$1.service*" -not -path '*/units/*')" ""; }

register_llama() {  # PROFILE NICE CPU_WEIGHT
  local pid
  pid=$(property llama MainPID)
  apuschedctl register "$pid" --profile "$1" > /dev/null
  check "register as $1" nice_is "$pid" "$2"
  check "with its weight" eventually property_is llama CPUWeight "$3"
}

dies_and_comes_back() {
  local pid daemon
  pid=$(property llama MainPID)
  register_llama llm-interactive -10 1000
  daemon=$(property apuschedd MainPID)
  kill -KILL "$daemon"
  check "systemd starts it again after SIGKILL" eventually property_is apuschedd NRestarts 1
  check "it is active again" eventually property_is apuschedd ActiveState active
  check "nice was put back" nice_is "$pid" 0
  check "the weight was put back" eventually property_is llama CPUWeight "[not set]"
  check "nothing is registered" nothing_registered
  register_llama llm-interactive -10 1000
  check "a stop puts everything back" systemctl stop apuschedd
  check "also the nice value" nice_is "$pid" 0
  check "also the weight" eventually property_is llama CPUWeight "[not set]"
  check "no drop-in is left after that" no_drop_in llama
}

hangs_and_comes_back() {
  systemctl start apuschedd
  local pid daemon
  pid=$(property llama MainPID)
  register_llama background 10 20
  daemon=$(property apuschedd MainPID)
  kill -STOP "$daemon"
  check "a daemon that hangs is replaced" eventually gone_from "$daemon"
  check "nice was put back" eventually nice_is "$pid" 0
  check "the weight was put back" eventually property_is llama CPUWeight "[not set]"
  systemctl stop llama
}
gone_from() {
  local now
  now=$(property apuschedd MainPID)
  [ "$now" != 0 ] && [ "$now" != "$1" ] && property_is apuschedd ActiveState active
}

starts_and_fails() {
  systemctl stop apuschedd
  check "without the daemon there is one sentence that says how to start it" \
    says "systemctl start apuschedd" apuschedctl status
  check "and exit code 3" exits_with 3 apuschedctl status
  check "asking did not start it" property_is apuschedd ActiveState inactive
  check "a call over D-Bus does" busctl call org.apusched1 /org/apusched1 org.apusched1.Manager ListGpus
  check "and it is active" property_is apuschedd ActiveState active
  systemctl stop apuschedd
  local config=/etc/apusched/apuschedd.yaml
  check "the installed configuration is good" apuschedd --check-config
  cp $config /tmp/good.yaml
  printf 'probe:\n  rate: 20\n' > $config
  check "a bad one is told with its place" says "$config:2:3: probe.rate: expected" apuschedd --check-config
  check "and has an exit code of its own" exits_with 3 apuschedd --check-config
  check "the unit does not start with it" exits_with 1 systemctl start apuschedd
  check "systemd has that code, too" property_is apuschedd ExecMainStatus 3
  check "and is not started again and again" property_is apuschedd NRestarts 0
  cp /tmp/good.yaml $config
  systemctl reset-failed apuschedd
}

set_up
unit_starts
access
values_change_and_come_back
programs_are_run
transient_unit
dies_and_comes_back
hangs_and_comes_back
starts_and_fails
. "$here/gpu.sh"
gpu
if [ "$VM_BACKEND" = qemu ]; then
  sysfs
  . "$here/shares.sh"
  . "$here/freezer.sh"
  . "$here/latency.sh"
fi
printf 'smoke (%s): %d checks, %d failed\n' "$VM_BACKEND" $checks $failures
[ $failures = 0 ]
