# Run on a node before or after it has joined: sets up what wbox-network.json
# says, and takes away what an earlier one had set up. The file comes from a
# build with registries, a proxy or authorities, and can be changed by hand.
[CmdletBinding()]
param(
    [string]$Path = 'C:\ProgramData\wbox\wbox-network.json',
    # Deletes the file afterwards: it holds the proxy's password, if there is one.
    [switch]$Remove
)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$global:ErrorActionPreference = 'Stop' # for commands from CDXML, which see no other
Import-Module 'C:\ProgramData\wbox\Wbox.psm1' -Force

$certsFolder = 'C:\etc\containerd\certs.d'
$stateFile = 'C:\ProgramData\wbox\network-state.json'
$serviceKey = 'HKLM:\SYSTEM\CurrentControlSet\Services\containerd'

# What wbox-network.json asks for, checked.
function Get-Wanted {
    $text = Read-WboxTextFile $Path
    if ($null -eq $text) { throw "there is no $Path" }
    $wanted = ConvertFrom-Json -InputObject $text
    if ((Get-WboxParameter $wanted 'schema' -Default 0) -ne 1) { throw "$Path is not of a form that this script knows" }
    foreach ($file in @($wanted.certs)) {
        if ("$($file.path)" -cnotmatch '^[A-Za-z0-9_\[][A-Za-z0-9._\[\]-]*/(hosts\.toml|ca\.crt)$') { throw "$Path names a file that is none of containerd's: $($file.path)" }
    }
    $wanted
}

# What the last run set up. Without secrets.
function Get-OldState {
    $state = @{ certs = @(); authorities = @(); winHTTP = $false; environment = $false }
    $text = Read-WboxTextFile $stateFile
    if ($null -ne $text) {
        $old = ConvertFrom-Json -InputObject $text
        foreach ($name in 'certs', 'authorities') { $state[$name] = @(Get-WboxParameter $old $name -Default @()) }
        foreach ($name in 'winHTTP', 'environment') { $state[$name] = [bool](Get-WboxParameter $old $name -Default $false) }
    }
    $state
}

function Set-Certs($Wanted, $Old) {
    $paths = @($Wanted.certs | ForEach-Object { $_.path })
    foreach ($file in @($Wanted.certs)) { Write-WboxTextFile (Join-Path $certsFolder $file.path.Replace('/', '\')) $file.text | Out-Null }
    foreach ($gone in @($Old.certs | Where-Object { $paths -notcontains $_ })) {
        $file = Join-Path $certsFolder "$gone".Replace('/', '\')
        Remove-Item -LiteralPath $file -Force -ErrorAction Ignore
        $folder = Split-Path -Parent $file
        if ((Test-Path -LiteralPath $folder) -and @(Get-ChildItem -LiteralPath $folder -Force).Count -eq 0) { Remove-Item -LiteralPath $folder -Force }
    }
    $paths
}

# Opens the machine's store of trusted authorities and runs a block with it.
function Use-RootStore([scriptblock]$Block) {
    $store = New-Object Security.Cryptography.X509Certificates.X509Store -ArgumentList 'Root', 'LocalMachine'
    $store.Open([Security.Cryptography.X509Certificates.OpenFlags]::ReadWrite)
    try { & $Block $store }
    finally { $store.Close() }
}

function Set-Authorities($Wanted, $Old) {
    $certificates = @($Wanted.authorities | ForEach-Object {
            $bytes = [Text.Encoding]::ASCII.GetBytes($_)
            New-Object Security.Cryptography.X509Certificates.X509Certificate2 -ArgumentList (, $bytes)
        })
    $thumbprints = @($certificates | ForEach-Object { $_.Thumbprint })
    $gone = @($Old.authorities | Where-Object { $thumbprints -notcontains $_ })
    if ($certificates.Count + $gone.Count -eq 0) { return }
    Use-RootStore {
        param($store)
        foreach ($certificate in $certificates) { $store.Add($certificate) }
        foreach ($thumbprint in $gone) {
            foreach ($found in @($store.Certificates | Where-Object { $_.Thumbprint -eq $thumbprint })) { $store.Remove($found) }
        }
    }
    $thumbprints
}

# The service's own variables, which it reads when it starts. Returns whether
# they changed.
function Set-ServiceEnvironment($Wanted, $Old) {
    $lines = [string[]]@($Wanted.environment.PSObject.Properties | Sort-Object Name | ForEach-Object { "$($_.Name)=$($_.Value)" })
    $now = @(Get-WboxRegistryValue $serviceKey 'Environment')
    if ($lines.Count -gt 0) {
        if (($now -join "`n") -ceq ($lines -join "`n")) { return $false }
        Set-WboxRegistryValue $serviceKey 'Environment' $lines 'MultiString'
        return $true
    }
    if (-not $Old.environment) { return $false }
    Remove-WboxRegistryValue $serviceKey 'Environment'
    $true
}

function Set-WinHTTP($Wanted, $Old) {
    if ($Wanted.winHTTPProxy) {
        # The quotes belong to netsh's own values, not to the command line.
        Invoke-WboxProgram -Path 'netsh.exe' -ArgumentList 'winhttp', 'set', 'proxy', "proxy-server=$($Wanted.winHTTPProxy)", "bypass-list=$(@($Wanted.winHTTPSkip) -join ';')" | Out-Null
    }
    elseif ($Old.winHTTP) { Invoke-WboxProgram -Path 'netsh.exe' -ArgumentList 'winhttp', 'reset', 'proxy' | Out-Null }
}

$wanted = Get-Wanted
$old = Get-OldState
$service = Get-Service -Name 'containerd' -ErrorAction Ignore
$certs = @(Set-Certs $wanted $old)
$authorities = @(Set-Authorities $wanted $old)
Set-WinHTTP $wanted $old
$restart = $false
if ($null -ne $service) { $restart = Set-ServiceEnvironment $wanted $old }
$state = [ordered]@{
    certs = $certs; authorities = $authorities; winHTTP = [bool]$wanted.winHTTPProxy
    environment = ($null -ne $service -and @($wanted.environment.PSObject.Properties).Count -gt 0)
}
Write-WboxTextFile $stateFile (ConvertTo-Json -InputObject $state) | Out-Null
# hosts.toml is read at each pull, the environment and the authorities at start.
if ($null -ne $service -and "$($service.Status)" -eq 'Running' -and ($restart -or "$authorities" -ne "$($old.authorities)")) { Restart-Service -Name 'containerd' -Force }
if ($Remove) { Remove-Item -LiteralPath $Path -Force }
"registries: $(@($certs | Where-Object { $_ -like '*/hosts.toml' }).Count), authorities: $($authorities.Count), proxy: $(if ($wanted.winHTTPProxy) { 'yes' } else { 'no' })"
