# The PowerShell of the stand-in: one process that runs from boot on and gives
# every script a fresh runspace with the simulated Windows. The protocol on
# standard input and output is in README.md.
#   WBOX_STANDIN_ROOT      the folder that plays C:, default /c
#   WBOX_STANDIN_STATE     its state, default wbox-standin/windows below that
#   WBOX_STANDIN_PROCSTAT  where the boot time comes from, default /proc/stat
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
. "$PSScriptRoot/Load.ps1"

function Get-Setting([string]$Name, [string]$Default) {
    $value = [Environment]::GetEnvironmentVariable($Name)
    if ($value) { $value } else { $Default }
}
$root = Get-Setting 'WBOX_STANDIN_ROOT' '/c'
$dir = Get-Setting 'WBOX_STANDIN_STATE' "$root/wbox-standin/windows"
[void][IO.Directory]::CreateDirectory($dir)

[void][Reflection.Assembly]::LoadFrom((Get-StandinLibrary $dir))
[Standin.Channel]::Open()
[Standin.Server]::Listen()
# From here on what this process prints goes nowhere: errors are for the console.
trap { [Standin.Server]::Log.Invoke('stderr', "the stand-in's PowerShell: $_`n$($_.ScriptStackTrace)`n"); exit 1 }

$info = ConvertFrom-Json -InputObject ([Standin.Channel]::Call('wbox-standin.exe', @('info'))).Stdout

# Scripts see Windows' environment, and no program of this Linux.
foreach ($v in @{
        SystemDrive = 'C:'; SystemRoot = 'C:\Windows'; windir = 'C:\Windows'; ProgramData = 'C:\ProgramData'; ALLUSERSPROFILE = 'C:\ProgramData'
        ProgramFiles = 'C:\Program Files'; 'ProgramFiles(x86)' = 'C:\Program Files (x86)'; ComSpec = 'C:\Windows\system32\cmd.exe'; OS = 'Windows_NT'
        COMPUTERNAME = $info.computerName; PROCESSOR_ARCHITECTURE = 'AMD64'; Path = 'C:\Windows\system32;C:\Windows'
    }.GetEnumerator()) { [Environment]::SetEnvironmentVariable($v.Key, $v.Value) }
[Environment]::SetEnvironmentVariable('PATH', '/nonexistent')

# What every script's functions share, see commands/Core.ps1.
$standin = [hashtable]::Synchronized(@{
        Dir = $dir; C = $root; ProcStat = (Get-Setting 'WBOX_STANDIN_PROCSTAT' '/proc/stat'); Gate = (New-Object object)
        Sections = [hashtable]::Synchronized(@{}); Sessions = [hashtable]::Synchronized(@{}); Tasks = [hashtable]::Synchronized(@{})
        Log = [Standin.Server]::Log; Engine = $null
    })

$state = [Management.Automation.Runspaces.InitialSessionState]::CreateDefault()
$functions = Get-StandinFunctions "$($info.release)" $dir
foreach ($name in $functions.Keys) {
    $state.Commands.Add([Management.Automation.Runspaces.SessionStateFunctionEntry]::new($name, $functions[$name]))
}
$state.Providers.Add([Management.Automation.Runspaces.SessionStateProviderEntry]::new('Registry', [Standin.RegistryProvider], $null))
$state.Providers.Add([Management.Automation.Runspaces.SessionStateProviderEntry]::new('Certificate', [Standin.CertificateProvider], $null))
$state.Variables.Add([Management.Automation.Runspaces.SessionStateVariableEntry]::new('Standin', $standin, 'the played Windows'))

$engine = [Standin.Engine]::new($state, 'Initialize-StandinRunspace')
$standin.Engine = $engine
$fresh = -not [Standin.Registry]::Open("$dir/registry.json")

# The first script is slow: let it be one that nobody waits for.
$warm = if ($fresh) { 'Initialize-Standin' } else { '' }
$warm += '; $null = Get-CimInstance Win32_OperatingSystem | ConvertTo-Json | ConvertFrom-Json; Get-Service WinRM; Test-Path HKLM:\SOFTWARE; Write-Host warm'
$errors = [Standin.Server]::Try($engine, 'SYSTEM', $warm)
if ($errors) { throw "the stand-in's Windows did not start: $errors" }
[Standin.Server]::Serve($engine, $root, $standin.Sessions)
