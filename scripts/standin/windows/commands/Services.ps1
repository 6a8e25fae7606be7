# The service manager. Programs for Windows are not run here: a service of one
# is Running once it was started, and nothing behind it.

# Keeps a service, and shows it in the registry as Windows does.
function Set-StandinService {
    param([hashtable]$Service)
    Update-StandinSection 'services' { param($s) $s[$Service.Name] = $Service }
    $key = "HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\$($Service.Name)"
    [void][Standin.Registry]::Create($key, $true)
    $start = @{ Auto = 2; Manual = 3; Disabled = 4 }[$Service.StartMode]
    [Standin.Registry]::Set($key, 'Start', 'DWord', [int]$start)
    [Standin.Registry]::Set($key, 'DelayedAutostart', 'DWord', [int][bool]$Service.Delayed)
    [Standin.Registry]::Set($key, 'ImagePath', 'ExpandString', "$($Service.Path)")
    [Standin.Registry]::Set($key, 'ObjectName', 'String', "$($Service.Account)")
    $depends = [string[]]@($Service.DependsOn | Where-Object { $_ })
    if ($depends.Count) { [Standin.Registry]::Set($key, 'DependOnService', 'MultiString', $depends) }
    else { [Standin.Registry]::Set($key, 'DependOnService', 'MultiString', $null) }
}

function New-StandinService {
    param([string]$Name, [string]$Path, [string]$StartMode, [string]$Status = 'Stopped', [string[]]$DependsOn = @(), [string]$DisplayName = $Name)
    Set-StandinService @{ Name = $Name; DisplayName = $DisplayName; Description = ''; Path = $Path; StartMode = $StartMode; Delayed = $false; Status = $Status; Account = 'LocalSystem'; DependsOn = $DependsOn; Failure = '' }
}

function ConvertTo-StandinService {
    param($s)
    $types = @{ Auto = 'Automatic'; Manual = 'Manual'; Disabled = 'Disabled' }
    [pscustomobject]@{ Name = $s.Name; ServiceName = $s.Name; DisplayName = $s.DisplayName; Status = $s.Status; StartType = $types[$s.StartMode]; CanStop = ($s.Status -eq 'Running') }
}

# The services that a command names, with Windows' error for one that is not there.
function Find-StandinService {
    param($p)
    $all = Get-StandinSection 'services'
    $names = if ($p.ContainsKey('InputObject')) { @($p.InputObject | ForEach-Object { $_.Name }) } else { @($p.Name) }
    foreach ($name in $names) {
        $found = @($all.Values | Where-Object { $_.Name -like $name })
        if ($found.Count -or [WildcardPattern]::ContainsWildcardCharacters($name)) { $found }
        else { Write-StandinError "Cannot find any service with service name '$name'." 'NoServiceFoundForGivenName' }
    }
}

function Start-StandinService {
    param([hashtable]$Service)
    if ($Service.Status -eq 'Running') { return }
    if ($Service.StartMode -eq 'Disabled') { throw "Service '$($Service.DisplayName) ($($Service.Name))' cannot be started: it is disabled." }
    $all = Get-StandinSection 'services'
    foreach ($d in @($Service.DependsOn | Where-Object { $_ })) {
        if (-not $all.ContainsKey($d)) { throw "Service '$($Service.DisplayName) ($($Service.Name))' cannot be started: the dependency service $d does not exist." }
        Start-StandinService $all[$d]
    }
    # The program must be there: the first words of the command line.
    $program = (@(Split-StandinLine $Service.Path) + '')[0]
    if ($program -match '^[Cc]:\\' -and $program -notmatch '^[Cc]:\\Windows\\' -and -not [IO.File]::Exists((Resolve-StandinPath $program))) {
        throw "Service '$($Service.DisplayName) ($($Service.Name))' cannot be started: The system cannot find the file specified ($program)."
    }
    $Service.Status = 'Running'
    Set-StandinService $Service
}

function Standin-Get-Service {
    param($p)
    if (-not $p.ContainsKey('Name')) { $p = @{ Name = '*' } }
    Find-StandinService $p | Sort-Object { $_.Name } | ForEach-Object { ConvertTo-StandinService $_ }
}

function Standin-New-Service {
    param($p)
    if ((Get-StandinSection 'services').ContainsKey($p.Name)) { Write-StandinError "Service '$($p.Name)' cannot be created because a service with that name already exists." 'CouldNotNewService' 'PermissionDenied'; return }
    $mode = @{ Automatic = 'Auto'; Manual = 'Manual'; Disabled = 'Disabled' }[$(if ($p.ContainsKey('StartupType')) { "$($p.StartupType)" } else { 'Automatic' })]
    if (-not $mode) { throw "the stand-in does not know New-Service -StartupType $($p.StartupType)" }
    $display = if ($p.ContainsKey('DisplayName')) { $p.DisplayName } else { $p.Name }
    New-StandinService -Name $p.Name -Path $p.BinaryPathName -StartMode $mode -DependsOn @($p.DependsOn | Where-Object { $_ }) -DisplayName $display
    ConvertTo-StandinService (Get-StandinSection 'services')[$p.Name]
}

function Standin-Start-Service { param($p) foreach ($s in Find-StandinService $p) { Start-StandinService $s } }

function Standin-Stop-Service {
    param($p)
    foreach ($s in Find-StandinService $p) {
        if ($s.Name -eq 'WinRM') { throw 'nothing may stop WinRM: the session that asks for it runs inside of it' }
        $others = @((Get-StandinSection 'services').Values | Where-Object { $_.Status -eq 'Running' -and @($_.DependsOn) -contains $s.Name })
        if ($others.Count -and -not $p.Force) { Write-StandinError "Cannot stop service '$($s.Name)' because it has dependent services. It can only be stopped if the Force flag is set." 'ServiceHasDependentServices' 'InvalidOperation'; continue }
        foreach ($o in $others + $s) { $o.Status = 'Stopped'; Set-StandinService $o }
    }
}

function Standin-Restart-Service {
    param($p)
    foreach ($s in Find-StandinService $p) {
        Standin-Stop-Service @{ Name = $s.Name; Force = $true }
        Start-StandinService $s
    }
}
