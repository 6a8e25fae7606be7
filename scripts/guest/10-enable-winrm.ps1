# The bake's way in: WinRM over HTTPS with the bake's own certificate.
#   pfx          the certificate's file below payload\, default winrm.pfx
#   pfxPassword  its password
#   account      the bake's account, default: no account is changed
#   port         default 5986
# It never stops or restarts WinRM: it may be running inside of it.

$script:RuleName = 'wbox-winrm-https'
$script:PolicyKey = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
$script:LogonKey = 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Winlogon'

function Get-PfxFile($Context) {
    $file = Join-Path $Context.Payload (Get-WboxParameter $Context.Parameters 'pfx' -Default 'winrm.pfx')
    if (-not (Test-Path -LiteralPath $file -PathType Leaf)) { throw "there is no certificate $file" }
    $file
}

# The certificate in the file, without putting it into a store.
function Get-SeedCertificate($Context) {
    $file = Resolve-WboxPath (Get-PfxFile $Context)
    New-Object Security.Cryptography.X509Certificates.X509Certificate2 -ArgumentList $file, (Get-WboxParameter $Context.Parameters 'pfxPassword')
}

function Get-HttpsListener {
    Get-WSManInstance -ResourceURI 'winrm/config/Listener' -Enumerate | Where-Object { $_.Transport -eq 'HTTPS' }
}

function Test-State($Context) {
    $port = [int](Get-WboxParameter $Context.Parameters 'port' -Default 5986)
    $account = Get-WboxParameter $Context.Parameters 'account' -Default ''
    $thumbprint = (Get-SeedCertificate $Context).Thumbprint
    $missing = @()

    $service = Get-Service -Name 'WinRM'
    if ("$($service.Status)" -ne 'Running') { return New-WboxResult -Missing "WinRM is $($service.Status)" }
    if ((Get-WboxRegistryValue 'HKLM:\SYSTEM\CurrentControlSet\Services\WinRM' 'Start') -ne 2 -or
        (Get-WboxRegistryValue 'HKLM:\SYSTEM\CurrentControlSet\Services\WinRM' 'DelayedAutostart') -ne 1) { $missing += 'WinRM does not start by itself, delayed' }

    if (-not (Test-Path -LiteralPath "Cert:\LocalMachine\My\$thumbprint")) { $missing += "the certificate $thumbprint is not in the store" }
    $listener = @(Get-HttpsListener)
    if ($listener.Count -eq 0) { $missing += 'there is no HTTPS listener' }
    elseif ($listener[0].CertificateThumbprint -ne $thumbprint) { $missing += "the HTTPS listener has the certificate '$($listener[0].CertificateThumbprint)'" }
    elseif ([int]$listener[0].Port -ne $port) { $missing += "the HTTPS listener is on port $($listener[0].Port)" }
    if ((Get-WSManInstance -ResourceURI 'winrm/config/service/auth').Basic -ne 'true') { $missing += 'Basic authentication is off' }
    if (-not (Test-WboxFirewallRule -Name $RuleName -Protocol TCP -Port $port)) { $missing += "the firewall is closed for port $port" }
    if ((Get-WboxRegistryValue $PolicyKey 'LocalAccountTokenFilterPolicy') -ne 1) { $missing += 'administrators have no full token over the network' }
    if ($account -and $null -ne (Get-LocalUser -Name $account).PasswordExpires) { $missing += "the password of $account expires" }
    if ((Get-WboxRegistryValue $LogonKey 'AutoAdminLogon') -eq '1') { $missing += 'Windows logs on by itself' }
    if ($null -ne (Get-WboxRegistryValue $LogonKey 'DefaultPassword')) { $missing += 'a password is in Winlogon' }
    New-WboxResult -Missing $missing -Facts @{ thumbprint = $thumbprint; port = $port }
}

function Set-State($Context) {
    $port = [int](Get-WboxParameter $Context.Parameters 'port' -Default 5986)
    $account = Get-WboxParameter $Context.Parameters 'account' -Default ''
    $certificate = Get-SeedCertificate $Context

    # A network that Windows takes for public closes WinRM's own rules and
    # refuses some of the settings below. One that is still being identified
    # can't be set; our firewall rule doesn't depend on it.
    foreach ($network in @(Get-NetConnectionProfile -ErrorAction Ignore | Where-Object { "$($_.NetworkCategory)" -eq 'Public' })) {
        try { Set-NetConnectionProfile -InterfaceIndex $network.InterfaceIndex -NetworkCategory Private }
        catch { Write-WboxLog "network $($network.InterfaceAlias): $($_.Exception.Message)" }
    }

    # Delayed: networking starts late once Hyper-V is there.
    Invoke-WboxProgram -Path 'sc.exe' -ArgumentList 'config', 'WinRM', 'start=', 'delayed-auto' | Out-Null
    if ("$((Get-Service -Name 'WinRM').Status)" -ne 'Running') { Start-Service -Name 'WinRM' }

    Set-WboxRegistryValue $PolicyKey 'LocalAccountTokenFilterPolicy' 1
    if (-not (Test-Path -LiteralPath "Cert:\LocalMachine\My\$($certificate.Thumbprint)")) {
        $password = ConvertTo-SecureString -String (Get-WboxParameter $Context.Parameters 'pfxPassword') -AsPlainText -Force
        Import-PfxCertificate -FilePath (Get-PfxFile $Context) -CertStoreLocation 'Cert:\LocalMachine\My' -Password $password | Out-Null
    }
    Set-WSManInstance -ResourceURI 'winrm/config' -ValueSet @{ MaxTimeoutms = '1800000' } | Out-Null
    # Before there is a listener: whoever is refused once does not come again.
    Set-WSManInstance -ResourceURI 'winrm/config/service/auth' -ValueSet @{ Basic = 'true' } | Out-Null
    Set-Listener $certificate $port
    Set-WboxFirewallRule -Name $RuleName -Protocol TCP -Port $port -DisplayName 'wbox: WinRM over HTTPS'

    if ($account) { Set-LocalUser -Name $account -PasswordNeverExpires $true }
    Set-WboxRegistryValue $LogonKey 'AutoAdminLogon' '0' 'String'
    foreach ($value in 'DefaultPassword', 'AutoLogonCount', 'AutoLogonSID') { Remove-WboxRegistryValue $LogonKey $value }
    New-WboxResult -Facts @{ thumbprint = $certificate.Thumbprint; port = $port }
}

function Set-Listener($Certificate, [int]$Port) {
    $selector = @{ Address = '*'; Transport = 'HTTPS' }
    foreach ($listener in @(Get-HttpsListener)) {
        if ($listener.CertificateThumbprint -eq $Certificate.Thumbprint -and [int]$listener.Port -eq $Port) { return }
        Remove-WSManInstance -ResourceURI 'winrm/config/Listener' -SelectorSet $selector
    }
    # The host name must be the certificate's common name.
    $name = $Certificate.GetNameInfo([Security.Cryptography.X509Certificates.X509NameType]::SimpleName, $false)
    New-WSManInstance -ResourceURI 'winrm/config/Listener' -SelectorSet $selector -ValueSet @{
        Hostname = $name; CertificateThumbprint = $Certificate.Thumbprint; Port = "$Port"
    } | Out-Null
}
