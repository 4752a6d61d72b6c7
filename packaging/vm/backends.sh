# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The two kinds of machine. Each leaves result.tar, console.txt and errors.txt in $work and
# returns how the machine ended. Uses the variables of packaging/vmtest.

run_in_qemu() {
  local disk=if=none,format=raw number=0 arguments=() drive
  truncate -s 128M "$work/result.tar"
  for drive in "file=$image,snapshot=on,cache=unsafe" "file=$work/job.tar,readonly=on" \
      "file=$work/result.tar,cache=unsafe"; do
    arguments+=(-drive "$disk,id=d$number,$drive" -device "nvme,serial=d$number,drive=d$number")
    number=$((number + 1))
  done
  # An old CPU model: under TCG the AVX paths of libc cost more than they save. The kernel
  # command line turns off what only slows an emulated boot down.
  timeout --foreground --kill-after=5 "$limit" \
    qemu-system-x86_64 -machine q35,hpet=off -accel tcg,thread=multi -cpu Nehalem,+rdrand \
      -smp 2 -m 1024 -nodefaults -display none -no-reboot \
      -serial "file:$work/console.txt" -serial stdio "${arguments[@]}" -kernel "$kernel" \
      -append "root=/dev/nvme0n1 rootfstype=ext4 rw console=ttyS0 quiet panic=-1 \
random.trust_cpu=on mitigations=off nokaslr audit=0 net.ifnames=0 psi=1 \
systemd.unified_cgroup_hierarchy=1" \
    < /dev/null 2> "$work/errors.txt" &
  machine_pid=$!
  local status=0
  wait $machine_pid || status=$?
  machine_pid=''
  return $status
}

# The image stays read-only below a tmpfs. All mounts are in a namespace that ends with the run.
run_in_nspawn() {
  mkdir "$work/share"
  cp "$work/job.tar" "$work/share/"
  mkfifo "$work/share/stream"
  cat <> "$work/share/stream" &
  stream_pid=$!
  local scope=() status=0
  if [ -d /run/systemd/system ]; then
    scope=(systemd-run --quiet --scope --property=Delegate=yes)
  fi
  export work image here
  timeout --foreground --kill-after=5 "$limit" ${scope[@]+"${scope[@]}"} \
    unshare --mount --propagation private bash "$here/nspawn-inside" \
    < /dev/null > "$work/console.txt" 2> "$work/errors.txt" &
  machine_pid=$!
  wait $machine_pid || status=$?
  machine_pid=''
  # the pipe may still hold the last lines
  sleep 0.2
  kill "$stream_pid" 2> /dev/null || true
  stream_pid=''
  remove_cgroups
  mv "$work/share/result.tar" "$work/result.tar" 2> /dev/null || true
  return $status
}

# Made by nspawn-inside where no systemd manages the host's tree; the kernel empties them late.
remove_cgroups() {
  local dir
  for dir in /sys/fs/cgroup/{systemd,unified}/"${work##*/}"; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      [ -d "$dir" ] || break
      find "$dir" -depth -type d -exec rmdir {} + 2> /dev/null || sleep 0.2
    done
  done
}
