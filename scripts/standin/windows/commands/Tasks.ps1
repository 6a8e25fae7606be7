# The task scheduler: tasks at start-up and those started on request.

function Standin-New-ScheduledTaskAction { param($p) [pscustomobject]@{ Execute = $p.Execute; Arguments = "$($p.Argument)"; WorkingDirectory = "$($p.WorkingDirectory)" } }

function Standin-New-ScheduledTaskTrigger {
    param($p)
    if ($p.AtStartup) { return [pscustomobject]@{ Kind = 'Boot'; At = '' } }
    if ($p.Once) { return [pscustomobject]@{ Kind = 'Time'; At = ([DateTime]$p.At).ToUniversalTime().ToString('o') } }
    throw 'the stand-in knows triggers -AtStartup and -Once only'
}

function Standin-New-ScheduledTaskPrincipal { param($p) [pscustomobject]@{ UserId = $p.UserId; LogonType = "$($p.LogonType)"; RunLevel = "$($p.RunLevel)" } }

function Standin-New-ScheduledTaskSettingsSet { param($p) [pscustomobject]@{ ExecutionTimeLimit = "$($p.ExecutionTimeLimit)" } }

function Standin-Register-ScheduledTask {
    param($p)
    if ($p.ContainsKey('Xml') -or $p.ContainsKey('InputObject')) { throw 'the stand-in registers tasks from -Action, -Trigger and -Principal only' }
    $user = if ($p.ContainsKey('Principal')) { $p.Principal.UserId } elseif ($p.ContainsKey('User')) { $p.User } else { $StandinUser }
    $known = (Get-StandinSection 'tasks').ContainsKey($p.TaskName)
    if ($known -and -not $p.Force) { Write-StandinError 'Cannot create a file when that file already exists.' 'HRESULT 0x800700b7,Register-ScheduledTask' 'ResourceExists'; return }
    $task = @{
        TaskName = $p.TaskName; TaskPath = '\'; User = $user; Description = "$($p.Description)"; Enabled = $true; LastRunTime = ''; LastTaskResult = 267011
        Actions = @($p.Action | ForEach-Object { @{ Execute = $_.Execute; Arguments = $_.Arguments } })
        Triggers = @($p.Trigger | Where-Object { $_ } | ForEach-Object { @{ Kind = $_.Kind; At = $_.At } })
    }
    Update-StandinSection 'tasks' { param($s) $s[$task.TaskName] = $task }
    foreach ($t in $task.Triggers | Where-Object { $_.Kind -eq 'Time' }) {
        $delay = [Math]::Max(0, ([DateTime]::Parse($t.At).ToUniversalTime() - [DateTime]::UtcNow).TotalSeconds)
        $Standin.Engine.Background($user, "Start-Sleep -Seconds $([int]$delay); Invoke-StandinTask '$($task.TaskName)'", $Standin.Log)
    }
    ConvertTo-StandinTask $task
}

function ConvertTo-StandinTask {
    param($t)
    $state = if ($Standin.Tasks[$t.TaskName]) { 'Running' } elseif ($t.Enabled) { 'Ready' } else { 'Disabled' }
    [pscustomobject]@{
        TaskName = $t.TaskName; TaskPath = $t.TaskPath; State = $state; Description = $t.Description
        Actions = @($t.Actions | ForEach-Object { [pscustomobject]@{ Execute = $_.Execute; Arguments = $_.Arguments } }); Principal = [pscustomobject]@{ UserId = $t.User }
    }
}

function Find-StandinTask {
    param($p)
    $all = Get-StandinSection 'tasks'
    $names = if ($p.ContainsKey('InputObject')) { @($p.InputObject | ForEach-Object { $_.TaskName }) } else { @($p.TaskName) }
    foreach ($name in $names) {
        if ($all.ContainsKey($name)) { $all[$name] }
        else { Write-StandinError "No MSFT_ScheduledTask objects found with property 'TaskName' equal to '$name'.  Verify the value of the property and retry." 'CmdletizationQuery_NotFound_TaskName,Get-ScheduledTask' }
    }
}

function Standin-Get-ScheduledTask {
    param($p)
    if (-not $p.ContainsKey('TaskName')) { return @((Get-StandinSection 'tasks').Values) | ForEach-Object { ConvertTo-StandinTask $_ } }
    Find-StandinTask $p | ForEach-Object { ConvertTo-StandinTask $_ }
}

function Standin-Get-ScheduledTaskInfo {
    param($p)
    foreach ($t in Find-StandinTask $p) {
        $last = if ($t.LastRunTime) { ([DateTime]$t.LastRunTime).ToLocalTime() }
        [pscustomobject]@{ TaskName = $t.TaskName; LastRunTime = $last; LastTaskResult = $t.LastTaskResult }
    }
}

function Standin-Start-ScheduledTask {
    param($p)
    foreach ($t in Find-StandinTask $p) {
        $Standin.Tasks[$t.TaskName] = $true
        $Standin.Engine.Background($t.User, "Invoke-StandinTask '$($t.TaskName)'", $Standin.Log)
    }
}

function Standin-Unregister-ScheduledTask {
    param($p)
    foreach ($t in @(Find-StandinTask $p)) { Update-StandinSection 'tasks' { param($s) $s.Remove($t.TaskName) } }
}

# Runs a task's actions, in a runspace of its own.
function Invoke-StandinTask {
    param([string]$Name)
    $task = (Get-StandinSection 'tasks')[$Name]
    if (-not $task -or -not $task.Enabled) { return }
    $Standin.Tasks[$Name] = $true
    Update-StandinSection 'tasks' { param($s) $task.LastRunTime = [DateTime]::UtcNow.ToString('o') }
    $result = 0
    try {
        foreach ($action in $task.Actions) {
            if ($action.Execute -match '^(powershell|.*\\powershell)(\.exe)?$') {
                $words = @(Split-StandinLine $action.Arguments)
                $at = [array]::IndexOf($words, '-File')
                if ($at -lt 0) { throw "the stand-in runs powershell.exe -File only, not $($action.Arguments)" }
                $rest = @($words | Select-Object -Skip ($at + 2))
                $result = $Standin.Engine.Run(-1, $task.User, (Get-StandinFileCall $words[$at + 1] $rest), $false, $Standin.Log)
            }
            else { $result = (Invoke-StandinProgram $action.Execute @(Split-StandinLine $action.Arguments)).Exit }
        }
    }
    catch { $result = 1; $Standin.Log.Invoke('stderr', "task ${Name}: $($_.Exception.Message)`r`n") }
    finally {
        $Standin.Tasks.Remove($Name)
        # The task may have removed itself.
        Update-StandinSection 'tasks' { param($s) if ($s.ContainsKey($Name)) { $s[$Name].LastTaskResult = $result } }
    }
}

# The text that calls a script file as powershell.exe -File does.
function Get-StandinFileCall {
    param([string]$File, [string[]]$Arguments = @())
    $words = foreach ($a in @($Arguments)) { if ($a -match '^-[A-Za-z]\w*:?$') { $a } else { "'" + $a.Replace("'", "''") + "'" } }
    "& '$($File.Replace("'", "''"))' $($words -join ' ')`nexit `$LASTEXITCODE"
}
