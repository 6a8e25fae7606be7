#!/usr/bin/env bash
# Prints the path of a PowerShell 7 for Linux; with --folder that of its folder.
# It takes, in this order: WBOX_PWSH (a folder, an archive or the program), pwsh
# in PATH, the archive beside the checkout, the official release from the
# network (not with WBOX_OFFLINE=1). Archives are unpacked once, into .cache/.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache=$PWD/.cache
tools=${WBOX_WINDOWS_TOOLS:-../shared/tools}
url=https://github.com/PowerShell/PowerShell/releases/download/v7.5.5/powershell-7.5.5-linux-x64.tar.gz
# From the version table of periareon/rules_powershell, which agrees with other public lists.
url_sha256=39a62f466956e3606aee6637ed0d0735c1ed27612a76de973b111530ddff2e77

say() { echo "find-pwsh: $*" >&2; }

# program FOLDER: the program in an unpacked folder, or in the only folder below it.
program() {
  local f
  for f in "$1/pwsh" "$1"/*/pwsh; do
    [ -f "$f" ] && { echo "$f"; return; }
  done
  return 1
}

unpack() {
  local archive=$1 sum dir
  sum=$(sha256sum "$archive" | cut -c1-16)
  dir=$cache/pwsh-$sum
  if [ ! -d "$dir" ]; then
    mkdir -p "$cache"
    local new
    new=$(mktemp -d "$cache/pwsh-new.XXXXXX")
    tar -xf "$archive" -C "$new"
    program "$new" >/dev/null || { rm -rf "$new"; say "$archive holds no pwsh"; return 1; }
    chmod +x "$(program "$new")"
    # Somebody else may have been faster.
    mv -T "$new" "$dir" 2>/dev/null || rm -rf "$new"
  fi
  program "$dir"
}

download() {
  [ "${WBOX_OFFLINE:-}" != 1 ] || return 1
  command -v curl >/dev/null || return 1
  local file=$cache/powershell-7.5.5-linux-x64.tar.gz
  if [ ! -f "$file" ]; then
    mkdir -p "$cache"
    say "downloading $url"
    curl --fail --silent --show-error --location --connect-timeout 10 --max-time 600 -o "$file.part" "$url" || return 1
    echo "$url_sha256  $file.part" | sha256sum --check --quiet || { rm -f "$file.part"; return 1; }
    mv "$file.part" "$file"
  fi
  unpack "$file"
}

find_pwsh() {
  if [ -n "${WBOX_PWSH:-}" ]; then
    if [ -d "$WBOX_PWSH" ]; then
      program "$(cd "$WBOX_PWSH" && pwd)" || { say "WBOX_PWSH=$WBOX_PWSH holds no pwsh"; return 1; }
    elif [ -x "$WBOX_PWSH" ]; then
      readlink -f "$WBOX_PWSH"
    elif [ -f "$WBOX_PWSH" ]; then
      unpack "$WBOX_PWSH"
    else
      say "WBOX_PWSH=$WBOX_PWSH does not exist"
      return 1
    fi
    return
  fi
  if command -v pwsh >/dev/null; then
    readlink -f "$(command -v pwsh)"
    return
  fi
  local archive
  for archive in "$tools"/pwsh-*-linux-x64.tar.xz; do
    [ -f "$archive" ] && { unpack "$archive"; return; }
  done
  download && return
  say "no PowerShell 7: set WBOX_PWSH to a folder or an archive, or install pwsh"
  return 1
}

found=$(find_pwsh)
if [ "${1:-}" = --folder ]; then dirname "$found"; else echo "$found"; fi
