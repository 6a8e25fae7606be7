# What all guest scripts share. Windows PowerShell 5.1 on Windows Server 2019,
# 2022 and 2025; ASCII; nothing here uses the network or reboots.
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
# Progress records arrive as CLIXML noise over WinRM and slow everything down.
$ProgressPreference = 'SilentlyContinue'

$script:HomeFolder = 'C:\ProgramData\wbox'
$script:LogFolder = 'C:\ProgramData\wbox\logs'
$script:TempFolder = 'C:\ProgramData\wbox\tmp'
$script:EnvironmentKey = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'

# Prints a line for people. It goes to standard output before the result line,
# and into the transcript.
function Write-WboxLog {
    [CmdletBinding()]
    param([Parameter(Mandatory)][AllowEmptyString()][string]$Message)
    Write-Host ('{0:HH:mm:ss} {1}' -f [DateTime]::UtcNow, $Message)
}

# Turns a path with a PowerShell drive into the one that .NET and programs take.
function Resolve-WboxPath {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path)
    $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Path)
}

function New-WboxFolder {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string[]]$Path)
    foreach ($p in $Path) {
        if (-not (Test-Path -LiteralPath $p -PathType Container)) {
            New-Item -ItemType Directory -Path $p -Force | Out-Null
        }
    }
}

# Returns a text file's content, or $null where there is none.
function Read-WboxTextFile {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path)
    if (-not (Test-Path -LiteralPath $Path -PathType Leaf)) { return $null }
    [IO.File]::ReadAllText((Resolve-WboxPath $Path))
}

# Writes a file for another program: UTF-8 without a byte order mark, and
# never half of it. Returns whether the file changed.
function Write-WboxTextFile {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path, [Parameter(Mandatory)][AllowEmptyString()][string]$Text)
    if ((Read-WboxTextFile $Path) -ceq $Text) { return $false }
    New-WboxFolder (Split-Path -Parent $Path)
    $temporary = "$Path.wbox-new"
    [IO.File]::WriteAllText((Resolve-WboxPath $temporary), $Text, (New-Object Text.UTF8Encoding $false))
    Move-Item -LiteralPath $temporary -Destination $Path -Force
    $true
}

# The SHA-256 of a file in lower-case hex.
function Get-WboxDigest {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path)
    (Get-FileHash -LiteralPath $Path -Algorithm SHA256).Hash.ToLowerInvariant()
}

# Copies a file unless the same bytes are there; the new name appears only when
# it is whole and, if a digest is given, right. Returns whether it changed.
function Copy-WboxFile {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Source, [Parameter(Mandatory)][string]$Destination, [string]$Sha256)
    $want = $Sha256
    if (-not $want) { $want = Get-WboxDigest $Source }
    if ((Test-Path -LiteralPath $Destination -PathType Leaf) -and (Get-WboxDigest $Destination) -eq $want) { return $false }
    New-WboxFolder (Split-Path -Parent $Destination)
    $temporary = "$Destination.wbox-new"
    Copy-Item -LiteralPath $Source -Destination $temporary -Force
    $got = Get-WboxDigest $temporary
    if ($got -ne $want) {
        Remove-Item -LiteralPath $temporary -Force
        throw "$Source has the SHA-256 $got instead of $want"
    }
    # What comes from a CD is read-only, and could not be replaced later.
    (Get-Item -LiteralPath $temporary -Force).IsReadOnly = $false
    Move-Item -LiteralPath $temporary -Destination $Destination -Force
    $true
}

# A parameter of a script, or its default. Without a default it is required.
function Get-WboxParameter {
    [CmdletBinding()]
    param([Parameter(Mandatory)][AllowNull()]$Parameters, [Parameter(Mandatory)][string]$Name, $Default)
    $property = $null
    if ($null -ne $Parameters) { $property = $Parameters.PSObject.Properties[$Name] }
    if ($null -ne $property -and $null -ne $property.Value) { return $property.Value }
    if (-not $PSBoundParameters.ContainsKey('Default')) { throw "parameters.json lacks '$Name' for this script" }
    $Default
}

# What a script's test or set part returns. Missing says what is not there.
function New-WboxResult {
    [CmdletBinding()]
    param([string[]]$Missing = @(), [hashtable]$Facts = @{}, [switch]$Reboot)
    $state = 'present'
    if ($Reboot -or $Missing.Count -gt 0) { $state = 'absent' }
    [pscustomobject]@{ State = $state; Message = ($Missing -join '; '); Facts = $Facts; Reboot = [bool]$Reboot }
}

# Joins arguments as Windows programs split them again (CommandLineToArgvW).
function ConvertTo-WboxCommandLine {
    [CmdletBinding()]
    param([Parameter(Mandatory)][AllowEmptyCollection()][AllowEmptyString()][string[]]$ArgumentList)
    $parts = foreach ($a in $ArgumentList) {
        if ($a -ne '' -and $a -notmatch '[\s"]') { $a; continue }
        # Backslashes count only before a quotation mark: double those.
        $escaped = [regex]::Replace($a, '(\\*)"', '$1$1\"')
        '"' + [regex]::Replace($escaped, '(\\+)$', '$1$1') + '"'
    }
    @($parts) -join ' '
}

# Runs a program, waits, and throws on an exit code that is not accepted.
# Returns ExitCode, Output and Error. The only way programs are called.
function Invoke-WboxProgram {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory)][string]$Path,
        [AllowEmptyCollection()][AllowEmptyString()][string[]]$ArgumentList = @(),
        [int[]]$AcceptExitCode = @(0)
    )
    New-WboxFolder $script:TempFolder
    $file = Join-Path (Resolve-WboxPath $script:TempFolder) ([Guid]::NewGuid().ToString('N'))
    $line = ConvertTo-WboxCommandLine $ArgumentList
    try {
        if ($line) {
            $process = Start-Process -FilePath $Path -ArgumentList $line -Wait -PassThru -NoNewWindow -RedirectStandardOutput "$file.out" -RedirectStandardError "$file.err"
        }
        else {
            $process = Start-Process -FilePath $Path -Wait -PassThru -NoNewWindow -RedirectStandardOutput "$file.out" -RedirectStandardError "$file.err"
        }
        $result = [pscustomobject]@{ ExitCode = [int]$process.ExitCode; Output = (Read-WboxTextFile "$file.out"); Error = (Read-WboxTextFile "$file.err") }
    }
    finally {
        Remove-Item -LiteralPath "$file.out", "$file.err" -Force -ErrorAction Ignore
    }
    if ($AcceptExitCode -notcontains $result.ExitCode) {
        $said = ("$($result.Error)`n$($result.Output)".Trim() -split "`r?`n" | Where-Object { $_.Trim() } | Select-Object -Last 5) -join ' | '
        throw "$Path $line ended with exit code $($result.ExitCode): $said"
    }
    $result
}

# A registry value, or $null where the key or the value is not there.
function Get-WboxRegistryValue {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path, [Parameter(Mandatory)][string]$Name)
    if (-not (Test-Path -LiteralPath $Path)) { return $null }
    $item = Get-ItemProperty -LiteralPath $Path -Name $Name -ErrorAction Ignore
    if ($null -eq $item) { return $null }
    $item.$Name
}

function Set-WboxRegistryValue {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory)][string]$Path,
        [Parameter(Mandatory)][string]$Name,
        [Parameter(Mandatory)][AllowEmptyString()]$Value,
        [string]$Type = 'DWord'
    )
    # Not New-Item -Force on a key that is there: that empties it.
    if (-not (Test-Path -LiteralPath $Path)) { New-Item -Path $Path -Force | Out-Null }
    New-ItemProperty -LiteralPath $Path -Name $Name -Value $Value -PropertyType $Type -Force | Out-Null
}

function Remove-WboxRegistryValue {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Path, [Parameter(Mandatory)][string]$Name)
    if ($null -ne (Get-WboxRegistryValue $Path $Name)) { Remove-ItemProperty -LiteralPath $Path -Name $Name -Force }
}

# The folders in the machine's PATH, as they are written there.
function Get-WboxMachinePath {
    [CmdletBinding()]
    param()
    # Unexpanded: written back expanded, %SystemRoot% would be lost.
    $text = (Get-Item -LiteralPath $script:EnvironmentKey).GetValue('Path', '', 'DoNotExpandEnvironmentNames')
    @($text -split ';' | Where-Object { $_ })
}

function Test-WboxMachinePath {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Folder)
    @(Get-WboxMachinePath | Where-Object { $_.TrimEnd('\') -eq $Folder }).Count -gt 0
}

function Add-WboxMachinePath {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Folder)
    if (Test-WboxMachinePath $Folder) { return }
    Set-WboxRegistryValue $script:EnvironmentKey 'Path' ((@(Get-WboxMachinePath) + $Folder) -join ';') 'ExpandString'
}

# Why Windows waits for a reboot. Files to rename at the next boot are not
# among the reasons: drivers and agents leave some at any time.
function Get-WboxPendingReboot {
    [CmdletBinding()]
    param()
    $servicing = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing'
    foreach ($key in 'RebootPending', 'RebootInProgress') {
        if (Test-Path -LiteralPath "$servicing\$key") { "servicing: $key" }
    }
    if ((Test-Path -LiteralPath "$servicing\PackagesPending") -and @(Get-ChildItem -LiteralPath "$servicing\PackagesPending").Count -gt 0) {
        'servicing: PackagesPending'
    }
    if (Test-Path -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired') {
        'updates: RebootRequired'
    }
}

# Tests an inbound rule of ours. The network's profile changes when a switch
# is made, so that our rules are for all of them.
function Test-WboxFirewallRule {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Name, [Parameter(Mandatory)][string]$Protocol, [Parameter(Mandatory)][int]$Port)
    $rule = Get-NetFirewallRule -Name $Name -ErrorAction Ignore
    if ($null -eq $rule -or "$($rule.Enabled)" -ne 'True' -or "$($rule.Profile)" -ne 'Any' -or "$($rule.Action)" -ne 'Allow' -or "$($rule.Direction)" -ne 'Inbound') { return $false }
    $filter = Get-NetFirewallPortFilter -AssociatedNetFirewallRule $rule
    "$($filter.Protocol)" -eq $Protocol -and "$($filter.LocalPort)" -eq "$Port"
}

function Set-WboxFirewallRule {
    [CmdletBinding()]
    param([Parameter(Mandatory)][string]$Name, [Parameter(Mandatory)][string]$Protocol, [Parameter(Mandatory)][int]$Port, [Parameter(Mandatory)][string]$DisplayName)
    if (Test-WboxFirewallRule -Name $Name -Protocol $Protocol -Port $Port) { return }
    if ($null -ne (Get-NetFirewallRule -Name $Name -ErrorAction Ignore)) { Remove-NetFirewallRule -Name $Name }
    New-NetFirewallRule -Name $Name -DisplayName $DisplayName -Direction Inbound -Action Allow -Protocol $Protocol -LocalPort "$Port" -Profile Any -Enabled True | Out-Null
}

# Asks again and again until the script block returns true; $false when the
# time is over.
function Wait-Wbox {
    [CmdletBinding()]
    param([Parameter(Mandatory)][scriptblock]$Until, [int]$TimeoutSeconds = 60, [int]$IntervalMilliseconds = 1000)
    $end = [DateTime]::UtcNow.AddSeconds($TimeoutSeconds)
    while (-not (& $Until)) {
        if ([DateTime]::UtcNow -ge $end) { return $false }
        Start-Sleep -Milliseconds $IntervalMilliseconds
    }
    $true
}

# The command line under which the service manager starts kubelet. kubelet
# answers the service manager itself (--windows-service); kube-log-runner only
# gives it a log file.
function Get-WboxKubeletCommandLine {
    [CmdletBinding()]
    param([Parameter(Mandatory)][AllowEmptyCollection()][string[]]$Arguments)
    $all = @($Arguments)
    if ($all -notcontains '--windows-service') { $all = @('--windows-service') + $all }
    'C:\k\kube-log-runner.exe ' + (ConvertTo-WboxCommandLine (@('--log-file=C:/var/log/kubelet/kubelet.log', 'C:\k\kubelet.exe') + $all))
}

# The arguments in kubeadm-flags.env, whose one line is
# KUBELET_KUBEADM_ARGS="--a=b --c=d".
function ConvertFrom-WboxKubeadmFlags {
    [CmdletBinding()]
    param([Parameter(Mandatory)][AllowEmptyString()][string]$Text)
    # A regular expression, not TrimStart: that takes a set of letters and
    # eats into the first flag.
    $found = [regex]::Match($Text, '(?m)^\s*KUBELET_KUBEADM_ARGS\s*=\s*"?(?<args>[^"\r\n]*)"?\s*$')
    if (-not $found.Success) { return }
    $found.Groups['args'].Value -split '\s+' | Where-Object { $_ }
}

Export-ModuleMember -Function *-Wbox*
