# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# Parts of packaging/vmtest that do not depend on the backend. Uses its variables.

fail() { printf 'vmtest: %s\n' "$*" >&2; exit 125; }
note() { printf 'vmtest: %s\n' "$*" >&2; }

clean_up() {
  if [ -n "$stream_pid" ]; then
    kill "$stream_pid" 2>/dev/null || true
    wait "$stream_pid" 2>/dev/null || true
  fi
  # `timeout` hands SIGTERM on, and SIGKILL after its --kill-after: killed itself, it would leave
  # the machine running.
  if [ -n "$machine_pid" ]; then
    kill -TERM "$machine_pid" 2>/dev/null || true
    wait "$machine_pid" || true
    remove_cgroups
  fi
  [ -z "${work:-}" ] || rm -rf "$work"
}

# job.tar: tree/ is laid over /, test/ is the script's working directory, run starts it all.
pack_job() {
  local job=$work/job dir
  mkdir -p "$job/tree" "$job/test"
  for dir in ${copies[@]+"${copies[@]}"}; do cp -a "$dir/." "$job/tree/"; done
  for dir in ${includes[@]+"${includes[@]}"}; do cp -a "$dir/." "$job/test/"; done
  cp "$1" "$job/test/.script"
  shift
  printf '%s\0' "$@" > "$job/arguments"
  [ $# -gt 0 ] || : > "$job/arguments"
  install -m 755 "$here/guest-run" "$job/run"
  tar -C "$job" --owner=0 --group=0 --numeric-owner -cf "$work/job.tar" .
}

# Ends vmtest with what the script returned.
hand_back() {
  local code
  code=$(tar -xOf "$work/result.tar" ./code 2>/dev/null || true)
  if [ -n "$out" ]; then
    mkdir -p "$out"
    cp "$work/console.txt" "$out/" 2>/dev/null || true
    tar -xf "$work/result.tar" -C "$out" --strip-components=2 ./out 2>/dev/null || true
  fi
  case $code in
    ''|*[!0-9]*) ;;
    *) exit "$code" ;;
  esac
  note "no result (the machine ended with $1); the end of its console:"
  tail -n 30 "$work/console.txt" "$work/errors.txt" >&2 || true
  case $1 in 124|137) exit 124 ;; *) exit 125 ;; esac
}
