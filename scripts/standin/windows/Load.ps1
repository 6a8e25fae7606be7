# Makes what Host.ps1 needs from the sources beside this file: the library from
# src/, and the functions from commands/ and commands.json. Both are kept in a
# folder under a name that says what they were made from, for the next start.

# The digest that names what is made from some files.
function Get-SourceDigest {
    param([string[]]$Files, [string]$Salt = '')
    $text = ($Files | Sort-Object | ForEach-Object { [IO.File]::ReadAllText($_) }) -join "`0"
    $hash = [Security.Cryptography.SHA256]::HashData([Text.Encoding]::UTF8.GetBytes($text + $Salt))
    [Convert]::ToHexString($hash).Substring(0, 16).ToLowerInvariant()
}

# Compiles the library. Add-Type would give it a random name, and a medium made
# of the same sources other bytes each time.
function Build-StandinLibrary {
    param([string[]]$Sources, [string]$To)
    [void][Reflection.Assembly]::LoadFrom("$PSHOME/Microsoft.CodeAnalysis.CSharp.dll")
    $trees = [Microsoft.CodeAnalysis.SyntaxTree[]]@($Sources | Sort-Object | ForEach-Object { [Microsoft.CodeAnalysis.CSharp.CSharpSyntaxTree]::ParseText([IO.File]::ReadAllText($_)) })
    $references = [Microsoft.CodeAnalysis.MetadataReference[]]@([AppContext]::GetData('TRUSTED_PLATFORM_ASSEMBLIES') -split ':' | Where-Object { $_ -like '*.dll' } | ForEach-Object { [Microsoft.CodeAnalysis.MetadataReference]::CreateFromFile($_) })
    $options = [Microsoft.CodeAnalysis.CSharp.CSharpCompilationOptions]::new('DynamicallyLinkedLibrary').WithOptimizationLevel('Release').WithDeterministic($true)
    $compilation = [Microsoft.CodeAnalysis.CSharp.CSharpCompilation]::Create('Standin', $trees, $references, $options)
    $stream = [IO.File]::Create($To)
    try { $result = $compilation.Emit($stream) } finally { $stream.Dispose() }
    if (-not $result.Success) { throw ($result.Diagnostics -join "`n") }
}

# The library's path: an earlier one beside this file or in Folder, or a new one.
function Get-StandinLibrary {
    param([string]$Folder)
    $sources = [IO.Directory]::GetFiles("$PSScriptRoot/src", '*.cs')
    $name = "Standin-$(Get-SourceDigest $sources).dll"
    foreach ($f in $PSScriptRoot, $Folder) { if ([IO.File]::Exists("$f/$name")) { return "$f/$name" } }
    [void][IO.Directory]::CreateDirectory($Folder)
    Build-StandinLibrary $sources "$Folder/$name"
    "$Folder/$name"
}

# The type of a parameter, as far as it exists outside of Windows.
function Get-ParameterType {
    param([string]$Name, [bool]$HasValues)
    $array = if ($Name.EndsWith('[]')) { '[]' } else { '' }
    $base = $Name -replace '\[\]$', ''
    if ($HasValues) { $base = 'string' }
    elseif ($base -match '[<>`]|Nullable') { return 'object' }
    elseif ($base -like 'Microsoft.Management.Infrastructure.*' -or $base -like 'System.Security.Principal.*' -or $null -eq ($base -as [type]) -or ($base -as [type]).IsNotPublic) { $base = 'object' }
    "$base$array"
}

function ConvertTo-Quoted { param([string]$s) "'" + $s.Replace("'", "''") + "'" }

# One parameter of a command: its attributes, type and name.
function Get-ParameterText {
    param([string]$Name, $Parameter)
    $text = ''
    $sets = if ($Parameter.ContainsKey('sets')) { $Parameter.sets } else { @{ __AllParameterSets = @{} } }
    foreach ($set in $sets.Keys | Sort-Object) {
        $words = @(
            if ($set -ne '__AllParameterSets') { "ParameterSetName = $(ConvertTo-Quoted $set)" }
            if ($sets[$set].ContainsKey('mandatory')) { 'Mandatory' }
            if ($sets[$set].ContainsKey('position')) { "Position = $($sets[$set].position)" }
            if ($sets[$set].ContainsKey('pipeline')) { 'ValueFromPipeline' }
            if ($sets[$set].ContainsKey('byName')) { 'ValueFromPipelineByPropertyName' }
            if ($sets[$set].ContainsKey('rest')) { 'ValueFromRemainingArguments' }
        )
        $text += "[Parameter($($words -join ', '))]"
    }
    if ($Parameter.ContainsKey('aliases')) {
        $aliases = @($Parameter.aliases | Where-Object { $_ -match '^\w+$' } | ForEach-Object { ConvertTo-Quoted $_ })
        if ($aliases.Count) { $text += "[Alias($($aliases -join ', '))]" }
    }
    $has = $Parameter.ContainsKey('values') -and $Parameter.type -notmatch 'SwitchParameter|Int|Boolean'
    if ($has) { $text += "[ValidateSet($((@($Parameter.values | ForEach-Object { ConvertTo-Quoted $_ })) -join ', '))]" }
    "$text[$(Get-ParameterType $Parameter.type $has)]`${$Name}"
}

# The text of a command's function: Windows' parameters, our body.
function Get-CommandText {
    param($Entry, [string]$Release)
    $parameters = foreach ($p in $Entry.params.Keys | Sort-Object) {
        if ($Entry.params[$p].ContainsKey('on') -and $Entry.params[$p].on -notcontains $Release) { continue }
        Get-ParameterText $p $Entry.params[$p]
    }
    $binding = @(
        if ($Entry.ContainsKey('default')) { "DefaultParameterSetName = $(ConvertTo-Quoted $Entry.default)" }
        if ($Entry.confirm) { 'SupportsShouldProcess' }
        if (-not @($Entry.params.Values | Where-Object { -not $_.ContainsKey('sets') }).Count) { 'PositionalBinding = $false' }
    )
    "[CmdletBinding($($binding -join ', '))]`nparam(`n$(@($parameters) -join ",`n")`n)`n# The caller's strict mode is not for what Windows does itself.`nprocess { Set-StrictMode -Off; Standin-$($Entry.name) `$PSBoundParameters }"
}

# All functions of a release: name -> text.
function Get-StandinFunctions {
    param([string]$Release, [string]$Folder)
    $files = @([IO.Directory]::GetFiles("$PSScriptRoot/commands", '*.ps1')) + "$PSScriptRoot/commands.json" + $PSCommandPath
    $name = "functions-$Release-$(Get-SourceDigest $files).json"
    foreach ($f in $PSScriptRoot, $Folder) { if ([IO.File]::Exists("$f/$name")) { return ConvertFrom-Json -InputObject ([IO.File]::ReadAllText("$f/$name")) -AsHashtable } }
    $all = [ordered]@{}
    foreach ($file in [IO.Directory]::GetFiles("$PSScriptRoot/commands", '*.ps1')) {
        $ast = [Management.Automation.Language.Parser]::ParseFile($file, [ref]$null, [ref]$null)
        foreach ($f in $ast.EndBlock.Statements | Where-Object { $_ -is [Management.Automation.Language.FunctionDefinitionAst] }) {
            if ($f.Parameters) { throw "${file}: $($f.Name) has its parameters before its body" }
            $all[$f.Name] = $f.Body.Extent.Text.Substring(1, $f.Body.Extent.Text.Length - 2)
        }
    }
    foreach ($entry in ConvertFrom-Json -InputObject ([IO.File]::ReadAllText("$PSScriptRoot/commands.json")) -AsHashtable) {
        # SConfig's command is in 2022 too, though Microsoft's reference has it for 2025 only.
        if ($entry.on -contains $Release -or ($entry.name -eq 'Set-SConfig' -and $Release -eq '2022')) {
            $all[$entry.name] = Get-CommandText $entry $(if ($entry.on -contains $Release) { $Release } else { $entry.on[-1] })
        }
    }
    [void][IO.Directory]::CreateDirectory($Folder)
    [IO.File]::WriteAllText("$Folder/$name", (ConvertTo-Json -InputObject $all))
    $all
}
