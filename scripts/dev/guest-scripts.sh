#!/usr/bin/env bash
# Checks the guest scripts: statically against what Windows PowerShell 5.1 on
# Server 2019, 2022 and 2025 has, and with their Pester tests. Without a
# PowerShell that is skipped and said, or with CI=true a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."
export WBOX_WINDOWS_TOOLS=${WBOX_WINDOWS_TOOLS:-$PWD/../shared/tools}
# A PowerShell of the official build wants libicu otherwise.
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 POWERSHELL_TELEMETRY_OPTOUT=1
skipped=0
skip() {
  echo "guest-scripts: SKIPPED: $*"
  skipped=$((skipped + 1))
}

if ! pwsh=$(scripts/dev/find-pwsh.sh); then
  if [ "${CI:-}" = true ]; then
    echo "guest-scripts: no PowerShell, and CI=true wants one" >&2
    exit 1
  fi
  skip "static check and Pester tests: no PowerShell"
  echo "guest-scripts: $skipped skipped"
  exit 0
fi

if [ -f "$WBOX_WINDOWS_TOOLS/check-guest-scripts.ps1" ]; then
  "$pwsh" -NoProfile -File "$WBOX_WINDOWS_TOOLS/check-guest-scripts.ps1" scripts/guest images/hostprocess/scripts
else
  skip "static check: no check-guest-scripts.ps1 in $WBOX_WINDOWS_TOOLS"
fi

# shellcheck disable=SC2016  # PowerShell's variables
run='
if (-not (Get-Module -ListAvailable Pester | Where-Object { $_.Version.Major -ge 5 })) { "guest-scripts: no Pester 5 or newer"; exit 77 }
$c = New-PesterConfiguration
$c.Run.Path = "scripts/guest/tests", "scripts/standin/windows/tests" | Where-Object { Test-Path $_ }
$c.Run.Exit = $true
$c.Output.Verbosity = "Normal"
Invoke-Pester -Configuration $c
'
code=0
"$pwsh" -NoProfile -Command "$run" || code=$?
if [ "$code" = 77 ]; then
  skip "Pester tests: this PowerShell has no Pester"
elif [ "$code" != 0 ]; then
  exit "$code"
fi
echo "guest-scripts: $skipped skipped"
