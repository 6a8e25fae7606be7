# The sealing task of 90-generalize, as SYSTEM: removes what belongs to the
# bake, notes in sealed.json what went wrong, and turns the machine off. It
# goes on after a failure: the test part of 90-generalize reads the note.
[CmdletBinding()]
param()
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$global:ErrorActionPreference = 'Stop' # for commands from CDXML, which see no other
Import-Module 'C:\ProgramData\wbox\Wbox.psm1' -Force

$homeFolder = 'C:\ProgramData\wbox'
$seal = ConvertFrom-Json -InputObject (Read-WboxTextFile "$homeFolder\seal.json")
$failures = New-Object Collections.Generic.List[string]

function Invoke-Step([string]$Name, [scriptblock]$Step) {
    try { & $Step | Out-Null } catch { $failures.Add("${Name}: $($_.Exception.Message)") }
}

# The caller reads its result and hangs up meanwhile.
Start-Sleep -Seconds $seal.delaySeconds

Invoke-Step 'listener' {
    $https = @(Get-WSManInstance -ResourceURI 'winrm/config/Listener' -Enumerate | Where-Object { $_.Transport -eq 'HTTPS' })
    if ($https.Count -gt 0) { Remove-WSManInstance -ResourceURI 'winrm/config/Listener' -SelectorSet @{ Address = '*'; Transport = 'HTTPS' } }
    if ($null -ne (Get-NetFirewallRule -Name 'wbox-winrm-https' -ErrorAction Ignore)) { Remove-NetFirewallRule -Name 'wbox-winrm-https' }
}
Invoke-Step 'authentication' { Set-WSManInstance -ResourceURI 'winrm/config/service/auth' -ValueSet @{ Basic = 'false' } }
Invoke-Step 'certificate' {
    $path = "Cert:\LocalMachine\My\$($seal.certificate)"
    # With its private key, which would stay on the disk.
    if ($seal.certificate -and (Test-Path -LiteralPath $path)) { Remove-Item -LiteralPath $path -DeleteKey }
}
Invoke-Step 'account' {
    $account = Get-LocalUser -Name $seal.bakeAccount -ErrorAction Ignore
    if ($null -eq $account) { return }
    if ("$($account.SID)" -like '*-500') { throw 'the built-in administrator can not be removed' }
    $sid = "$($account.SID)"
    Remove-LocalUser -Name $seal.bakeAccount
    # The profile stays loaded for a while after the last session of its user.
    $filter = "SID='$sid'"
    $free = Wait-Wbox -TimeoutSeconds 120 -Until { @(Get-CimInstance -ClassName Win32_UserProfile -Filter $filter | Where-Object { $_.Loaded }).Count -eq 0 }
    if (-not $free) { throw 'the profile is in use' }
    Get-CimInstance -ClassName Win32_UserProfile -Filter $filter | Remove-CimInstance
}
# Setup gave the built-in administrator the bake's password too.
Invoke-Step 'administrator' {
    $administrator = @(Get-LocalUser | Where-Object { "$($_.SID)" -like '*-500' })
    if ($administrator.Count -eq 0) { return }
    $bytes = New-Object byte[] 32
    $random = [Security.Cryptography.RandomNumberGenerator]::Create()
    $random.GetBytes($bytes)
    $random.Dispose()
    # Letters of each kind, so that any password policy is content.
    $secret = ConvertTo-SecureString -String ('aZ1-' + [Convert]::ToBase64String($bytes)) -AsPlainText -Force
    Set-LocalUser -Name $administrator[0].Name -Password $secret
    Disable-LocalUser -Name $administrator[0].Name
}
Invoke-Step 'answer files' {
    foreach ($file in $seal.answerFiles) { if (Test-Path -LiteralPath $file) { Remove-Item -LiteralPath $file -Force } }
}
Invoke-Step 'automatic logon' {
    $key = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon'
    Set-WboxRegistryValue $key 'AutoAdminLogon' '0' 'String'
    foreach ($value in 'DefaultPassword', 'DefaultUserName', 'DefaultDomainName', 'AutoLogonCount', 'AutoLogonSID') { Remove-WboxRegistryValue $key $value }
    # Setup keeps the password as a secret of the LSA. Only SYSTEM gets here.
    $secret = 'HKLM:\SECURITY\Policy\Secrets\DefaultPassword'
    if (Test-Path -LiteralPath $secret) { Remove-Item -LiteralPath $secret -Recurse -Force }
}
Invoke-Step 'logs' {
    foreach ($pattern in "$homeFolder\logs\*", "$homeFolder\tmp\*") {
        if (Test-Path -Path $pattern) { Remove-Item -Path $pattern -Recurse -Force }
    }
}
Invoke-Step 'task' {
    Unregister-ScheduledTask -TaskName 'wbox-seal' -Confirm:$false
    Remove-Item -LiteralPath "$homeFolder\seal.json", "$homeFolder\Complete-WboxSeal.ps1" -Force
}

$note = [ordered]@{ time = [DateTime]::UtcNow.ToString('o'); certificate = $seal.certificate; failures = @($failures) }
Write-WboxTextFile "$homeFolder\sealed.json" (ConvertTo-Json -InputObject $note) | Out-Null
Invoke-WboxProgram -Path 'shutdown.exe' -ArgumentList '/s', '/f', '/t', '0' | Out-Null
