# Programs of Windows that change what the simulated commands show. Each row
# names where its words, output and exit codes are documented; a word that is
# not in the row is an error. Everything else the agent's table answers.

function Get-StandinProgramTable {
    @{
        'sc' = @{ Run = 'Invoke-StandinSc'; Source = 'Windows Commands: sc.exe config, query, delete; "sc failure /?"; System Error Codes' }
        'dism' = @{ Run = 'Invoke-StandinDism'; Source = 'DISM Operating System Package Servicing Command-Line Options; Windows Commands: dism' }
        'powercfg' = @{ Run = 'Invoke-StandinPowercfg'; Source = 'Powercfg command-line options' }
        'netsh' = @{ Run = 'Invoke-StandinNetsh'; Source = 'Default dynamic port range for TCP/IP (Windows Server troubleshooting)' }
        'icacls' = @{ Run = 'Invoke-StandinIcacls'; Source = 'Windows Commands: icacls' }
    }
}

# -> Exit, Stdout, Stderr; nothing for a program that is not there.
function Invoke-StandinProgram {
    param([string]$Path, [string[]]$Words = @())
    $Words = @($Words)
    $name = $Path.Replace('/', '\').ToLowerInvariant()
    if ($name -eq 'c:\program files\containerd\containerd.exe' -and [IO.File]::Exists((Resolve-StandinPath $Path))) { return Invoke-StandinContainerd $Words }
    if ($name -eq 'c:\program files\containerd\ctr.exe' -and [IO.File]::Exists((Resolve-StandinPath $Path))) { return Invoke-StandinCtr $Words }
    if ($name -match '^(c:\\windows\\(system32\\)?)?([^\\]+?)(\.exe)?$') {
        $row = (Get-StandinProgramTable)[$Matches[3]]
        if ($row) { return & $row.Run $Words }
    }
    $answer = [Standin.Channel]::Call($Path, $Words)
    # cmd.exe's exit code for what is neither a command nor a program.
    if ($answer.Exit -eq 9009) { return }
    $answer
}

function New-StandinAnswer { param([int]$Exit = 0, [string]$Out = '', [string]$Err = '') [pscustomobject]@{ Exit = $Exit; Stdout = $Out.Replace("`n", "`r`n"); Stderr = $Err.Replace("`n", "`r`n") } }

function Invoke-StandinSc {
    param([string[]]$Words)
    $verb, $name, $rest = $Words
    $all = Get-StandinSection 'services'
    $rest = @($rest | Where-Object { $null -ne $_ })
    if ($verb -notin 'config', 'failure', 'query', 'delete' -or -not $name) { return New-StandinAnswer 1639 "sc: the stand-in does not know '$Words'`n" }
    if (-not $all.ContainsKey($name)) { return New-StandinAnswer 1060 "[SC] OpenService FAILED 1060:`n`nThe specified service does not exist as an installed service.`n`n" }
    $service = $all[$name]
    if ($verb -eq 'query') { return New-StandinAnswer 0 "`nSERVICE_NAME: $name`n        TYPE               : 10  WIN32_OWN_PROCESS`n        STATE              : $(if ($service.Status -eq 'Running') { '4  RUNNING' } else { '1  STOPPED' })`n" }
    if ($verb -eq 'delete') { Update-StandinSection 'services' { param($s) $s.Remove($name) }; return New-StandinAnswer 0 "[SC] DeleteService SUCCESS`n" }
    if ($rest.Count % 2) { return New-StandinAnswer 1639 "sc: '$($rest[-1])' has no value`n" }
    for ($i = 0; $i -lt $rest.Count; $i += 2) {
        $value = $rest[$i + 1]
        switch ("$verb $($rest[$i])") {
            'config start=' {
                $modes = @{ 'auto' = 'Auto'; 'delayed-auto' = 'Auto'; 'demand' = 'Manual'; 'disabled' = 'Disabled' }
                if (-not $modes[$value]) { return New-StandinAnswer 1639 "sc: invalid start= field '$value'`n" }
                $service.StartMode = $modes[$value]; $service.Delayed = ($value -eq 'delayed-auto')
            }
            'config binPath=' { $service.Path = $value }
            'config depend=' { $service.DependsOn = @($value -split '/') }
            'config obj=' { $service.Account = $value }
            'failure reset=' { if ($value -notmatch '^(\d+|INFINITE)$') { return New-StandinAnswer 1639 "sc: invalid reset= field`n" } }
            'failure actions=' { if ($value -notmatch '^((restart|run|reboot)?/\d+/?)+$') { return New-StandinAnswer 1639 "sc: invalid actions= field`n" }; $service.Failure = $value }
            default { return New-StandinAnswer 1639 "sc: the stand-in does not know '$verb ... $($rest[$i])'`n" }
        }
    }
    Set-StandinService $service
    New-StandinAnswer 0 "[SC] ChangeServiceConfig$(if ($verb -eq 'failure') { '2' }) SUCCESS`n"
}

function Invoke-StandinDism {
    param([string[]]$Words)
    $banner = "`nDeployment Image Servicing and Management tool`nVersion: 10.0`n`n"
    $verb = ''; $feature = ''; $online = $false
    foreach ($w in $Words) {
        switch -Regex ($w) {
            '^/(NoRestart|Quiet|All|English)$' { }
            '^/Online$' { $online = $true }
            '^/(Enable|Disable)-Feature$' { $verb = $Matches[1] }
            '^/FeatureName:(.+)$' { $feature = $Matches[1] }
            default { return New-StandinAnswer 87 "$banner`nError: 87`n`nThe $($w.TrimStart('/')) option is unknown.`n" }
        }
    }
    if (-not $online -or -not $verb -or -not $feature) { return New-StandinAnswer 87 "$banner`nError: 87`n" }
    $rows = @(Get-StandinFeatureTree | Where-Object { $_.Optional -eq $feature })
    if (-not $rows.Count) { return New-StandinAnswer -2146498548 "$banner`nError: 0x800f080c`n`nFeature name $feature is unknown.`n" }
    # Hyper-V brings its parts; the part that starts the hypervisor among them.
    if ($feature -eq 'Microsoft-Hyper-V' -and $verb -eq 'Enable') { $rows += Get-StandinFeatureTree | Where-Object { $_.Optional -in 'Microsoft-Hyper-V-Offline', 'Microsoft-Hyper-V-Online' } }
    $restart = $false
    try { foreach ($row in $rows) { if (Set-StandinFeature $row ($verb -eq 'Enable')) { $restart = $true } } }
    catch { return New-StandinAnswer -2146498529 "$banner`nError: $($_.Exception.Message)`n" }
    if ($restart) { return New-StandinAnswer 3010 "${banner}The operation completed successfully.`nRestart Windows to complete this operation.`n" }
    New-StandinAnswer 0 "${banner}The operation completed successfully.`n"
}

function Invoke-StandinPowercfg {
    param([string[]]$Words)
    $section = Get-StandinSection 'power'
    $names = @{ '381b4222-f694-41f0-9685-ff5bb260df2e' = 'Balanced'; '8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c' = 'High performance'; 'a1841308-3541-4fab-bc81-f71556f20b4a' = 'Power saver' }
    $active = if ($section['Active']) { $section['Active'] } else { '381b4222-f694-41f0-9685-ff5bb260df2e' }
    switch -Regex ($Words -join ' ') {
        '^/(hibernate|h) (on|off)$' { $on = $Matches[2] -eq 'on'; [Standin.Registry]::Set('HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Power', 'HibernateEnabled', 'DWord', [int]$on); return New-StandinAnswer }
        '^/getactivescheme$' { return New-StandinAnswer 0 "Power Scheme GUID: $active  ($($names[$active]))`n" }
        '^/(setactive|s) (\S+)$' {
            $guid = $Matches[2].ToLowerInvariant()
            if (-not $names[$guid]) { return New-StandinAnswer 1 '' "The power scheme, subgroup or setting specified does not exist.`n" }
            Update-StandinSection 'power' { param($s) $s.Active = $guid }
            return New-StandinAnswer
        }
        '^/(change|x) (monitor|standby|disk|hibernate)-timeout-(ac|dc) (\d+)$' { $key = "$($Matches[2])-$($Matches[3])"; $minutes = [int]$Matches[4]; Update-StandinSection 'power' { param($s) $s[$key] = $minutes }; return New-StandinAnswer }
        '^/(query|q) SCHEME_CURRENT SUB_VIDEO VIDEOIDLE$' {
            $hex = foreach ($k in 'monitor-ac', 'monitor-dc') { '0x{0:x8}' -f $(if ($section.ContainsKey($k)) { [int]$section[$k] * 60 } else { 600 }) }
            return New-StandinAnswer 0 "Power Scheme GUID: $active  ($($names[$active]))`n  Subgroup GUID: 7516b95f-f776-4464-8c53-06167f40cc99  (Display)`n    Power Setting GUID: 3c0bc021-c8a8-4e07-a973-6b14cbcb2b7e  (Turn off display after)`n      Minimum Possible Setting: 0x00000000`n      Maximum Possible Setting: 0xffffffff`n    Current AC Power Setting Index: $($hex[0])`n    Current DC Power Setting Index: $($hex[1])`n`n"
        }
    }
    New-StandinAnswer 1 '' "Invalid Parameters -- the stand-in does not know powercfg $Words`n"
}

function Invoke-StandinNetsh {
    param([string[]]$Words)
    $section = Get-StandinSection 'network'
    switch -Regex ($Words -join ' ') {
        '^int(erface)? ipv4 show dynamicport(range)? tcp$' {
            $start = if ($section['PortStart']) { $section['PortStart'] } else { 49152 }
            $count = if ($section['PortCount']) { $section['PortCount'] } else { 16384 }
            return New-StandinAnswer 0 "`nProtocol tcp Dynamic Port Range`n---------------------------------`nStart Port      : $start`nNumber of Ports : $count`n`n"
        }
        '^int(erface)? ipv4 set dynamicport(range)? tcp (?:start(?:port)?=)?(\d+) (?:num(?:berofports)?=)?(\d+)$' {
            $start = [int]$Matches[3]; $count = [int]$Matches[4]
            if ($start -lt 1025 -or $count -lt 255 -or $start + $count - 1 -gt 65535) { return New-StandinAnswer 1 "The parameter is incorrect.`n`n" }
            Update-StandinSection 'network' { param($s) $s.PortStart = $start; $s.PortCount = $count }
            return New-StandinAnswer 0 "Ok.`n`n"
        }
    }
    New-StandinAnswer 1 "The following command was not found: $Words.`n"
}

function Invoke-StandinIcacls {
    param([string[]]$Words)
    $file, $rest = $Words
    if (-not $file -or -not (Test-Path -LiteralPath $file)) { return New-StandinAnswer 2 "Successfully processed 0 files; Failed processing 1 files`n" "${file}: The system cannot find the file specified.`n" }
    $granting = $false
    foreach ($w in @($rest)) {
        if ($w -match '^/(inheritance:[edr]|Q|T|C)$') { $granting = $false }
        elseif ($w -match '^/grant(:r)?$') { $granting = $true }
        elseif (-not $granting -or $w -notmatch '^\*?[^:]+:(\((OI|CI|IO|NP|I)\))*(F|M|RX|R|W|\(.+\))$') { return New-StandinAnswer 87 '' "Invalid parameter `"$w`"`n" }
    }
    Update-StandinSection 'acls' { param($s) $s[$file] = @($rest) }
    New-StandinAnswer 0 "Successfully processed 1 files; Failed processing 0 files`n"
}

# containerd.exe is a program for Windows and is not run: what it registers is
# shown, what it would check is not.
function Invoke-StandinContainerd {
    param([string[]]$Words)
    if ("$Words" -eq '--version') { return New-StandinAnswer 0 "containerd (not run by the stand-in)`n" }
    if ("$Words" -match '^--config .+ config dump$') { return New-StandinAnswer 0 '' }
    if ($Words[0] -eq '--register-service') {
        if ((Get-StandinSection 'services').ContainsKey('containerd')) { return New-StandinAnswer 1 '' "containerd: The specified service already exists.`n" }
        $more = @($Words | Select-Object -Skip 1 | ForEach-Object { if ($_ -match '\s') { "`"$_`"" } else { $_ } }) -join ' '
        New-StandinService 'containerd' "`"C:\Program Files\containerd\containerd.exe`" --run-service $more".Trim() 'Auto'
        return New-StandinAnswer
    }
    New-StandinAnswer 1 '' "the stand-in does not know containerd.exe $Words`n"
}

# ctr.exe is a program for Windows, too: Debian's ctr takes its place where the
# medium has it, and knows the files by their real paths.
function Invoke-StandinCtr {
    param([string[]]$Words)
    $service = (Get-StandinSection 'services')['containerd']
    if (-not $service -or $service.Status -ne 'Running') { return New-StandinAnswer 1 '' "ctr: failed to dial `"\\.\pipe\containerd-containerd`": The system cannot find the file specified.`n" }
    $real = @($Words | ForEach-Object { if ($_ -match '^[A-Za-z]:[\\/]') { Resolve-StandinPath $_ } else { $_ } })
    [Standin.Channel]::Call('wbox-standin.exe', [string[]](@('ctr') + $real))
}
