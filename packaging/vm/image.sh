# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154
# Builds the cached kernel and root file system. Uses the variables of packaging/vmtest.

readonly image_packages="systemd systemd-sysv dbus polkitd procps util-linux kmod jq \
libsdbus-c++1 libspdlog1.10 libfmt9 libyaml-cpp0.7 libhsa-runtime64-1 librocm-smi64-1 \
umockdev"

# A new list of packages or another guest-boot makes another image; Debian's own updates do not:
# remove the cache to take them.
prepare_image() {
  local key
  key=$({ echo "$image_packages"; cat "$here/guest-boot" "$here/image.sh"; } | sha256sum)
  image=$cache/root-${key:0:16}.ext4
  kernel=$cache/vmlinuz
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  [ -s "$kernel" ] || { note "fetching a kernel"; fetch_kernel || fail "no kernel"; }
  [ -s "$image" ] || { note "building the root file system"; build_image || fail "no image"; }
  flock -u 9
}

# Debian's cloud kernel boots without an initrd: nvme, ext4 and serial ports are built in
# (virtio and 9p are not). It is unpacked, never installed.
fetch_kernel() {
  local package dir
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  [ -n "$package" ] || { note "apt knows no linux-image-cloud-amd64: run apt-get update"; return 1; }
  dir=$(mktemp -d "$cache/kernel.XXXXXX")
  (cd "$dir" && apt-get -qq -o APT::Sandbox::User=root download "$package" >&2 \
    && dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*' \
    && mv boot/vmlinuz-* "$kernel") || { rm -rf "$dir"; return 1; }
  rm -rf "$dir"
}

# In a mount namespace of its own, on a tmpfs: nothing is left behind, whatever happens.
build_image() {
  export cache here image image_packages
  # images of other lists: a machine that runs on one keeps it open
  rm -f "$cache"/root-*.ext4 "$cache"/root-*.ext4.new
  unshare --mount --propagation private bash -euo pipefail -c '
    build=$(mktemp -d "$cache/build.XXXXXX")
    trap "umount \"$build\" || true; rmdir \"$build\" || true" EXIT
    mount -t tmpfs apusched-vm "$build"
    . "$here/image.sh"
    make_root "$build/root"
    truncate -s 2G "$image.new"
    mkfs.ext4 -q -F -m 0 -O ^has_journal -d "$build/root" "$image.new"
    mv "$image.new" "$image"'
}

make_root() {
  local root=$1 sources unit
  # the archives that this machine itself uses
  sources=$(apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' | sort -u)
  TMPDIR=$(dirname "$root") mmdebstrap --quiet --mode=root --variant=minbase \
    --include="$(echo $image_packages | tr ' ' ,)" --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$root" - <<< "$sources" >&2
  install -D -m 755 "$here/guest-boot" "$root/usr/lib/apusched-vm/boot"
  cat > "$root/etc/systemd/system/apusched-vm.service" <<'UNIT'
[Unit]
Description=Test job
Wants=dbus.service
After=basic.target dbus.service systemd-logind.service
[Service]
Type=exec
ExecStart=/usr/lib/apusched-vm/boot
KillMode=process
TimeoutStartSec=infinity
UNIT
  mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
  ln -s ../apusched-vm.service "$root/etc/systemd/system/multi-user.target.wants/"
  # what a test machine does not need at boot
  for unit in getty@tty1.service serial-getty@ttyS0.service console-getty.service \
      apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer \
      e2scrub_all.timer e2scrub_reap.service systemd-pstore.service \
      proc-sys-fs-binfmt_misc.automount dev-hugepages.mount modprobe@configfs.service \
      modprobe@dm_mod.service modprobe@drm.service modprobe@efi_pstore.service \
      modprobe@fuse.service modprobe@loop.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
  echo apusched-vm > "$root/etc/hostname"
  : > "$root/etc/machine-id"
  echo '/dev/root / ext4 rw 0 0' > "$root/etc/fstab"
}
