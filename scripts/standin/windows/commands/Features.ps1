# Roles and features of Server Core: the tree of Microsoft's reference "Roles,
# Role Services, and Features included in Windows Server - Server Core". A
# feature that is installed becomes active at the next boot where it needs one.

# name, parent, optional feature, state at first, needs a restart
function Get-StandinFeatureTree {
    $rows = @'
FileAndStorage-Services|-|FileAndStorage-Services|Enabled|no
Storage-Services|FileAndStorage-Services|Storage-Services|Enabled|no
File-Services|FileAndStorage-Services|File-Services|Disabled|no
FS-FileServer|File-Services|CoreFileServer|Disabled|no
RemoteAccess|-|RemoteAccess|Disabled|no
DirectAccess-VPN|RemoteAccess|RemoteAccessServer|Disabled|no
Routing|RemoteAccess|RasRoutingProtocols|Disabled|no
Web-Application-Proxy|RemoteAccess|Web-Application-Proxy|Disabled|no
Hyper-V|-|Microsoft-Hyper-V|Disabled|yes
Containers|-|Containers|Disabled|yes
NET-Framework-45-Features|-|NetFx4ServerFeatures|Enabled|no
NET-Framework-45-Core|NET-Framework-45-Features|NetFx4|Enabled|no
NET-WCF-Services45|NET-Framework-45-Features|WCF-Services45|Enabled|no
NET-WCF-TCP-PortSharing45|NET-WCF-Services45|WCF-TCP-PortSharing45|Enabled|no
NET-Framework-Features|-|NetFx3ServerFeatures|DisabledWithPayloadRemoved|no
NET-Framework-Core|NET-Framework-Features|NetFx3|DisabledWithPayloadRemoved|no
RSAT|-|ServerManager-Core-RSAT|Disabled|no
RSAT-Role-Tools|RSAT|ServerManager-Core-RSAT-Role-Tools|Disabled|no
RSAT-Hyper-V-Tools|RSAT-Role-Tools|RSAT-Hyper-V-Tools-Feature|Disabled|no
Hyper-V-PowerShell|RSAT-Hyper-V-Tools|Microsoft-Hyper-V-Management-PowerShell|Disabled|no
RSAT-RemoteAccess|RSAT-Role-Tools|RSAT-RemoteAccess|Disabled|no
RSAT-RemoteAccess-PowerShell|RSAT-RemoteAccess|RemoteAccessPowerShell|Disabled|no
FS-SMB1|-|SMB1Protocol|Disabled|yes
Windows-Defender|-|Windows-Defender|Enabled|yes
-|-|Microsoft-Hyper-V-Offline|Disabled|yes
-|-|Microsoft-Hyper-V-Online|Disabled|yes
'@
    foreach ($row in $rows -split "`n" | Where-Object { $_.Trim() }) {
        $c = $row.Trim() -split '\|'
        [pscustomobject]@{ Name = $c[0]; Parent = $c[1]; Optional = $c[2]; First = $c[3]; Restart = ($c[4] -eq 'yes') }
    }
}

function Get-StandinFeatureState {
    param($Row)
    $section = Get-StandinSection 'features'
    if ($section.ContainsKey($Row.Optional)) { $section[$Row.Optional] } else { $Row.First }
}

# Turns an optional feature on or off; returns whether a restart is needed.
function Set-StandinFeature {
    param($Row, [bool]$On)
    $now = Get-StandinFeatureState $Row
    if ($On -and $now -eq 'DisabledWithPayloadRemoved') { throw '0x800f081f: The source files could not be found.' }
    if ($On -eq ($now -in 'Enabled', 'EnablePending')) { return $false }
    $next = if ($On) { 'Enabled' } else { 'Disabled' }
    if ($Row.Restart) { $next = if ($On) { 'EnablePending' } else { 'DisablePending' } }
    Update-StandinSection 'features' { param($s) $s[$Row.Optional] = $next }
    if ($Row.Restart) { [void][Standin.Registry]::Create('HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending', $true) }
    $Row.Restart
}

# What happens to pending features at a boot.
function Complete-StandinFeature {
    Update-StandinSection 'features' {
        param($s)
        foreach ($k in @($s.Keys)) {
            if ($s[$k] -eq 'EnablePending') { $s[$k] = 'Enabled' }
            if ($s[$k] -eq 'DisablePending') { $s[$k] = 'Disabled' }
        }
    }
    $key = 'HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending'
    if ([Standin.Registry]::Get($key)) { [Standin.Registry]::Remove($key) }
}

function ConvertTo-StandinFeature {
    param($Row)
    $state = switch (Get-StandinFeatureState $Row) {
        'Enabled' { 'Installed' } 'Disabled' { 'Available' } 'EnablePending' { 'InstallPending' } 'DisablePending' { 'UninstallPending' } 'DisabledWithPayloadRemoved' { 'Removed' }
    }
    [pscustomobject]@{ Name = $Row.Name; DisplayName = $Row.Name; Parent = $(if ($Row.Parent -ne '-') { $Row.Parent }); InstallState = $state; Installed = ($state -eq 'Installed'); FeatureType = 'Feature' }
}

function Standin-Get-WindowsFeature {
    param($p)
    $rows = @(Get-StandinFeatureTree | Where-Object { $_.Name -ne '-' })
    # As in Windows a name that is not there gives nothing, and no error.
    if ($p.ContainsKey('Name')) { $rows = @($rows | Where-Object { $row = $_; @($p.Name | Where-Object { $row.Name -like $_ }).Count }) }
    $rows | ForEach-Object { ConvertTo-StandinFeature $_ }
}

function Standin-Install-WindowsFeature {
    param($p)
    $tree = @(Get-StandinFeatureTree)
    $todo = New-Object Collections.Generic.List[object]
    foreach ($name in $p.Name) {
        $row = $tree | Where-Object { $_.Name -eq "$name" }
        if (-not $row) { Write-StandinError "ArgumentNotValid: The role, role service, or feature name is not valid: '$name'. The name was not found." 'NameNotFound' 'InvalidArgument'; return [pscustomobject]@{ Success = $false; RestartNeeded = 'No'; ExitCode = 'InvalidArgs'; FeatureResult = @() } }
        if ($row.Name -eq 'Hyper-V') {
            Write-StandinError 'A prerequisite check for the Hyper-V feature failed. 1. Hyper-V cannot be installed: The processor does not have required virtualization capabilities.' 'Alteration_PrerequisiteCheck_Failed' 'InvalidOperation'
            return [pscustomobject]@{ Success = $false; RestartNeeded = 'Maybe'; ExitCode = 'Failed'; FeatureResult = @() }
        }
        # Routing needs DirectAccess and VPN; every feature its parents.
        if ($row.Name -eq 'Routing') { $todo.Add(($tree | Where-Object { $_.Name -eq 'DirectAccess-VPN' })) }
        while ($row) { $todo.Add($row); $parent = $row.Parent; $row = $tree | Where-Object { $_.Name -eq $parent -and $_.Name -ne '-' } }
    }
    $restart = $false
    $changed = foreach ($row in $todo) {
        if ((Get-StandinFeatureState $row) -in 'Enabled', 'EnablePending') { continue }
        if (Set-StandinFeature $row $true) { $restart = $true }
        ConvertTo-StandinFeature $row
    }
    $exit = if ($restart) { 'SuccessRestartRequired' } elseif (@($changed).Count) { 'Success' } else { 'NoChangeNeeded' }
    [pscustomobject]@{ Success = $true; RestartNeeded = $(if ($restart) { 'Yes' } else { 'No' }); ExitCode = $exit; FeatureResult = @($changed) }
}

function Standin-Get-WindowsOptionalFeature {
    param($p)
    if (-not $p.Online) { throw 'the stand-in has the running Windows only: -Online' }
    $rows = @(Get-StandinFeatureTree)
    if ($p.ContainsKey('FeatureName')) {
        $rows = @($rows | Where-Object { $_.Optional -eq $p.FeatureName })
        # As in Windows: nothing, and no error.
        if (-not $rows.Count) { return }
    }
    foreach ($row in $rows) { [pscustomobject]@{ FeatureName = $row.Optional; State = (Get-StandinFeatureState $row); RestartNeeded = $row.Restart; Online = $true } }
}
