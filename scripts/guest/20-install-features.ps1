# Windows features, active and with no reboot left to do.
#   features     names for Install-WindowsFeature
#   dism         optional features that dism.exe enables
#   disableDism  optional features that dism.exe disables
# Hyper-V comes by dism.exe: Install-WindowsFeature refuses it where the
# processor shows no virtualization, which a guest's usually doesn't.

function Get-Names($Context, [string]$Parameter) {
    @(Get-WboxParameter $Context.Parameters $Parameter -Default @() | Where-Object { $_ })
}

function Get-Feature([string]$Name) {
    $feature = @(Get-WindowsFeature -Name $Name)
    if ($feature.Count -ne 1) { throw "this Windows has no feature named $Name" }
    $feature[0]
}

function Get-OptionalFeature([string]$Name) {
    $feature = Get-WindowsOptionalFeature -Online -FeatureName $Name
    if ($null -eq $feature) { throw "this Windows has no optional feature named $Name" }
    $feature
}

# What is neither there nor only waiting for a reboot.
function Get-MissingFeature($Context) {
    foreach ($name in Get-Names $Context 'features') {
        $state = "$((Get-Feature $name).InstallState)"
        if ($state -notin 'Installed', 'InstallPending') { @{ Way = 'features'; Name = $name; State = $state } }
    }
    foreach ($name in Get-Names $Context 'dism') {
        $state = "$((Get-OptionalFeature $name).State)"
        if ($state -notin 'Enabled', 'EnablePending') { @{ Way = 'dism'; Name = $name; State = $state } }
    }
    foreach ($name in Get-Names $Context 'disableDism') {
        $state = "$((Get-OptionalFeature $name).State)"
        if ($state -in 'Enabled', 'EnablePending') { @{ Way = 'disableDism'; Name = $name; State = $state } }
    }
}

function Get-Pending($Context) {
    foreach ($name in Get-Names $Context 'features') {
        if ("$((Get-Feature $name).InstallState)" -eq 'InstallPending') { "$name waits for a reboot" }
    }
    foreach ($name in @(Get-Names $Context 'dism') + @(Get-Names $Context 'disableDism')) {
        $state = "$((Get-OptionalFeature $name).State)"
        if ($state -in 'EnablePending', 'DisablePending') { "$name waits for a reboot" }
    }
    Get-WboxPendingReboot
}

function Test-State($Context) {
    $missing = @(Get-MissingFeature $Context | ForEach-Object { "$($_.Name) is $($_.State)" })
    $pending = @(Get-Pending $Context)
    $facts = @{}
    if ($missing.Count -eq 0 -and $pending.Count -eq 0) {
        $facts.features = @(Get-WindowsFeature | Where-Object { $_.Installed } | ForEach-Object { $_.Name })
        $facts.enabled = @(Get-Names $Context 'dism')
        $facts.disabled = @(Get-Names $Context 'disableDism')
    }
    New-WboxResult -Missing ($missing + $pending) -Facts $facts -Reboot:($pending.Count -gt 0)
}

function Set-State($Context) {
    $reboot = $false
    $names = @(Get-MissingFeature $Context | Where-Object { $_.Way -eq 'features' } | ForEach-Object { $_.Name })
    if ($names.Count -gt 0) {
        Write-WboxLog "installing $($names -join ', ')"
        $result = Install-WindowsFeature -Name $names
        if (-not $result.Success) { throw "installing $($names -join ', ') failed ($($result.ExitCode))" }
        if ("$($result.RestartNeeded)" -ne 'No') { $reboot = $true }
    }
    # What is to be disabled is looked at last: Hyper-V brings it along.
    foreach ($way in 'dism', 'disableDism') {
        foreach ($feature in @(Get-MissingFeature $Context | Where-Object { $_.Way -eq $way })) {
            if (Invoke-Dism $way $feature.Name) { $reboot = $true }
        }
    }
    if (@(Get-Pending $Context).Count -gt 0) { $reboot = $true }
    New-WboxResult -Reboot:$reboot
}

# Returns whether dism.exe asks for a reboot.
function Invoke-Dism([string]$Way, [string]$Name) {
    Write-WboxLog "${Way}: $Name"
    $words = @('/Online', '/NoRestart', '/Quiet')
    if ($Way -eq 'dism') { $words += '/Enable-Feature', "/FeatureName:$Name", '/All' }
    else { $words += '/Disable-Feature', "/FeatureName:$Name" }
    (Invoke-WboxProgram -Path 'dism.exe' -ArgumentList $words -AcceptExitCode 0, 3010).ExitCode -eq 3010
}
