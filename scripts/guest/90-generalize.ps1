# Turns the bake's machine into a box: the box's own account and ways in are
# made here, what belongs to the bake is removed by a task of SYSTEM some
# seconds later, when nobody is connected with it any more. That task turns the
# machine off. After it, the test part says whether all of that happened.
#   account, password  the box's account, an administrator
#   publicKey          its key for SSH, one line
#   bakeAccount        the account to remove
#   sealDelaySeconds   default 20

$script:HomeFolder = 'C:\ProgramData\wbox'
$script:SealScript = 'C:\ProgramData\wbox\Complete-WboxSeal.ps1'
$script:SealedFile = 'C:\ProgramData\wbox\sealed.json'
$script:TaskName = 'wbox-seal'
$script:KeyFile = 'C:\ProgramData\ssh\administrators_authorized_keys'
$script:AnswerFiles = @(
    'C:\Windows\Panther\unattend.xml', 'C:\Windows\Panther\Unattend\unattend.xml', 'C:\Windows\Panther\unattend-original.xml', 'C:\Windows\Panther\Autounattend.xml',
    'C:\Windows\System32\Sysprep\unattend.xml', 'C:\Windows\System32\Sysprep\Panther\unattend.xml', 'C:\unattend.xml', 'C:\Autounattend.xml'
)
$script:LogonKey = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon'
$script:Administrators = 'S-1-5-32-544'

function Get-Listener([string]$Transport) {
    Get-WSManInstance -ResourceURI 'winrm/config/Listener' -Enumerate | Where-Object { $_.Transport -eq $Transport }
}

function Get-HttpsThumbprint {
    $listener = @(Get-Listener 'HTTPS')
    if ($listener.Count -gt 0) { $listener[0].CertificateThumbprint }
}

function Test-Account([string]$Name) {
    $account = Get-LocalUser -Name $Name -ErrorAction Ignore
    if ($null -eq $account) { return "there is no account $Name" }
    if (-not $account.Enabled) { "the account $Name is disabled" }
    if ($null -ne $account.PasswordExpires) { "the password of $Name expires" }
    $member = @(Get-LocalGroupMember -SID $Administrators | Where-Object { "$($_.SID)" -eq "$($account.SID)" })
    if ($member.Count -eq 0) { "$Name is no administrator" }
}

function Test-State($Context) {
    $p = $Context.Parameters
    $missing = @(Test-Account (Get-WboxParameter $p 'account'))
    $key = Get-WboxParameter $p 'publicKey' -Default ''
    if ($key -and "$(Read-WboxTextFile $KeyFile)".Trim() -cne $key.Trim()) { $missing += "$KeyFile does not hold the box's key" }
    if (@(Get-Listener 'HTTP').Count -eq 0) { $missing += 'there is no HTTP listener' }
    if (-not (Test-WboxFirewallRule -Name 'wbox-winrm-http' -Protocol TCP -Port 5985)) { $missing += 'the firewall is closed for TCP 5985' }

    $bake = Get-WboxParameter $p 'bakeAccount'
    if ($null -ne (Get-LocalUser -Name $bake -ErrorAction Ignore)) { $missing += "the bake's account $bake is still there" }
    if (Test-Path -LiteralPath "C:\Users\$bake") { $missing += "the profile of $bake is still there" }
    if (@(Get-Listener 'HTTPS').Count -gt 0) { $missing += "the bake's HTTPS listener is still there" }
    if ((Get-WSManInstance -ResourceURI 'winrm/config/service/auth').Basic -ne 'false') { $missing += 'Basic authentication is on' }
    if ((Get-WSManInstance -ResourceURI 'winrm/config/service').AllowUnencrypted -ne 'false') { $missing += 'unencrypted WinRM is on' }
    $missing += @($AnswerFiles | Where-Object { Test-Path -LiteralPath $_ } | ForEach-Object { "the answer file $_ is still there" })
    foreach ($value in 'DefaultPassword', 'AutoLogonCount') {
        if ($null -ne (Get-WboxRegistryValue $LogonKey $value)) { $missing += "Winlogon still has $value" }
    }
    if ($null -ne (Get-ScheduledTask -TaskName $TaskName -ErrorAction Ignore)) { $missing += 'the sealing task is still there' }

    $facts = @{}
    $sealed = Read-WboxTextFile $SealedFile
    if ($null -eq $sealed) { $missing += 'the machine is not sealed' }
    else {
        $seal = ConvertFrom-Json -InputObject $sealed
        $facts.sealed = "$($seal.time)"
        $missing += @($seal.failures | Where-Object { $_ } | ForEach-Object { "sealing: $_" })
        if ($seal.certificate -and (Test-Path -LiteralPath "Cert:\LocalMachine\My\$($seal.certificate)")) { $missing += "the bake's certificate is still there" }
    }
    New-WboxResult -Missing $missing -Facts $facts
}

function Set-State($Context) {
    $p = $Context.Parameters
    $bake = Get-WboxParameter $p 'bakeAccount'
    $name = Get-WboxParameter $p 'account'
    if ($name -eq $bake) { throw "the box's account can't have the name of the bake's, $bake" }
    Set-Account $name (Get-WboxParameter $p 'password')
    Set-Key (Get-WboxParameter $p 'publicKey' -Default '')
    Set-HttpListener
    Clear-Leftover

    $seal = [ordered]@{
        bakeAccount = $bake
        certificate = "$(Get-HttpsThumbprint)"
        answerFiles = $AnswerFiles
        delaySeconds = [int](Get-WboxParameter $p 'sealDelaySeconds' -Default 20)
    }
    New-WboxFolder $HomeFolder
    Remove-Item -LiteralPath $SealedFile -Force -ErrorAction Ignore
    Copy-WboxFile -Source (Join-Path $Context.Scripts 'Wbox.psm1') -Destination "$HomeFolder\Wbox.psm1" | Out-Null
    Copy-WboxFile -Source (Join-Path $Context.Scripts 'Complete-WboxSeal.ps1') -Destination $SealScript | Out-Null
    Write-WboxTextFile "$HomeFolder\seal.json" (ConvertTo-Json -InputObject $seal) | Out-Null

    $action = New-ScheduledTaskAction -Execute 'powershell.exe' -Argument "-NoProfile -NonInteractive -ExecutionPolicy Bypass -File $SealScript"
    $principal = New-ScheduledTaskPrincipal -UserId 'SYSTEM' -LogonType ServiceAccount -RunLevel Highest
    $settings = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries -ExecutionTimeLimit (New-TimeSpan -Minutes 15)
    Register-ScheduledTask -TaskName $TaskName -Action $action -Principal $principal -Settings $settings -Force | Out-Null
    # Started, not timed: a clock that is set meanwhile makes no difference.
    # The script itself waits until we are gone.
    Start-ScheduledTask -TaskName $TaskName
    New-WboxResult -Facts @{ sealing = $true }
}

function Set-Account([string]$Name, [string]$Password) {
    $secret = ConvertTo-SecureString -String $Password -AsPlainText -Force
    if ($null -eq (Get-LocalUser -Name $Name -ErrorAction Ignore)) {
        New-LocalUser -Name $Name -Password $secret -PasswordNeverExpires -AccountNeverExpires -Description 'The account of the box' | Out-Null
    }
    else { Set-LocalUser -Name $Name -Password $secret -PasswordNeverExpires $true }
    Enable-LocalUser -Name $Name
    $sid = "$((Get-LocalUser -Name $Name).SID)"
    if (@(Get-LocalGroupMember -SID $Administrators | Where-Object { "$($_.SID)" -eq $sid }).Count -eq 0) { Add-LocalGroupMember -SID $Administrators -Member $Name }
}

# OpenSSH reads the keys of administrators from here, and only if nobody else
# may write the file.
function Set-Key([string]$Key) {
    if (-not $Key) { return }
    Write-WboxTextFile $KeyFile "$($Key.Trim())`n" | Out-Null
    Invoke-WboxProgram -Path 'icacls.exe' -ArgumentList $KeyFile, '/inheritance:r', '/grant:r', '*S-1-5-18:F', '*S-1-5-32-544:F', '/Q' | Out-Null
    if ($null -eq (Get-Service -Name 'sshd' -ErrorAction Ignore)) { return }
    Invoke-WboxProgram -Path 'sc.exe' -ArgumentList 'config', 'sshd', 'start=', 'delayed-auto' | Out-Null
    Set-WboxFirewallRule -Name 'wbox-ssh' -Protocol TCP -Port 22 -DisplayName 'wbox: SSH'
}

# Basic goes off with the seal: this very session may be using it.
function Set-HttpListener {
    if (@(Get-Listener 'HTTP').Count -eq 0) {
        New-WSManInstance -ResourceURI 'winrm/config/Listener' -SelectorSet @{ Address = '*'; Transport = 'HTTP' } -ValueSet @{ Port = '5985' } | Out-Null
    }
    Set-WSManInstance -ResourceURI 'winrm/config/service/auth' -ValueSet @{ Negotiate = 'true' } | Out-Null
    Set-WSManInstance -ResourceURI 'winrm/config/service' -ValueSet @{ AllowUnencrypted = 'false' } | Out-Null
    Set-WboxFirewallRule -Name 'wbox-winrm-http' -Protocol TCP -Port 5985 -DisplayName 'wbox: WinRM over HTTP'
}

# Files in use stay; none of them is worth a failure.
function Clear-Leftover {
    foreach ($pattern in 'C:\Windows\Temp\*', 'C:\Windows\Panther\*.log', 'C:\Windows\Panther\*.etl', 'C:\Windows\Logs\CBS\*', 'C:\Windows\Logs\DISM\*',
        'C:\var\log\kubelet\*', 'C:\var\log\pods\*', 'C:\ProgramData\containerd\*.log', 'C:\ProgramData\ssh\ssh_host_*', 'C:\ProgramData\wbox\tmp\*') {
        if (Test-Path -Path $pattern) { Remove-Item -Path $pattern -Recurse -Force -ErrorAction SilentlyContinue }
    }
}
