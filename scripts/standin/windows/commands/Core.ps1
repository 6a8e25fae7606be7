# What the simulated commands share. $Standin is one object for the whole
# process: the sections of state, the folder that plays C:, and what runs.

# A section of the state: a hashtable, kept in NAME.json. Change it only between
# Enter-Standin and Exit-Standin.
function Get-StandinSection {
    param([string]$Name)
    if (-not $Standin.Sections.ContainsKey($Name)) {
        $file = [IO.Path]::Combine($Standin.Dir, "$Name.json")
        $section = @{}
        if ([IO.File]::Exists($file)) {
            $read = ConvertFrom-Json -InputObject ([IO.File]::ReadAllText($file)) -AsHashtable
            foreach ($k in $read.Keys) { $section[$k] = $read[$k] }
        }
        $Standin.Sections[$Name] = $section
    }
    $Standin.Sections[$Name]
}

function Save-StandinSection {
    param([string]$Name)
    $file = [IO.Path]::Combine($Standin.Dir, "$Name.json")
    [IO.File]::WriteAllText("$file.new", (ConvertTo-Json -InputObject $Standin.Sections[$Name] -Depth 8))
    [IO.File]::Move("$file.new", $file, $true)
}

# Runs a script block while nobody else changes the state, and saves a section.
# The block sees this function's variables before its own: hence their names.
function Update-StandinSection {
    param([string]$SectionToChange, [scriptblock]$ChangeOfSection)
    [Threading.Monitor]::Enter($Standin.Gate)
    try {
        & $ChangeOfSection (Get-StandinSection $SectionToChange)
        Save-StandinSection $SectionToChange
    }
    finally { [Threading.Monitor]::Exit($Standin.Gate) }
}

# Asks the agent; its answer is one line of JSON.
function Invoke-StandinAgent {
    param([Parameter(ValueFromRemainingArguments)][string[]]$Words)
    $answer = [Standin.Channel]::Call('wbox-standin.exe', $Words)
    if ($answer.Exit -ne 0) { throw "$($answer.Stderr)".Trim() }
    ConvertFrom-Json -InputObject $answer.Stdout
}

# An error as a cmdlet reports it: the caller's -ErrorAction decides.
function Write-StandinError {
    param([string]$Message, [string]$Id = 'NotFound', [string]$Category = 'ObjectNotFound')
    Write-Error -Message $Message -ErrorId $Id -Category $Category
}

# A path of C: as Linux has it.
function Resolve-StandinPath {
    param([string]$Path)
    $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Path)
}

# Splits a line as CommandLineToArgvW does.
function Split-StandinLine {
    param([string]$Line)
    $words = New-Object Collections.Generic.List[string]
    $word = New-Object Text.StringBuilder
    $quoted = $false; $any = $false; $i = 0
    while ($i -lt $Line.Length) {
        $c = $Line[$i]
        if ($c -eq '\') {
            $n = 0
            while ($i -lt $Line.Length -and $Line[$i] -eq '\') { $n++; $i++ }
            if ($i -lt $Line.Length -and $Line[$i] -eq '"') {
                [void]$word.Append('\', [Math]::Floor($n / 2))
                if ($n % 2) { [void]$word.Append('"'); $i++ }
            }
            else { [void]$word.Append('\', $n) }
            $any = $true
            continue
        }
        if ($c -eq '"') { $quoted = -not $quoted; $any = $true }
        elseif (-not $quoted -and ($c -eq ' ' -or $c -eq "`t")) {
            if ($any) { $words.Add($word.ToString()); [void]$word.Clear(); $any = $false }
        }
        else { [void]$word.Append($c); $any = $true }
        $i++
    }
    if ($any) { $words.Add($word.ToString()) }
    $words
}

# The members of a WQL filter that are known: NAME='VALUE' and NAME IS NOT NULL,
# joined by AND.
function Select-StandinInstance {
    param($Instances, [string]$Filter)
    if (-not $Filter) { return $Instances }
    $conditions = foreach ($part in $Filter -split '(?i)\s+and\s+') {
        if ($part -match '^\s*(\w+)\s+is\s+not\s+null\s*$') { @{ Name = $Matches[1]; Value = $null }; continue }
        $m = [regex]::Match($part, "^\s*(\w+)\s*=\s*(?:'([^']*)'|""([^""]*)""|(\w+))\s*$")
        if (-not $m.Success) { throw "Invalid query: the stand-in does not know the filter $Filter" }
        @{ Name = $m.Groups[1].Value; Value = $m.Groups[2].Value + $m.Groups[3].Value + $m.Groups[4].Value }
    }
    foreach ($instance in $Instances) {
        $fits = $true
        foreach ($c in $conditions) {
            if (-not $instance.PSObject.Properties[$c.Name]) { throw "Invalid query: there is no property $($c.Name)" }
            $value = $instance.($c.Name)
            if ($(if ($null -eq $c.Value) { $null -eq $value } else { "$value" -ne $c.Value })) { $fits = $false }
        }
        if ($fits) { $instance }
    }
}

# The boot time of the kernel, which is that of the played Windows.
function Get-StandinBootTime {
    foreach ($line in [IO.File]::ReadLines($Standin.ProcStat)) {
        if ($line -match '^btime (\d+)') { return [DateTimeOffset]::FromUnixTimeSeconds([long]$Matches[1]).LocalDateTime }
    }
    throw "$($Standin.ProcStat) has no boot time"
}

# Run first in every runspace: drives, the place to be, and how a program that
# is called by its name is found.
function Initialize-StandinRunspace {
    param()
    New-PSDrive -Name C -PSProvider FileSystem -Root $Standin.C -Scope Global | Out-Null
    $info = Invoke-StandinAgent info
    if ($info.seed) { New-PSDrive -Name D -PSProvider FileSystem -Root $info.seed -Scope Global | Out-Null }
    Set-Location C:\
    $PSStyle.OutputRendering = 'PlainText'
    Enter-StandinSession $StandinUser
    $ExecutionContext.InvokeCommand.CommandNotFoundAction = {
        param($Name, $e)
        # PowerShell asks for get-NAME first.
        if ($Name -notmatch '^[A-Za-z][\w-]*\.exe$' -or $Name -like 'get-*') { return }
        $program = $Name
        $e.CommandScriptBlock = {
            $answer = Invoke-StandinProgram $program @($args | ForEach-Object { "$_" })
            if ($null -eq $answer) { throw "The term '$program' is not recognized as the name of a cmdlet, function, script file, or operable program." }
            $global:LASTEXITCODE = $answer.Exit
            if ($answer.Stderr) { $Host.UI.WriteErrorLine($answer.Stderr.TrimEnd()) }
            if ($answer.Stdout) { $answer.Stdout.TrimEnd() -split "`r`n" }
        }.GetNewClosure()
        $e.StopSearch = $true
    }
}
