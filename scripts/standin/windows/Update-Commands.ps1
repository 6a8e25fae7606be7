# Writes commands.json anew: the parameters that the commands simulated in
# commands/ have on Windows Server, taken from a list of Windows' commands
# (windows-commands.json, see README.md). Run it after a command is added.
[CmdletBinding()]
param([Parameter(Mandatory)][string]$List)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$windows = Get-Content -Raw $List | ConvertFrom-Json -AsHashtable
$names = foreach ($file in Get-ChildItem "$PSScriptRoot/commands/*.ps1") {
    $ast = [Management.Automation.Language.Parser]::ParseFile($file.FullName, [ref]$null, [ref]$null)
    $ast.FindAll({ param($n) $n -is [Management.Automation.Language.FunctionDefinitionAst] -and $n.Name -like 'Standin-*' }, $true) | ForEach-Object { $_.Name.Substring('Standin-'.Length) }
}
# No command here runs elsewhere or as a job.
$left = 'WhatIf', 'Confirm', 'UseTransaction', 'CimSession', 'ThrottleLimit', 'AsJob', 'ComputerName'
# Places that the list lacks; from the reference of Microsoft.PowerShell.Management.
$places = @{ 'Start-Process/FilePath' = 0; 'Start-Process/ArgumentList' = 1 }
$lines = foreach ($name in $names | Sort-Object) {
    $key = @($windows.commands.Keys | Where-Object { $_ -eq $name })
    if ($key.Count -ne 1) { throw "$name is not a command of Windows Server" }
    $entry = $windows.commands[$key[0]]
    $params = [ordered]@{}
    # What needs one of those left out can't be called here.
    $gone = @(foreach ($p in $left) {
            if ($entry.params.ContainsKey($p) -and $entry.params[$p].ContainsKey('sets')) {
                $entry.params[$p].sets.GetEnumerator() | Where-Object { $_.Value.ContainsKey('mandatory') } | ForEach-Object Key
            }
        })
    foreach ($p in $entry.params.Keys | Sort-Object) {
        if ($p -in $left) { continue }
        $params[$p] = $entry.params[$p]
        if ($params[$p].ContainsKey('sets')) {
            $sets = [ordered]@{}
            foreach ($s in $params[$p].sets.Keys | Where-Object { $_ -notin $gone }) { $sets[$s] = $params[$p].sets[$s] }
            if (-not $sets.Count) { $params.Remove($p); continue }
            $params[$p].sets = $sets
        }
        if ($places.ContainsKey("$name/$p")) { $params[$p].sets = @{ __AllParameterSets = @{ position = $places["$name/$p"] } } }
    }
    $out = [ordered]@{ name = $key[0]; on = $entry.on; confirm = $entry.params.ContainsKey('WhatIf'); params = $params }
    if ($entry.ContainsKey('default')) { $out.default = $entry.default }
    ConvertTo-Json -InputObject $out -Compress -Depth 10
}
[IO.File]::WriteAllText("$PSScriptRoot/commands.json", "[`n" + ($lines -join ",`n") + "`n]`n")
"$(@($lines).Count) commands"
