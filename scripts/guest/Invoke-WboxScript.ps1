# Runs one guest script in one mode. The last line of standard output is its
# result line; the exit codes are in README.md.
[CmdletBinding()]
param(
    [Parameter(Mandatory)][ValidatePattern('^[0-9]{2}-[a-z][a-z0-9-]*$')][string]$Name,
    [Parameter(Mandatory)][ValidateSet('test', 'set')][string]$Mode,
    # The seed volume's root; where this file came from unless a test says otherwise.
    [string]$SeedRoot
)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
# Commands that are functions of a module (all that come from CDXML) see only
# the global one: without it their errors would stop nothing.
$global:ErrorActionPreference = 'Stop'
$global:ProgressPreference = 'SilentlyContinue'

function Write-ResultLine($State, $Reboot, $Message, $Facts) {
    $line = [ordered]@{ script = $Name; mode = $Mode; state = $State; reboot = [bool]$Reboot; message = "$Message"; facts = $Facts }
    ConvertTo-Json -InputObject $line -Compress -Depth 6
}

# Where something went wrong, the innermost place first, with the files' base
# names only.
function Get-Place($ErrorRecord) {
    $frames = "$($ErrorRecord.ScriptStackTrace)" -split "`r?`n" | Where-Object { $_ }
    @($frames | ForEach-Object { $_ -replace '^at ', '' -replace ', (?:[A-Za-z]:)?[\\/][^,]*[\\/]', ', ' }) -join ' < '
}

$transcribing = $false
try {
    if (-not $SeedRoot) { $SeedRoot = Split-Path -Parent $PSScriptRoot }
    $folder = Join-Path $SeedRoot 'wbox'
    Import-Module (Join-Path $folder 'Wbox.psm1') -Force
    $logs = 'C:\ProgramData\wbox\logs'
    New-WboxFolder $logs
    try {
        Start-Transcript -Path (Join-Path $logs "$Name.log") -Append | Out-Null
        $transcribing = $true
    }
    catch {
        Write-WboxLog "no transcript: $($_.Exception.Message)"
    }

    $all = ConvertFrom-Json -InputObject ([IO.File]::ReadAllText((Resolve-WboxPath (Join-Path $folder 'parameters.json'))))
    $parameters = Get-WboxParameter $all $Name -Default ([pscustomobject]@{})
    $context = [pscustomobject]@{ SeedRoot = $SeedRoot; Payload = (Join-Path $SeedRoot 'payload'); Scripts = $folder; Parameters = $parameters }

    # The script defines Test-State and Set-State; both take the context.
    . (Join-Path $folder "$Name.ps1")
    if ($Mode -eq 'test') { $returned = @(Test-State $context) } else { $returned = @(Set-State $context) }
    $result = @($returned | Where-Object { $null -ne $_ -and $_.PSObject.Properties['State'] }) | Select-Object -Last 1
    if ($null -eq $result) {
        if ($Mode -eq 'test') { throw "$Name returned no result" }
        $result = New-WboxResult
    }
    $line = Write-ResultLine $result.State $result.Reboot $result.Message $result.Facts
    $code = 0
    if ($Mode -eq 'set' -and $result.Reboot) { $code = 3010 }
}
catch {
    $place = Get-Place $_
    "FAILED: $($_.Exception.Message)"
    "at $place"
    $line = Write-ResultLine 'failed' $false "$($_.Exception.Message) (at $place)" @{}
    $code = 1
}
finally {
    if ($transcribing) { try { Stop-Transcript | Out-Null } catch { Write-Host "transcript: $($_.Exception.Message)" } }
}
$line
exit $code
