# Makes ahead what the first start in a guest would have to make slowly: the
# library and the functions of a release, into a folder whose files then lie
# beside Host.ps1 on the medium.
[CmdletBinding()]
param([Parameter(Mandatory)][string]$OutFolder, [string]$Release = '2022')
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
. "$PSScriptRoot/Load.ps1"
Get-StandinLibrary $OutFolder
[void](Get-StandinFunctions $Release $OutFolder)
