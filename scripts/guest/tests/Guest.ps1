# For the tests: the module, stand-ins for the commands of Windows Server, and a
# drive C: on an empty folder. Dot-source it in BeforeAll. Without the tools
# that write the stand-ins a test file skips itself, see Test-WindowsTools.
$guestFolder = Split-Path -Parent $PSScriptRoot
$windowsTools = $env:WBOX_WINDOWS_TOOLS
if (-not $windowsTools) { $windowsTools = Join-Path $guestFolder '../../../shared/tools' }

function Test-WindowsTools {
    Test-Path (Join-Path $windowsTools 'New-WindowsStub.ps1')
}

# One module of stand-ins for all test files of a run: it takes a second to write.
function Import-WindowsStub {
    if (Get-Module WindowsServer) { return }
    $file = Join-Path ([IO.Path]::GetTempPath()) "wbox-stub-$PID/WindowsServer.psm1"
    if (-not (Test-Path $file)) {
        & (Join-Path $windowsTools 'New-WindowsStub.ps1') -Path $guestFolder -Version 2022 -OutFile $file | Out-Null
        # A CimInstance can't be made on Linux: let tests hand in any object.
        [IO.File]::WriteAllText($file, ([IO.File]::ReadAllText($file) -replace '\[Microsoft\.Management\.Infrastructure\.CimInstance(\[\])?\]', '[object$1]'))
    }
    Import-Module $file -Global
}

# Drive C: on an empty folder of this test file.
function New-DriveC([string]$Root) {
    Get-PSDrive -Name C -ErrorAction Ignore | Remove-PSDrive -Force -Scope Global
    New-Item -ItemType Directory -Path $Root -Force | Out-Null
    New-PSDrive -Name C -PSProvider FileSystem -Root $Root -Scope Global | Out-Null
}

function New-Context([hashtable]$Parameters = @{}, [string]$Payload = 'C:\seed\payload') {
    [pscustomobject]@{
        SeedRoot = 'C:\seed'; Payload = $Payload; Scripts = $guestFolder
        Parameters = (ConvertTo-Json $Parameters -Depth 5 | ConvertFrom-Json)
    }
}

# A registry in memory, in place of the module's functions for it.
$script:registry = @{}
function Set-FakeRegistry([hashtable]$Values = @{}) {
    $script:registry = $Values
    Mock Get-WboxRegistryValue { $script:registry["$Path|$Name"] } # check: ignore command (Pester)
    Mock Set-WboxRegistryValue { $script:registry["$Path|$Name"] = $Value } # check: ignore command (Pester)
    Mock Remove-WboxRegistryValue { $script:registry.Remove("$Path|$Name") } # check: ignore command (Pester)
}

Import-WindowsStub
Get-Module Wbox | Remove-Module -Force
Import-Module (Join-Path $guestFolder 'Wbox.psm1') -Force -Global
