# Defender, SConfig, restarts, and what the state starts from.

function Standin-Get-MpPreference {
    param($p)
    $have = Get-StandinSection 'defender'
    [pscustomobject]@{ ExclusionProcess = @($have['ExclusionProcess'] | Where-Object { $_ }); ExclusionPath = @($have['ExclusionPath'] | Where-Object { $_ }) }
}

function Standin-Add-MpPreference {
    param($p)
    foreach ($k in $p.Keys) {
        if ($k -notin 'ExclusionProcess', 'ExclusionPath') { throw "the stand-in does not know Add-MpPreference -$k" }
        Update-StandinSection 'defender' { param($s) $s[$k] = @(@($s[$k]) + @($p[$k]) | Where-Object { $_ } | Select-Object -Unique) }
    }
}

function Standin-Set-SConfig { param($p) Update-StandinSection 'sconfig' { param($s) if ($p.ContainsKey('AutoLaunch')) { $s.AutoLaunch = $p.AutoLaunch } } }

function Standin-Restart-Computer { param($p) Invoke-StandinAgent power reboot 0 | Out-Null }
function Standin-Stop-Computer { param($p) Invoke-StandinAgent power off 0 | Out-Null }

# Start-Process runs programs of the table, synchronously.
function Standin-Start-Process {
    param($p)
    $line = (@($p.ArgumentList) | Where-Object { $null -ne $_ }) -join ' '
    $answer = Invoke-StandinProgram $p.FilePath @(Split-StandinLine $line)
    if ($null -eq $answer) { throw 'This command cannot be run due to the error: The system cannot find the file specified.' }
    foreach ($stream in 'Output', 'Error') {
        $text = if ($stream -eq 'Output') { $answer.Stdout } else { $answer.Stderr }
        $file = $p["RedirectStandard$stream"]
        if ($file) { [IO.File]::WriteAllText((Resolve-StandinPath $file), $text) }
        elseif ($text) { [Standin.Sink]::Write($(if ($stream -eq 'Output') { 'stdout' } else { 'stderr' }), $text) }
    }
    if ($p.PassThru) { [pscustomobject]@{ Id = 4; ExitCode = $answer.Exit; HasExited = $true } }
}

# What a new Windows has: done once, when the state's folder is empty.
function Initialize-Standin {
    $info = Invoke-StandinAgent info
    $machine = 'HKEY_LOCAL_MACHINE'
    $values = @(
        , @('SOFTWARE\Microsoft\Windows\CurrentVersion\Setup\State', 'ImageState', 'String', 'IMAGE_STATE_COMPLETE')
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'CurrentBuildNumber', 'String', "$($info.build)")
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'CurrentBuild', 'String', "$($info.build)")
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'UBR', 'DWord', [int]$info.revision)
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'EditionID', 'String', "$($info.edition)")
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'InstallationType', 'String', "$($info.installation)")
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion', 'ProductName', 'String', "Windows Server $($info.release) (stand-in)")
        , @('SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System', 'EnableLUA', 'DWord', 0)
        , @('SYSTEM\CurrentControlSet\Control\Power', 'HibernateEnabled', 'DWord', 1)
        , @('SYSTEM\CurrentControlSet\Control\Session Manager\Environment', 'Path', 'ExpandString', '%SystemRoot%\system32;%SystemRoot%;%SystemRoot%\System32\Wbem;%SYSTEMROOT%\System32\WindowsPowerShell\v1.0\')
        , @('SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName', 'ComputerName', 'String', "$($info.computerName)")
        , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon', 'AutoAdminLogon', 'String', "$([int][bool]$info.autoLogon)")
    )
    if ($info.autoLogon) {
        $values += , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon', 'DefaultUserName', 'String', $info.autoLogon)
        $values += , @('SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon', 'AutoLogonCount', 'DWord', 1)
        # Setup keeps the password as a secret of the LSA.
        $values += , @('SECURITY\Policy\Secrets\DefaultPassword', 'CurrVal', 'String', '-')
    }
    foreach ($v in $values) {
        [void][Standin.Registry]::Create("$machine\$($v[0])", $true)
        [Standin.Registry]::Set("$machine\$($v[0])", $v[1], $v[2], $v[3])
    }
    [void][Standin.Registry]::Create("$machine\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing", $true)

    $host32 = 'C:\Windows\System32\svchost.exe -k'
    New-StandinService 'WinRM' "$host32 NetworkService -p" 'Auto' 'Running' -DisplayName 'Windows Remote Management (WS-Management)'
    New-StandinService 'EventLog' "$host32 LocalServiceNetworkRestricted -p" 'Auto' 'Running'
    New-StandinService 'Schedule' "$host32 netsvcs -p" 'Auto' 'Running'
    New-StandinService 'W32Time' "$host32 LocalService" 'Manual'
    New-StandinService 'wuauserv' "$host32 netsvcs -p" 'Manual'
    New-StandinService 'TrustedInstaller' 'C:\Windows\servicing\TrustedInstaller.exe' 'Manual'
    Update-StandinSection 'host' { param($s) $s.Initialized = [DateTime]::UtcNow.ToString('o') }
}

# A boot: features become active, services start, then the tasks at start-up.
function Start-StandinBoot {
    Complete-StandinFeature
    foreach ($s in @((Get-StandinSection 'services').Values)) {
        $s.Status = 'Stopped'
        if ($s.StartMode -eq 'Auto') { try { Start-StandinService $s } catch { $Standin.Log.Invoke('stderr', "$($_.Exception.Message)`r`n") } }
    }
    $tasks = @((Get-StandinSection 'tasks').Values)
    foreach ($t in $tasks | Where-Object { @($_.Triggers | Where-Object { $_.Kind -eq 'Boot' }).Count }) { Invoke-StandinTask $t.TaskName }
}

# A user's first session makes the profile.
function Enter-StandinSession {
    param([string]$User)
    [Threading.Monitor]::Enter($Standin.Gate)
    try {
        if ($User -eq 'SYSTEM' -or (Get-StandinSection 'profiles').ContainsKey($User)) { return }
        $account = @(Get-StandinAccount | Where-Object { $_.Name -eq $User })
        if (-not $account.Count) { return }
        [void][IO.Directory]::CreateDirectory([IO.Path]::Combine($Standin.C, 'Users', $User))
        Update-StandinSection 'profiles' { param($s) $s[$User] = @{ SID = $account[0].SID } }
    }
    finally { [Threading.Monitor]::Exit($Standin.Gate) }
}
