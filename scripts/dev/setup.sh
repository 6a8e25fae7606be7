#!/usr/bin/env bash
# Installs what this checkout needs on Debian and Ubuntu: `setup.sh demo` for a
# bake on the stand-in guest, `setup.sh test` for the tests as well, `setup.sh
# windows` for `make test-windows` (wine: 100 MB, unpacked 600 MB). It changes
# nothing where all of it is there. Go must be there already.
set -euo pipefail

demo=(qemu-system-x86 qemu-utils ovmf genisoimage xorriso wimtools binutils systemd-boot-efi dosfstools mtools
  e2fsprogs xz-utils ca-certificates)
test=(vagrant libarchive-tools gdisk shellcheck libssl3 containerd docker-registry skopeo libhivex-bin reglookup)

case "${1:-}" in
demo) want=("${demo[@]}") ;;
test) want=("${demo[@]}" "${test[@]}") ;;
windows) want=(wine64) ;;
*)
  echo "usage: $0 demo|test|windows" >&2
  exit 2
  ;;
esac

command -v go >/dev/null || {
  echo "setup: Go is missing; install Go 1.26 or newer from https://go.dev/dl/" >&2
  exit 4
}

missing=()
for p in "${want[@]}"; do
  dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
# The stand-in's kernel is downloaded, not installed: apt must know of it.
known=$(apt-cache show linux-image-amd64 2>/dev/null || true)
[ ${#missing[@]} -eq 0 ] && [ -n "$known" ] && exit 0

sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
"${sudo[@]}" apt-get update -qq
[ ${#missing[@]} -eq 0 ] && exit 0
echo "setup: installing ${missing[*]}" >&2
# Without recommended packages: with them Vagrant alone brings 266.
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
