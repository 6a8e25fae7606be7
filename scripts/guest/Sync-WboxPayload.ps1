# Runs as SYSTEM at each boot: what the payload partition lists is copied to
# C:\k where it differs, then kubelet is started if the node has joined. The
# partition is hidden, so that it is mounted here for a moment and hidden again.
[CmdletBinding()]
param()
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$global:ErrorActionPreference = 'Stop' # for commands from CDXML, which see no other
Import-Module 'C:\ProgramData\wbox\Wbox.psm1' -Force

$mount = 'C:\ProgramData\wbox\payload'
$target = 'C:\k'
$stateFile = 'C:\ProgramData\wbox\payload-state.json'
$logFile = 'C:\ProgramData\wbox\logs\payload.log'

function Write-Line([string]$Text) {
    New-WboxFolder (Split-Path -Parent $logFile)
    $old = Read-WboxTextFile $logFile
    if ($null -ne $old -and $old.Length -gt 200000) { $old = $old.Substring(100000) }
    Write-WboxTextFile $logFile ("$old{0:o} $Text`n" -f [DateTime]::UtcNow) | Out-Null
}

# The payload partition, by the identifier that 12-prepare-system noted.
function Get-PayloadPartition {
    $guid = Get-WboxRegistryValue 'HKLM:\SOFTWARE\wbox' 'PayloadPartition'
    if (-not $guid) { throw 'no payload partition is noted in the registry' }
    $found = @(Get-Partition | Where-Object { "$($_.Guid)" -eq $guid })
    if ($found.Count -ne 1) { throw "there are $($found.Count) partitions with the identifier $guid" }
    $found[0]
}

# The files that payload.json lists, checked.
function Get-PayloadList {
    $text = Read-WboxTextFile "$mount\payload.json"
    if ($null -eq $text) { return }
    foreach ($file in ConvertFrom-Json -InputObject $text | ForEach-Object { $_ }) {
        if ("$($file.name)" -notmatch '^[A-Za-z0-9][A-Za-z0-9._-]*$' -or "$($file.sha256)" -cnotmatch '^[0-9a-f]{64}$') { throw "payload.json has a wrong entry ($($file.name))" }
        $file
    }
}

function Get-OldFiles {
    $text = Read-WboxTextFile $stateFile
    if ($null -eq $text) { return }
    (ConvertFrom-Json -InputObject $text).files | ForEach-Object { $_ }
}

# Copies what differs and returns the names of all files of the payload.
function Sync-Files {
    $list = @(Get-PayloadList)
    $changed = @($list | Where-Object { -not (Test-Path -LiteralPath "$target\$($_.name)") -or (Get-WboxDigest "$target\$($_.name)") -ne $_.sha256 })
    $gone = @(Get-OldFiles | Where-Object { @($list | ForEach-Object { $_.name }) -notcontains $_ })
    if ($changed.Count + $gone.Count -gt 0) {
        $service = Get-Service -Name 'kubelet' -ErrorAction Ignore
        # Windows does not replace a program that runs.
        if ($null -ne $service -and "$($service.Status)" -ne 'Stopped') { Stop-Service -Name 'kubelet' -Force }
    }
    foreach ($file in $changed) {
        $source = "$mount\$($file.name)"
        if ((Get-Item -LiteralPath $source).Length -ne $file.size) { throw "$($file.name) on the payload partition is not $($file.size) bytes long" }
        Copy-WboxFile -Source $source -Destination "$target\$($file.name)" -Sha256 $file.sha256 | Out-Null
        Write-Line "copied $($file.name) $($file.sha256)"
    }
    foreach ($name in $gone) {
        Remove-Item -LiteralPath "$target\$name" -Force -ErrorAction Ignore
        Write-Line "removed $name"
    }
    $list | ForEach-Object { $_.name }
}

$names = @()
$failure = ''
$at = $null
try {
    New-WboxFolder $mount, $target
    $partition = Get-PayloadPartition
    $at = @{ DiskNumber = $partition.DiskNumber; PartitionNumber = $partition.PartitionNumber }
    # A hidden partition has no volume, and nothing to mount.
    Set-Partition @at -IsHidden $false
    Add-PartitionAccessPath @at -AccessPath $mount
    if (-not (Wait-Wbox -TimeoutSeconds 30 -Until { Test-Path -LiteralPath "$mount\payload.json" })) { Write-Line 'the payload partition is empty' }
    $names = @(Sync-Files)
}
catch {
    $failure = "$($_.Exception.Message)"
    Write-Line "FAILED: $failure`n$($_.ScriptStackTrace)"
}
if ($null -ne $at) {
    try { Remove-PartitionAccessPath @at -AccessPath $mount } catch { Write-Line "unmounting: $($_.Exception.Message)" }
    try { Set-Partition @at -IsHidden $true } catch { Write-Line "hiding: $($_.Exception.Message)" }
}
if (-not $failure) { $kept = $names } else { $kept = @(Get-OldFiles) }
$state = [ordered]@{ time = [DateTime]::UtcNow.ToString('o'); failure = $failure; files = @($kept) }
Write-WboxTextFile $stateFile (ConvertTo-Json -InputObject $state) | Out-Null

# config.yaml is there once kubeadm join has run. kubelet starts even when
# copying failed: the files of the boot before are whole.
if (Test-Path -LiteralPath 'C:\var\lib\kubelet\config.yaml') {
    try { Start-Service -Name 'kubelet' } catch { Write-Line "starting kubelet: $($_.Exception.Message)" }
}
if ($failure) { exit 1 }
