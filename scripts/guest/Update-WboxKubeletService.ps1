# Run on a node after `kubeadm join` has written kubeadm-flags.env: gives the
# kubelet service those flags too, and starts it again with them. kubelet as a
# Windows service does not read that file itself.
[CmdletBinding()]
param(
    # Default: the computer's name in lower case, as kubeadm takes it.
    [string]$NodeName = $env:COMPUTERNAME,
    [string]$FlagsFile = 'C:\var\lib\kubelet\kubeadm-flags.env',
    [switch]$NoRestart
)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$global:ErrorActionPreference = 'Stop' # for commands from CDXML, which see no other
Import-Module 'C:\ProgramData\wbox\Wbox.psm1' -Force

$node = ConvertFrom-Json -InputObject (Read-WboxTextFile 'C:\ProgramData\wbox\kubelet.json')
$flags = Read-WboxTextFile $FlagsFile
if ($null -eq $flags) { throw "there is no ${FlagsFile}: has kubeadm join run?" }
$more = @(ConvertFrom-WboxKubeadmFlags $flags)
# kubelet does not start with a flag that it no longer has
# (kubernetes/kubernetes#133779).
if ($node.minor -ge 35) { $more = @($more | Where-Object { $_ -notlike '--pod-infra-container-image*' }) }

$arguments = @($node.arguments)
if (@($more | Where-Object { $_ -like '--hostname-override=*' }).Count -eq 0) { $arguments += "--hostname-override=$($NodeName.ToLowerInvariant())" }
# A later flag wins: kubeadm's come last.
$line = Get-WboxKubeletCommandLine ($arguments + $more)
Invoke-WboxProgram -Path 'sc.exe' -ArgumentList 'config', 'kubelet', 'binPath=', $line | Out-Null
if (-not $NoRestart) { Restart-Service -Name 'kubelet' -Force }
$line
